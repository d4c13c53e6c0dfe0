/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the demo prints. Colour only on a terminal, and never the only sign.
 */
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/demo/picture.h"
#include "tests/demo/report.h"
#include "tools/quantity.h"

#define LABEL_WIDTH 28
#define COLUMN_WIDTH 22

enum colour { PLAIN, BOLD, DIM, GREEN, RED };

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

static const char *colour(enum colour which)
{
	static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m",
					    "\033[31m"};

	return is_terminal() ? codes[which] : "";
}

static bool shows_blocks(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

void report_progress(const char *text)
{
	if (is_terminal())
		printf("\r\033[K%s", text ? text : "");
	else if (text)
		printf("  %s\n", text);
	fflush(stdout);
}

void report_introduction(const char *text_path)
{
	printf("Two MoE models serve requests over the words of %s. While they run, a daemon "
	       "moves\n"
	       "the experts that each token went to into a ring in shared memory, and this "
	       "process\n"
	       "reads them. Then every row of every layer is compared with a slow reference that\n"
	       "shares no code with the models.\n\n",
	       text_path);
	fflush(stdout);
}

/* ---- table ------------------------------------------------------------ */

/* 1234567 as 1,234,567. */
static void print_number(uint64_t number, bool must_be_zero)
{
	char plain[24], grouped[32];
	int digits = snprintf(plain, sizeof(plain), "%" PRIu64, number);
	int used = 0;

	for (int i = 0; i < digits; i++) {
		if (i && (digits - i) % 3 == 0)
			grouped[used++] = ',';
		grouped[used++] = plain[i];
	}
	grouped[used] = '\0';
	printf("%s%*s%s", must_be_zero ? colour(number ? RED : GREEN) : "", COLUMN_WIDTH, grouped,
	       must_be_zero ? colour(PLAIN) : "");
}

static void print_label(const char *label)
{
	printf("  %-*s", LABEL_WIDTH, label);
}

/* One line of the table: the number at @offset of every run's findings. */
static void print_row(const struct demo_run *runs, size_t count, const char *label, size_t offset,
		      bool must_be_zero)
{
	print_label(label);
	for (size_t i = 0; i < count; i++) {
		uint64_t number;

		memcpy(&number, (const char *)&runs[i].findings + offset, sizeof(number));
		print_number(number, must_be_zero);
	}
	putchar('\n');
}

static void print_head(const struct demo_run *runs, size_t count)
{
	char sizes[64];

	printf("\n%s", colour(BOLD));
	print_label("");
	for (size_t i = 0; i < count; i++)
		printf("%*s", COLUMN_WIDTH, runs[i].title);
	printf("%s\n%s", colour(PLAIN), colour(DIM));
	print_label("layers, experts, top-k");
	for (size_t i = 0; i < count; i++) {
		snprintf(sizes, sizeof(sizes), "%u, %u, %u", runs[i].expected.layers,
			 runs[i].expected.experts, runs[i].expected.top_k);
		printf("%*s", COLUMN_WIDTH, sizes);
	}
	printf("%s\n", colour(PLAIN));
}

static void print_bytes(const struct demo_run *runs, size_t count)
{
	char text[QUANTITY_TEXT];

	print_label("bytes of ids");
	for (size_t i = 0; i < count; i++)
		printf("%*s", COLUMN_WIDTH, quantity_bytes(text, runs[i].findings.id_bytes));
	putchar('\n');
}

static void print_duration(const struct demo_run *runs, size_t count, const char *label,
			   size_t offset)
{
	char text[32];

	print_label(label);
	for (size_t i = 0; i < count; i++) {
		uint64_t ns;

		memcpy(&ns, (const char *)&runs[i] + offset, sizeof(ns));
		snprintf(text, sizeof(text), "%.1f s", (double)ns / 1e9);
		printf("%*s", COLUMN_WIDTH, text);
	}
	putchar('\n');
}

static void print_latency(const struct demo_run *runs, size_t count, const char *label,
			  double share)
{
	char text[QUANTITY_TEXT];

	print_label(label);
	for (size_t i = 0; i < count; i++)
		printf("%*s", COLUMN_WIDTH,
		       quantity_duration(text, findings_latency(&runs[i].findings, share)));
	putchar('\n');
}

/* Losses by cause: a line for each cause that took something from a run. */
static void print_losses(const struct demo_run *runs, size_t count)
{
	bool any = false;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		char label[64];
		uint64_t sum = 0;

		for (size_t i = 0; i < count; i++)
			sum += runs[i].findings.lost_rows[cause];
		if (!sum)
			continue;
		any = true;
		snprintf(label, sizeof(label), "lost: %s", r3ring_cause_name(cause));
		print_row(runs, count, label,
			  offsetof(struct findings, lost_rows) + cause * sizeof(uint64_t), true);
	}
	if (!any)
		print_row(runs, count, "lost, any cause", offsetof(struct findings, lost_rows),
			  true);
	print_row(runs, count, "records this reader lost", offsetof(struct findings, lapped), true);
}

static void print_table(const struct demo_run *runs, size_t count)
{
	print_head(runs, count);
	print_row(runs, count, "steps", offsetof(struct findings, steps), false);
	print_row(runs, count, "rows (tokens)", offsetof(struct findings, rows), false);
	print_row(runs, count, "layer records", offsetof(struct findings, layer_records), false);
	print_bytes(runs, count);
	print_row(runs, count, "ids compared", offsetof(struct findings, ids_compared), false);
	print_row(runs, count, "mismatches", offsetof(struct findings, mismatches), true);
	print_row(runs, count, "rows nobody asked for", offsetof(struct findings, unexpected),
		  true);
	print_row(runs, count, "rows that never came", offsetof(struct findings, absent), true);
	print_row(runs, count, "  of these unexplained", offsetof(struct findings, unexplained),
		  true);
	print_row(runs, count, "records unreadable", offsetof(struct findings, unreadable), true);
	print_losses(runs, count);
	print_latency(runs, count, "step end to reader, p50", 0.50);
	print_latency(runs, count, "step end to reader, p99", 0.99);
	print_duration(runs, count, "time to run and read", offsetof(struct demo_run, run_ns));
	print_duration(runs, count, "time to compare", offsetof(struct demo_run, compare_ns));
}

/* ---- all -------------------------------------------------------------- */

static void print_verdict(const struct demo_run *runs, size_t count)
{
	bool good = true;

	for (size_t i = 0; i < count; i++) {
		good &= findings_good(&runs[i].findings);
		if (runs[i].findings.first_wrong[0])
			printf("%s: first wrong: %s\n", runs[i].title,
			       runs[i].findings.first_wrong);
	}
	if (good)
		printf("%sEvery row of every layer came, and is the route the model took.%s\n",
		       colour(GREEN), colour(PLAIN));
	else
		printf("%sNot every route came as the model took it: see above.%s\n", colour(RED),
		       colour(PLAIN));
}

void report_print(const struct demo_run *runs, size_t count)
{
	bool blocks = shows_blocks();

	print_table(runs, count);
	for (size_t i = 0; i < count; i++) {
		printf("\n%sLoad of %s's experts%s\n", colour(BOLD), runs[i].title, colour(PLAIN));
		picture_draw(stdout, runs[i].findings.load, runs[i].expected.layer_ids,
			     runs[i].expected.layers, runs[i].expected.experts, blocks);
	}
	putchar('\n');
	print_verdict(runs, count);
}
