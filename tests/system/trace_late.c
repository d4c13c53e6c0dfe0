/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers that come late, in the middle of a recording's replay or after it, to a
 * ring that no longer holds the beginning.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/attribution.h"
#include "tests/support/attribution_lines.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"
#include "tests/support/trace_engine.h"

#define STEPS_BEFORE 60u /* more than the ring holds */
#define LAYERS_BEFORE 10u

struct late_reader {
	struct r3ring_reader *reader;
	struct attribution found;
	enum attribution_way way;
};

static struct test_daemon daemon_a;
static struct command dump;
static struct recording recording;
static struct trace_engine engine;
static struct late_reader watcher, late[4];
static char channel[40];

static void attach(struct late_reader *to, enum r3ring_cursor_start from, uint64_t seq,
		   enum attribution_way way)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
		.from = from,
		.seq = seq,
	};
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&to->reader, &options, &err), 0, "%s", err.text);
	attribution_init(&to->found, &recording);
	to->way = way;
}

static void start(void)
{
	char instance[32];

	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	/* 512 KiB of arena: some 36 steps, and a keyframe every 9. */
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "1M", NULL});
	snprintf(instance, sizeof(instance), "late-%d", getpid());
	snprintf(channel, sizeof(channel), "%s/0", instance);
	trace_engine_open(&engine, daemon_a.dir, instance, &recording);
	attach(&watcher, R3RING_FROM_OLDEST, 0, ATTRIBUTION_COPY);
}

static void finish(void)
{
	command_free(&dump);
	if (daemon_a.dir[0]) {
		trace_engine_close(&engine);
		test_daemon_close(&daemon_a);
	}
	r3ring_reader_close(watcher.reader);
	attribution_free(&watcher.found);
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		r3ring_reader_close(late[i].reader);
		attribution_free(&late[i].found);
	}
	recording_free(&recording);
}

static void await_step(void)
{
	cr_assert(attribution_take_until(&watcher.found, watcher.reader, attribution_has_step,
					 engine.steps));
}

/* Until the ring has forgotten its beginning, and a keyframe is just over: the next
 * one is still to come. */
static void run_until_late(void)
{
	do {
		cr_assert(trace_engine_step(&engine));
		await_step();
	} while (engine.steps < STEPS_BEFORE || watcher.found.keyframe_step + 1 != engine.steps);
}

/* To the end, while readers [0, @readers) take everything as it comes. */
static void run_to_the_end(size_t readers)
{
	while (trace_engine_step(&engine)) {
		await_step();
		for (size_t i = 0; i < readers; i++)
			attribution_take_all(&late[i].found, late[i].reader, late[i].way);
	}
	cr_assert(attribution_take_until(&watcher.found, watcher.reader, attribution_has_ends,
					 recording.request_count));
	for (size_t i = 0; i < readers; i++)
		attribution_take_all(&late[i].found, late[i].reader, late[i].way);
	cr_assert_eq(attribution_not_once(&watcher.found), 0, "the one that missed nothing");
	cr_assert_eq(watcher.found.wrong, 0);
}

static void expect_accounts(const struct late_reader *reader, uint64_t lost)
{
	struct r3ring_reader_stats stats, all;

	r3ring_reader_get_stats(watcher.reader, &all);
	r3ring_reader_get_stats(reader->reader, &stats);
	cr_expect_eq(stats.now.cursor, all.now.cursor);
	cr_expect_eq(stats.now.got, reader->found.records);
	cr_expect_eq(stats.now.lost, lost);
	cr_expect_eq(stats.now.skipped, 0);
	cr_expect_eq(stats.now.got + stats.now.lost, stats.now.cursor - stats.now.start);
}

/* Nothing without a keyframe; after it every row of every later step, once. */
static void expect_late(const struct late_reader *reader)
{
	const struct attribution *found = &reader->found;

	cr_expect(found->ready);
	cr_expect_eq(found->early, 0);
	cr_expect_eq(found->wrong, 0);
	cr_expect_eq(found->wrong_spans, 0);
	cr_expect_eq(found->wrong_ends, 0);
	cr_expect_eq(found->unowned_ready, 0);
	cr_expect_gt(found->ready_step, 0);
	cr_expect_lt(found->ready_step, engine.steps);
	cr_expect_eq(attribution_not_as_late(found, engine.step_of_row), 0);
	cr_expect_eq(found->right + found->unowned, found->units);
}

Test(trace_late, failure_49_readers_attached_in_mid_run_attribute_nothing_before_a_keyframe,
     .fini = finish)
{
	start();
	run_until_late();
	attach(&late[0], R3RING_FROM_LATEST, 0, ATTRIBUTION_COPY);
	attach(&late[1], R3RING_FROM_KEYFRAME, 0, ATTRIBUTION_COPY);
	attach(&late[2], R3RING_FROM_OLDEST, 0, ATTRIBUTION_IN_PLACE);
	attribution_take_all(&late[2].found, late[2].reader, late[2].way);
	run_to_the_end(3);
	for (size_t i = 0; i < 3; i++) {
		expect_late(&late[i]);
		expect_accounts(&late[i], 0);
	}
	/* The two that began elsewhere were given rows whose owner they cannot know. */
	cr_expect_gt(late[0].found.unowned, 0);
	cr_expect_eq(late[1].found.unowned, 0);
	cr_expect_gt(late[2].found.unowned, 0);
}

static bool has_units(const struct attribution *found, uint64_t units)
{
	return found->units >= units;
}

Test(trace_late, failure_49_a_reader_attached_within_a_step_attributes_none_of_its_rows,
     .fini = finish)
{
	uint64_t step, units;

	start();
	run_until_late();
	units = watcher.found.units;
	cr_assert(trace_engine_begin(&engine, LAYERS_BEFORE));
	cr_assert(attribution_take_until(&watcher.found, watcher.reader, has_units,
					 units + (uint64_t)engine.step_rows * LAYERS_BEFORE));
	attach(&late[0], R3RING_FROM_LATEST, 0, ATTRIBUTION_IN_PLACE);
	step = engine.steps;
	trace_engine_finish(&engine, LAYERS_BEFORE);
	await_step();
	attribution_take_all(&late[0].found, late[0].reader, late[0].way);
	cr_expect_eq(late[0].found.units,
		     (uint64_t)engine.step_rows * (recording.layers - LAYERS_BEFORE));
	cr_expect_eq(late[0].found.unowned, late[0].found.units);
	cr_expect_eq(late[0].found.newest_step_end, step);
	run_to_the_end(1);
	expect_late(&late[0]);
	expect_accounts(&late[0], 0);
}

Test(trace_late, a_reader_that_asks_for_what_was_overwritten_is_told_how_much, .fini = finish)
{
	uint64_t first;
	struct r3ring_reader_stats stats;

	start();
	run_until_late();
	attach(&late[0], R3RING_FROM_OLDEST, 0, ATTRIBUTION_COPY);
	attach(&late[1], R3RING_FROM_SEQ, 2, ATTRIBUTION_COPY);
	r3ring_reader_get_stats(late[0].reader, &stats);
	first = stats.now.start;
	cr_assert_gt(first, 2);
	run_to_the_end(2);
	expect_late(&late[1]);
	cr_expect_eq(late[1].found.overruns, 1);
	/* Where it resumes is the reader's choice, but never behind the oldest. */
	r3ring_reader_get_stats(late[1].reader, &stats);
	cr_expect_eq(stats.now.start, 2);
	cr_expect_geq(stats.now.lost, first - 2);
	expect_accounts(&late[1], stats.now.cursor - 2 - late[1].found.records);
}

static void end_producer(void)
{
	char text[80];

	trace_engine_end(&engine);
	snprintf(text, sizeof(text), "channel %s: drained", channel);
	cr_assert(test_daemon_said(&daemon_a, text), "%s", daemon_a.log);
	attribution_take_all(&watcher.found, watcher.reader, ATTRIBUTION_COPY);
}

Test(trace_late, failure_49_readers_attached_after_the_run_attribute_nothing_before_a_keyframe,
     .fini = finish)
{
	start();
	run_to_the_end(0);
	end_producer();
	attach(&late[0], R3RING_FROM_OLDEST, 0, ATTRIBUTION_COPY);
	attach(&late[1], R3RING_FROM_OLDEST, 0, ATTRIBUTION_IN_PLACE);
	attach(&late[2], R3RING_FROM_KEYFRAME, 0, ATTRIBUTION_IN_PLACE);
	for (size_t i = 0; i < 3; i++) {
		attribution_take_all(&late[i].found, late[i].reader, late[i].way);
		expect_late(&late[i]);
		expect_accounts(&late[i], 0);
	}
	cr_expect_gt(late[0].found.unowned, 0);
	cr_expect_gt(late[1].found.unowned, 0);
	cr_expect_eq(late[2].found.unowned, 0);
}

Test(trace_late, failure_49_a_dump_of_a_lapped_ring_names_no_request_before_a_keyframe,
     .fini = finish)
{
	start();
	run_to_the_end(0);
	end_producer();
	attribution_init(&late[0].found, &recording);
	cr_assert_eq(
		command_run(&dump, daemon_a.dir, (const char *[]){"dump", channel, "--json", NULL}),
		0, "%s", dump.err);
	attribution_take_lines(&late[0].found, dump.out);
	cr_expect_eq(late[0].found.wrong_lines, 0);
	cr_expect_eq(late[0].found.gap_records, 0);
	cr_expect_gt(late[0].found.unowned, 0);
	expect_late(&late[0]);
}
