/* SPDX-License-Identifier: Apache-2.0 */
/* Without a terminal: one frame as text, or a line of JSON at a time. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/clock.h"
#include "tools/commands.h"
#include "tools/top.h"

#define COLUMNS_DEFAULT 80u
#define LOOK_MS 20
#define LOAD_NS 2000000000u /* that a first load is waited for, beyond an interval */

/* ---- once ------------------------------------------------------------------ */

static bool has_rates(const struct top *top)
{
	return top->before && top->now && top->now->state == PICTURE_LIVE;
}

static bool has_load(const struct top *top)
{
	return top->load && top->load->code == 0;
}

/* Whether what there was is read to its end, and judged. */
static bool is_read(const struct top *top)
{
	struct follower_status status;

	if (!top->follower)
		return false;
	follower_get_status(top->follower, &status);
	return status.tail.state != TAIL_WAITING;
}

/* Two pictures and a load, as far as there are any. Returns false when there is no daemon. */
static bool gather(struct top *top)
{
	uint64_t begin = clock_now_ns(), age;

	do {
		poll(NULL, 0, LOOK_MS);
		top_look(top);
		if (top->now && top->now->state != PICTURE_LIVE)
			return false;
		age = clock_now_ns() - begin;
	} while (!has_rates(top) ||
		 (!(has_load(top) && is_read(top)) && age < top->options->interval_ns + LOAD_NS));
	return true;
}

static bool knows_instance(const struct top *top)
{
	size_t length;

	if (!top->options->instance)
		return true;
	length = strlen(top->options->instance);
	for (size_t i = 0; i < top->now->channel_count; i++) {
		const char *name = top->now->channels[i].name;

		if (strncmp(name, top->options->instance, length) == 0 && name[length] == '/')
			return true;
	}
	return false;
}

static int print_frame(const struct top *top)
{
	const struct top_options *options = top->options;
	uint32_t columns = options->columns ? options->columns : COLUMNS_DEFAULT;
	struct top_frame frame;
	struct grid grid;

	top_frame_of(top, &frame);
	if (grid_make(&grid, options->rows ? options->rows : top_frame_rows(&frame, columns),
		      columns)) {
		fputs("r3ring top: no memory for a frame\n", stderr);
		return TOOL_FAILED;
	}
	top_frame_draw(&frame, &grid);
	grid_dump(&grid, stdout);
	grid_free(&grid);
	return TOOL_DONE;
}

int top_once(struct top *top)
{
	if (!gather(top)) {
		fprintf(stderr, "r3ring top: %s\n", top->now->error);
		return top->now->state == PICTURE_NO_DAEMON ? TOOL_NO_DAEMON : TOOL_FAILED;
	}
	if (!knows_instance(top)) {
		fprintf(stderr,
			"r3ring top: the daemon has no channel of %s; 'r3ring status' "
			"shows those it has\n",
			top->options->instance);
		return TOOL_NO_DAEMON;
	}
	return print_frame(top);
}

/* ---- lines ----------------------------------------------------------------- */

/* Returns false when it could not be printed. */
static bool print_line(const struct top *top)
{
	struct top_frame frame;
	json_t *line;
	int r;

	top_frame_of(top, &frame);
	line = top_json(&frame, top->options->counts);
	if (!line) {
		fputs("r3ring top: no memory for a snapshot\n", stderr);
		return false;
	}
	r = json_dumpf(line, stdout, JSON_COMPACT);
	json_decref(line);
	putchar('\n');
	return r == 0 && fflush(stdout) == 0;
}

static void wait_until(uint64_t due_ns)
{
	uint64_t now = clock_now_ns();

	if (due_ns > now)
		poll(NULL, 0, (int)((due_ns - now + 999999) / 1000000));
}

/* A load is not told beside a state in which none was read. */
static void await_reading(struct top *top)
{
	const uint64_t begin = clock_now_ns();

	while (!is_read(top) && clock_now_ns() < begin + LOAD_NS) {
		poll(NULL, 0, LOOK_MS);
		top_look(top);
	}
}

int top_lines(struct top *top)
{
	const struct top_options *options = top->options;
	uint64_t due = clock_now_ns();
	bool loaded = false;

	/* The first has rates, too. */
	while (!has_rates(top) && clock_now_ns() < due + options->interval_ns) {
		poll(NULL, 0, LOOK_MS);
		top_look(top);
	}
	for (uint64_t i = 0; !options->count || i < options->count; i++) {
		due += options->interval_ns;
		wait_until(due);
		top_look(top);
		if (!loaded && has_load(top)) {
			loaded = true;
			await_reading(top);
			due = clock_now_ns();
		}
		if (!print_line(top))
			return ferror(stdout) ? TOOL_DONE : TOOL_FAILED;
	}
	return TOOL_DONE;
}
