/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `r3ring report`: of recorded routing, against counts that stand beside the recording; of
 * small archives, what is refused and what is said.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <png.h>

#include "report/heatmap.h"
#include "tests/support/archive_story.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"
#include "tests/support/remove_dir.h"

#define PYTHON "/usr/bin/python3"
#define HISTOGRAM "../shared/data/gptoss20b/gptoss20b_many.hist.json"
#define NOWHERE "/nonexistent/r3ring"

static struct command tool;
static char html[64], png[64];

static void names(void)
{
	snprintf(html, sizeof(html), "/tmp/r3ring-report-%d.html", getpid());
	snprintf(png, sizeof(png), "/tmp/r3ring-report-%d.png", getpid());
}

static void forget(void)
{
	command_free(&tool);
	unlink(html);
	unlink(png);
}

static int report(const char *const *args)
{
	command_free(&tool);
	return command_run(&tool, NOWHERE, args);
}

#define REPORT(...) report((const char *[]){"report", __VA_ARGS__, NULL})

/* What a parser of HTML finds, once it has checked the page; @counts: NULL, or a file. */
static json_t *parse(const char *counts)
{
	char line[256];
	json_t *found;
	FILE *out;

	if (access(PYTHON, X_OK))
		cr_skip_test("no " PYTHON " to read HTML with");
	snprintf(line, sizeof(line), PYTHON " tests/system/report_page.py %s %s", html,
		 counts ? counts : "");
	out = popen(line, "r");
	cr_assert(out);
	found = json_loadf(out, 0, NULL);
	cr_assert_eq(pclose(out), 0);
	cr_assert(found);
	return found;
}

static const char *text_of(const json_t *page, const char *id)
{
	const char *text = json_string_value(json_object_get(json_object_get(page, "text"), id));

	cr_assert(text, "nothing with the id %s", id);
	return text;
}

/* ---- of the recording --------------------------------------------------------- */

static struct test_daemon daemon_a;
static struct command produce, recorder;
static struct recording recording;
static char instance[32], dir[64];

static void record(void)
{
	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	names();
	recording_read(&recording);
	snprintf(instance, sizeof(instance), "reported-%d", getpid());
	snprintf(dir, sizeof(dir), "/tmp/r3ring-reported-%d", getpid());
	test_daemon_start(&daemon_a, NULL);
	command_start(&recorder, daemon_a.dir,
		      (const char *[]){"record", "--instance", instance, "-o", dir, "--until-idle",
				       "3", NULL});
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250",
				       "--eplb-replicas", "8", NULL});
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(command_wait(&recorder), 0, "%s", recorder.err);
}

static void finish(void)
{
	command_free(&produce);
	command_free(&recorder);
	recording_free(&recording);
	remove_dir(dir);
	forget();
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

TestSuite(report_trace, .init = record, .fini = finish, .timeout = 300);

static void write_grouped(char text[32], uint32_t number)
{
	if (number < 1000)
		snprintf(text, 32, "%u", number);
	else
		snprintf(text, 32, "%u,%03u", number / 1000, number % 1000);
}

/* The requests' tokens and cells as the recording has them. */
static void expect_requests(const json_t *page)
{
	const json_t *rows = json_object_get(page, "requests");

	cr_assert_eq(json_array_size(rows), recording.request_count);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const struct recording_request *request =
			recording_find(&recording, json_string_value(json_array_get(row, 0)));
		char cells[32];

		cr_assert(request);
		write_grouped(cells, request->rows * recording.layers);
		cr_assert_str_eq(json_string_value(json_array_get(row, 5)), cells, "%s",
				 request->id);
		cr_assert_str_eq(json_string_value(json_array_get(row, 6)), "0");
	}
}

static double planned(const char *what)
{
	json_t *plan;
	double average;

	command_free(&tool);
	cr_assert_eq(command_run(&tool, NOWHERE,
				 (const char *[]){"plan", "--archive", dir, "--gpus", "8",
						  "--replicas", "40", "--json", NULL}),
		     0, "%s", tool.err);
	plan = json_loads(tool.out, 0, NULL);
	average = json_real_value(json_object_get(json_object_get(plan, what), "average"));
	json_decref(plan);
	return average;
}

Test(report_trace, the_pages_figures_are_those_of_the_counts_beside_the_recording)
{
	char text[80];
	json_t *page;

	cr_assert_eq(REPORT(dir, "-o", html, "--title", "a <b>title</b>"), 0, "%s", tool.err);
	page = parse(HISTOGRAM);
	expect_requests(page);
	cr_expect(strstr(text_of(page, "losses-state"), "Nothing was lost"), "%s",
		  text_of(page, "losses-state"));
	cr_expect(strstr(text_of(page, "counted"), "382,632 rows"), "%s", text_of(page, "counted"));
	cr_expect(strstr(text_of(page, "cells-there"), "382,"), "%s", text_of(page, "cells-there"));
	/* The plan is that of `r3ring plan`, whose test works it out by itself. */
	snprintf(text, sizeof(text), "%.3f today, %.3f as planned", planned("today"),
		 planned("planned"));
	cr_expect(strstr(text_of(page, "balance-state"), text), "%s: %s", text,
		  text_of(page, "balance-state"));
	json_decref(page);
}

static double value_of(uint32_t layer, uint32_t expert)
{
	const uint64_t *counts = recording.counts + (size_t)layer * recording.experts;
	double sum = 0;

	for (uint32_t e = 0; e < recording.experts; e++)
		sum += (double)counts[e];
	return (double)counts[expert] * recording.experts / sum;
}

static void expect_picture(const struct colour *dot, const png_image *image, double top)
{
	struct heatmap heat = {.title = "",
			       .explained = "",
			       .rows = recording.layers,
			       .columns = recording.experts};
	struct heatmap_place place = heatmap_place(&heat);
	struct colour palette[COLOURS];

	colour_palette(palette);
	for (uint32_t layer = 0; layer < recording.layers; layer++) {
		for (uint32_t e = 0; e < recording.experts; e++) {
			double value = value_of(layer, e);
			/* As docs/man/r3ring-report.1 says it. */
			unsigned int index = value > 0 ? 1 + (unsigned int)(252 * value / top + 0.5)
						       : 0;
			size_t at =
				(size_t)(place.top + layer * place.cell_height + 3) * image->width +
				place.left + e * place.cell_width + 3;

			cr_assert_eq(memcmp(&dot[at], &palette[index], sizeof(*palette)), 0,
				     "layer %u, expert %u", layer, e);
		}
	}
}

Test(report_trace, each_cell_of_the_picture_has_the_colour_of_its_count)
{
	png_image image = {.version = PNG_IMAGE_VERSION};
	struct colour *dot;
	double top = 0;

	cr_assert_eq(REPORT(dir, "--png", png), 0, "%s", tool.err);
	cr_assert(png_image_begin_read_from_file(&image, png), "%s", image.message);
	image.format = PNG_FORMAT_RGB;
	dot = malloc(PNG_IMAGE_SIZE(image));
	cr_assert(png_image_finish_read(&image, NULL, dot, 0, NULL), "%s", image.message);
	for (uint32_t layer = 0; layer < recording.layers; layer++)
		for (uint32_t e = 0; e < recording.experts; e++)
			top = value_of(layer, e) > top ? value_of(layer, e) : top;
	expect_picture(dot, &image, top);
	free(dot);
}

/* ---- small ones ------------------------------------------------------------------ */

static struct archive_builder builder;
static struct story story;

static void begin(void)
{
	names();
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_request(&story, 1, "</bdi><script>x</script>", 4);
	for (uint32_t i = 0; i < 40; i++) {
		story_step(&story, 1, i, 1);
		if (i == 20)
			builder_block(&builder, 0);
	}
	story_end(&story, 1, 41);
	builder_segment_end(&builder, true);
}

static void end(void)
{
	forget();
	builder_close(&builder);
}

TestSuite(report, .init = begin, .fini = end);

Test(report, a_strangers_id_is_text_to_a_parser_too)
{
	json_t *page;

	cr_assert_eq(REPORT(builder.dir, "-o", html), 0, "%s", tool.err);
	page = parse(NULL);
	cr_expect_str_eq(json_string_value(json_array_get(
				 json_array_get(json_object_get(page, "requests"), 0), 0)),
			 "</bdi><script>x</script>");
	json_decref(page);
}

Test(report, a_dash_is_standard_output)
{
	cr_assert_eq(REPORT(builder.dir, "-o", "-"), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, "<!DOCTYPE html>") == tool.out, "%s", tool.out);
	cr_expect(strstr(tool.out, "</html>\n"));
}

Test(report, requests_that_have_no_room_are_counted)
{
	cr_assert_eq(REPORT(builder.dir, "-o", "-", "--table", "0"), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, "0 of 1 are told"), "%s", tool.out);
}

Test(report, the_archives_own_files_are_no_outputs)
{
	const char *segment = builder_path(&builder, "00000001.r3seg");
	struct builder_bytes before = builder_read(segment), after;

	cr_expect_eq(REPORT(builder.dir, "-o", segment), 2);
	cr_expect(strstr(tool.err, "a file of the archive itself"), "%s", tool.err);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--png", segment), 2);
	cr_expect_neq(access(html, F_OK), 0, "nothing is written");
	after = builder_read(segment);
	cr_expect(after.len == before.len && !memcmp(after.at, before.at, before.len));
	free(before.at);
	free(after.at);
}

Test(report, of_a_damaged_archive_it_says_so_and_ends_with_1)
{
	const char *segment = builder_path(&builder, "00000001.r3seg");
	struct builder_bytes file = builder_read(segment);
	json_t *page;

	/* Its end, which says that nothing follows. */
	builder_write(segment, file.at, file.len - 64);
	free(file.at);
	cr_assert_eq(REPORT(builder.dir, "-o", html), 1);
	cr_expect(strstr(tool.err, "r3ring verify"), "%s", tool.err);
	page = parse(NULL);
	cr_expect(strstr(text_of(page, "problems-state"), "damaged"));
	json_decref(page);
}

Test(report, of_a_damaged_archive_it_says_in_how_many_places_and_who_says_where)
{
	const char *segment = builder_path(&builder, "00000001.r3seg");
	struct builder_bytes file = builder_read(segment);
	char told[200];

	file.at[file.len - 100] ^= 1;
	builder_write(segment, file.at, file.len);
	free(file.at);
	cr_assert_eq(REPORT(builder.dir, "-o", html), 1);
	snprintf(told, sizeof(told),
		 "r3ring report: the archive is damaged in 1 places; the report is of what could "
		 "be read, 'r3ring verify %s' says where\n",
		 builder.dir);
	cr_expect_str_eq(tool.err, told);
}

#define LARGE_STEPS 1200u /* of 64 rows: more than a MiB */

/* A small request of each rank, and a large one. */
static void tell_ranks(struct archive_builder *ranks)
{
	struct story rank[2];
	char id[16];

	builder_open(ranks, 3);
	builder_segment(ranks);
	builder_ready(ranks);
	story_begin(&rank[0], ranks, 0, "ranks/0");
	story_begin(&rank[1], ranks, 1, "ranks/1");
	for (unsigned int r = 0; r < 2; r++) {
		snprintf(id, sizeof(id), "small-%u", r);
		story_request(&rank[r], 1, id, 2);
		story_step(&rank[r], 1, 0, 2);
		story_end(&rank[r], 1, 3);
		builder_block(ranks, 0);
		snprintf(id, sizeof(id), "large-%u", r);
		story_request(&rank[r], 2, id, 64 * LARGE_STEPS);
	}
	for (uint32_t i = 0; i < LARGE_STEPS; i++) {
		for (unsigned int r = 0; r < 2; r++)
			story_step(&rank[r], 2, i * 64, 64);
		if (i % 100 == 99)
			builder_block(ranks, 0);
	}
	for (unsigned int r = 0; r < 2; r++)
		story_end(&rank[r], 2, 64 * LARGE_STEPS + 1);
	builder_segment_end(ranks, true);
}

Test(report, requests_of_several_ranks_that_do_not_fit_are_told_and_it_ends_with_1)
{
	struct archive_builder ranks;
	const json_t *rows;
	json_t *page;

	tell_ranks(&ranks);
	cr_assert_eq(REPORT(ranks.dir, "-o", html, "--max-memory", "1"), 1);
	cr_expect_str_eq(tool.err,
			 "r3ring report: 2 requests did not fit into the memory for requests at "
			 "work; what they ran since they were given up is not in the report. Raise "
			 "--max-memory\n");
	page = parse(NULL);
	rows = json_object_get(page, "requests");
	cr_expect_eq(json_array_size(rows), 4);
	cr_expect(strstr(text_of(page, "memory-state"), "2 of "), "%s",
		  text_of(page, "memory-state"));
	json_decref(page);
	cr_assert_eq(REPORT(ranks.dir, "-o", html, "--max-memory", "64"), 0, "%s", tool.err);
	cr_expect_str_empty(tool.err);
	builder_close(&ranks);
}

Test(report, what_cannot_be_is_refused_and_leaves_what_was_there)
{
	FILE *file = fopen(html, "w");
	struct builder_bytes kept;

	cr_assert(file);
	fputs("of before", file);
	fclose(file);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--request", "nosuch"), 1);
	cr_expect(strstr(tool.err, "'nosuch'"), "%s", tool.err);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--gpus", "7", "--replicas", "1000"), 2);
	cr_expect(strstr(tool.err, "take a multiple of the GPUs"), "%s", tool.err);
	kept = builder_read(html);
	cr_expect(kept.len == 9 && !memcmp(kept.at, "of before", 9));
	free(kept.at);
	cr_expect_eq(REPORT("/nonexistent", "-o", html), 1);
	cr_expect(strstr(tool.err, "/nonexistent"), "%s", tool.err);
}

Test(report, what_is_not_said_is_asked_for)
{
	cr_expect_eq(REPORT(builder.dir), 2);
	cr_expect(strstr(tool.err, "where to?"), "%s", tool.err);
	cr_expect_eq(REPORT("-o", html), 2);
	cr_expect_eq(REPORT(builder.dir, "more", "-o", html), 2);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--gpus", "8"), 2);
	cr_expect(strstr(tool.err, "--replicas"), "%s", tool.err);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--since", "@9", "--until", "@8"), 2);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--since", "soon"), 2);
	cr_expect(strstr(tool.err, "r3ring report: --since: 'soon' is not a time"), "%s", tool.err);
	cr_expect_eq(REPORT(builder.dir, "-o", html, "--until", "@0"), 2);
	cr_expect(strstr(tool.err, "no time is before it"), "%s", tool.err);
	cr_expect_eq(REPORT("--help"), 0);
	cr_expect(strstr(tool.out, "usage: r3ring report"), "%s", tool.out);
}
