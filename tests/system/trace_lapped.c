/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording replayed into a ring of a few steps, with readers that read only
 * when told: what they lose is counted exactly, what they get is right.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/attribution.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"
#include "tests/support/trace_engine.h"

#define READERS 4u
#define HELD_STEPS 8u     /* more than the ring has */
#define RECORDS_A_STEP 6u /* of some 27 */

/* Every @steps steps it may take @records records. */
struct slow_reader {
	const char *name;
	enum r3ring_cursor_mode mode;
	enum attribution_way way;
	uint32_t steps, records;
	struct r3ring_reader *reader;
	struct attribution found;
};

static struct test_daemon daemon_a;
static struct command produce;
static struct recording recording;
static struct trace_engine engine;
static struct slow_reader watcher = {.name = "the one that keeps up"};
static struct slow_reader slow[READERS] = {
	{"lossy, copying", R3RING_LOSSY, ATTRIBUTION_COPY, 7, 60, NULL, {0}},
	{"lossy, in place", R3RING_LOSSY, ATTRIBUTION_IN_PLACE, 3, 40, NULL, {0}},
	{"latest, copying", R3RING_LATEST, ATTRIBUTION_COPY, 11, 90, NULL, {0}},
	{"latest, in place", R3RING_LATEST, ATTRIBUTION_IN_PLACE, 2, 20, NULL, {0}},
};
static char instance[32], channel[40];

static void attach(struct slow_reader *to)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
		.mode = to->mode,
	};
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&to->reader, &options, &err), 0, "%s", err.text);
	attribution_init(&to->found, &recording);
}

static void start(void)
{
	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	/* The smallest ring: 64 KiB of arena, some four steps. */
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	snprintf(instance, sizeof(instance), "lapped-%d", getpid());
	snprintf(channel, sizeof(channel), "%s/0", instance);
}

static void start_engine(void)
{
	start();
	trace_engine_open(&engine, daemon_a.dir, instance, &recording);
	attach(&watcher);
	for (size_t i = 0; i < READERS; i++)
		attach(&slow[i]);
}

static void detach(struct slow_reader *from)
{
	r3ring_reader_close(from->reader);
	attribution_free(&from->found);
}

static void finish(void)
{
	command_free(&produce);
	if (engine.producer)
		trace_engine_close(&engine);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
	detach(&watcher);
	for (size_t i = 0; i < READERS; i++)
		detach(&slow[i]);
	recording_free(&recording);
}

static void take(struct slow_reader *reader, uint32_t records)
{
	while (records-- && attribution_take(&reader->found, reader->reader, reader->way))
		;
}

static void run_step(void)
{
	cr_assert(attribution_take_until(&watcher.found, watcher.reader, attribution_has_step,
					 engine.steps));
	for (size_t i = 0; i < READERS; i++) {
		if (engine.steps % slow[i].steps == 0)
			take(&slow[i], slow[i].records);
	}
}

static void run_to_the_end(void)
{
	while (trace_engine_step(&engine))
		run_step();
	cr_assert(attribution_take_until(&watcher.found, watcher.reader, attribution_has_ends,
					 recording.request_count));
	for (size_t i = 0; i < READERS; i++)
		attribution_take_all(&slow[i].found, slow[i].reader, slow[i].way);
}

/* ---- expectations ------------------------------------------------------- */

static uint64_t all_units(void)
{
	return (uint64_t)recording.rows * recording.layers;
}

/* @records: of the whole channel. */
static void expect_exact_records(const struct slow_reader *reader, uint64_t records)
{
	struct r3ring_reader_stats stats;
	const struct r3ring_cursor_stats *now = &stats.now;

	r3ring_reader_get_stats(reader->reader, &stats);
	cr_expect_eq(now->cursor, records + 1, "%s", reader->name);
	cr_expect_eq(now->got, reader->found.records, "%s", reader->name);
	cr_expect_eq(now->got + now->lost + now->skipped, now->cursor - now->start, "%s",
		     reader->name);
	cr_expect_eq(stats.corrupt, 0, "%s", reader->name);
}

/* Of a reader that was there from the first record on. */
static void expect_exact_accounts(const struct slow_reader *reader, uint64_t records)
{
	struct r3ring_reader_stats stats;

	expect_exact_records(reader, records);
	r3ring_reader_get_stats(reader->reader, &stats);
	cr_expect_eq(stats.now.start, 1, "%s", reader->name);
	cr_expect_eq(reader->found.units + stats.now.lost_units + stats.now.skipped_units,
		     all_units(), "%s: %lu got, %lu lost, %lu skipped", reader->name,
		     (unsigned long)reader->found.units, (unsigned long)stats.now.lost_units,
		     (unsigned long)stats.now.skipped_units);
}

static void expect_no_wrong_row(const struct slow_reader *reader)
{
	const struct attribution *found = &reader->found;
	uint64_t once = 0;

	for (size_t i = 0; i < all_units(); i++)
		once += found->seen[i] == 1;
	cr_expect_eq(found->wrong, 0, "%s", reader->name);
	cr_expect_eq(found->early, 0, "%s", reader->name);
	cr_expect_eq(found->wrong_spans, 0, "%s", reader->name);
	cr_expect_eq(found->wrong_ends, 0, "%s", reader->name);
	cr_expect_eq(found->padding_not_empty, 0, "%s", reader->name);
	cr_expect_gt(found->right, 0, "%s", reader->name);
	cr_expect_eq(found->right, once, "%s was given a row twice", reader->name);
	cr_expect_eq(found->right + found->unowned, found->units, "%s", reader->name);
}

static uint64_t lost_of(const struct slow_reader *reader)
{
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(reader->reader, &stats);
	return stats.now.lost;
}

static uint64_t skipped_of(const struct slow_reader *reader)
{
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(reader->reader, &stats);
	return stats.now.skipped;
}

Test(trace_lapped, four_slow_readers_of_different_kinds_lose_exactly_what_is_counted,
     .fini = finish)
{
	start_engine();
	run_to_the_end();
	cr_assert_eq(lost_of(&watcher), 0);
	cr_assert_eq(attribution_not_once(&watcher.found), 0);
	cr_assert_eq(watcher.found.units, all_units());
	for (size_t i = 0; i < READERS; i++) {
		expect_exact_accounts(&slow[i], watcher.found.records);
		expect_no_wrong_row(&slow[i]);
		cr_expect_gt(lost_of(&slow[i]), 0, "%s", slow[i].name);
		if (slow[i].mode == R3RING_LOSSY)
			cr_expect_eq(skipped_of(&slow[i]), 0, "%s", slow[i].name);
	}
	cr_expect_gt(skipped_of(&slow[2]) + skipped_of(&slow[3]), 0);
}

static void run_held_steps(void)
{
	for (uint32_t i = 0; i < HELD_STEPS; i++) {
		cr_assert(trace_engine_step(&engine));
		cr_assert(attribution_take_until(&watcher.found, watcher.reader,
						 attribution_has_step, engine.steps));
	}
}

Test(trace_lapped, failure_12_a_view_that_was_overwritten_while_it_was_used_is_refused,
     .fini = finish)
{
	struct r3ring_view view;

	start_engine();
	cr_assert(trace_engine_step(&engine));
	cr_assert(attribution_take_until(&watcher.found, watcher.reader, attribution_has_step, 1));
	cr_assert_eq(r3ring_reader_next(slow[0].reader, &view), 1);
	cr_assert_eq(view.seq, 1);
	run_held_steps();
	cr_expect_eq(r3ring_reader_check(slow[0].reader), -EOVERFLOW);
	cr_expect_eq(lost_of(&slow[0]), 1);
	run_to_the_end();
	expect_exact_accounts(&slow[0], watcher.found.records);
	expect_no_wrong_row(&slow[0]);
}

/* ---- while another process writes at its own pace ----------------------- */

static void expect_said(const char *of_the_channel)
{
	char text[80];

	snprintf(text, sizeof(text), "channel %s: %s", channel, of_the_channel);
	cr_assert(test_daemon_said(&daemon_a, text), "%s", daemon_a.log);
}

/* For each step that was published they may take a few of its many records. */
static void read_while_it_runs(void)
{
	while (!command_ended(&produce)) {
		uint64_t before = watcher.found.newest_step_end;

		r3ring_reader_wait(watcher.reader, 100);
		attribution_take_all(&watcher.found, watcher.reader, watcher.way);
		for (size_t i = 0; i < READERS; i++)
			take(&slow[i],
			     (uint32_t)(watcher.found.newest_step_end - before) * RECORDS_A_STEP);
	}
	cr_assert_eq(produce.code, 0, "%s", produce.err);
	expect_said("drained");
	attribution_take_all(&watcher.found, watcher.reader, watcher.way);
	for (size_t i = 0; i < READERS; i++)
		attribution_take_all(&slow[i].found, slow[i].reader, slow[i].way);
}

static uint64_t records_published(void)
{
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(watcher.reader, &stats);
	return stats.now.cursor - 1;
}

Test(trace_lapped, readers_lapped_by_a_process_that_waits_for_nobody_get_no_wrong_row,
     .fini = finish)
{
	uint64_t records;

	start();
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "400", "--json",
				       NULL});
	expect_said("generation");
	watcher.mode = R3RING_LATEST;
	attach(&watcher);
	for (size_t i = 0; i < READERS; i++)
		attach(&slow[i]);
	read_while_it_runs();
	records = records_published();
	for (size_t i = 0; i < READERS; i++) {
		cr_expect_gt(lost_of(&slow[i]), 0, "%s", slow[i].name);
		expect_exact_records(&slow[i], records);
		expect_no_wrong_row(&slow[i]);
	}
}
