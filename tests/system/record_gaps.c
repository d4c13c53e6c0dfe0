/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: what is lost is a gap of exact size, or said to be of none that is known. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <jansson.h>

#include "tests/support/channel_status.h"
#include "tests/support/lap.h"
#include "tests/support/settle.h"
#include "tests/support/stand_still.h"
#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define IDLE "--until-idle", "0.4"

static struct record_stage stage;

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "4M"));
}

static void teardown(void)
{
	record_stage_stop(&stage);
}

TestSuite(record_gaps, .init = setup, .fini = teardown, .timeout = 120);

static struct archive_gap only_gap(void)
{
	struct archive_gap gap = {0};

	cr_assert_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 1);
	for (size_t i = 0; i < stage.walk.entry_count; i++) {
		if (stage.walk.entries[i].head.kind == ARCHIVE_GAP)
			memcpy(&gap, stage.walk.entries[i].payload, sizeof(gap));
	}
	return gap;
}

/* More than the ring holds, and all of it is published: a recorder that is no longer waited
 * for, and reads on while more comes, may be lapped again. */
static void lap(void)
{
	struct engine *engine = &stage.ranks.engines[0];
	const char *channel = record_stage_channel(&stage, 0);

	cr_assert(engine_lap(engine, stage.ranks.daemon.dir, channel, 1, 1000));
	cr_assert_gt(engine_settle(engine, stage.ranks.daemon.dir, channel, 1), 0);
}

/* What the daemon published on rank 0's channel. */
static uint64_t published(void)
{
	json_t *status = channel_status(stage.ranks.daemon.dir, record_stage_channel(&stage, 0));
	json_int_t tail =
		json_integer_value(json_object_get(json_object_get(status, "ring"), "tail_seq"));

	json_decref(status);
	return (uint64_t)tail;
}

/* Every record of rank 0 is in the archive, or in its gap; whoever lost them says so. */
static void expect_all_accounted(enum archive_gap_cause cause)
{
	struct archive_gap gap = only_gap();

	cr_expect_eq(gap.cause, cause);
	cr_expect_gt(gap.lost, 1000);
	cr_expect_eq(archive_walk_records(&stage.walk, record_stage_channel(&stage, 0)) + gap.lost,
		     published());
}

Test(record_gaps, what_was_overwritten_before_it_came_is_a_gap_of_exact_size)
{
	ranks_open_all(&stage.ranks);
	lap();
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	record_stage_check(&stage);
	expect_all_accounted(ARCHIVE_GAP_LATE);
	cr_expect_eq(only_gap().from_seq, 1);
	cr_expect_eq(only_gap().lost, only_gap().to_seq);
	cr_expect_not_null(strstr(stage.tool.err, "records are lost"));
}

Test(record_gaps, what_was_overwritten_while_none_ran_is_a_gap_of_exact_size)
{
	ranks_open_all(&stage.ranks);
	ranks_run(&stage.ranks, 0, 10);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	record_stage_check(&stage);
	cr_assert_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
	lap();
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	record_stage_check(&stage);
	expect_all_accounted(ARCHIVE_GAP_STOPPED);
}

Test(record_gaps, one_that_stood_still_for_too_long_is_told_that_nobody_waits_for_it)
{
	const char *dir = stage.ranks.daemon.dir;
	bool demoted = false;

	test_daemon_close(&stage.ranks.daemon);
	ranks_start(&stage.ranks, ARGS("--ring-size", "1M", "--stall-limit", "100"));
	ranks_open_all(&stage.ranks);
	record_stage_record(&stage, ARGS("--sync", "0.02"));
	/* From here on what it misses is overrun, and it was no latecomer. */
	ranks_run(&stage.ranks, 0, 1);
	cr_assert(record_stage_reads(&stage, 0, 1));
	stand_still(stage.tool.pid);
	for (unsigned int i = 0; i < 2000 && !demoted; i++) {
		ranks_run(&stage.ranks, 0, 20);
		poll(NULL, 0, 5);
		demoted = channel_figure(dir, record_stage_channel(&stage, 0), "readers_demoted") >
			  0;
	}
	cr_assert(demoted);
	lap();
	kill(stage.tool.pid, SIGCONT);
	cr_assert(command_tells(&stage.tool, "no longer waits for this recorder"));
	cr_assert(command_tells(&stage.tool, "records are lost"));
	cr_assert(record_stage_reads(&stage, 0, 1));
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	record_stage_check(&stage);
	expect_all_accounted(ARCHIVE_GAP_OVERRUN);
}

/* Steps that the channel loses while its daemon stands still: nobody empties the engine's
 * buffer. */
static void lose_steps(void)
{
	stand_still(stage.ranks.daemon.pid);
	ranks_run(&stage.ranks, 0, 1000);
	kill(stage.ranks.daemon.pid, SIGCONT);
}

/* Steps that the archive says the channels lost, of one cause. */
static uint64_t told_as_lost(enum r3ring_cause cause)
{
	struct r3ring_lost_record lost;
	uint64_t steps = 0;

	for (size_t i = 0; i < stage.walk.entry_count; i++) {
		const struct walked_entry *entry = &stage.walk.entries[i];

		if (entry->head.kind != ARCHIVE_RECORD || entry->head.type != R3RING_LOST)
			continue;
		memcpy(&lost, entry->payload, sizeof(lost));
		steps += lost.cause == (uint32_t)cause ? lost.steps : 0;
	}
	return steps;
}

Test(record_gaps, what_the_channels_lost_is_told_by_its_cause)
{
	uint64_t lost;
	json_t *summary, *cause;

	ranks_open(&stage.ranks, 0);
	lose_steps();
	record_stage_run_told(&stage, 0, 0, 1000);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--json")), 0);
	record_stage_check(&stage);
	lost = told_as_lost(R3RING_CAUSE_BUFFER_FULL);
	cr_expect_gt(lost, 0);
	summary = json_loads(stage.tool.out, 0, NULL);
	cause = json_object_get(json_object_get(summary, "lost_by_channels"), "buffer_full");
	cr_expect_eq(json_integer_value(json_object_get(cause, "steps")), (json_int_t)lost);
	cr_expect_eq(json_integer_value(json_object_get(summary, "gaps")), 0);
	json_decref(summary);
	command_free(&stage.tool);
	record_stage_remove(&stage);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	cr_expect_not_null(strstr(stage.tool.out, "lost by the channels: buffer_full"), "%s",
			   stage.tool.out);
	cr_expect_null(strstr(stage.tool.out, "lost: nothing"), "%s", stage.tool.out);
}

static json_int_t buffer_steps(const json_t *lost)
{
	const json_t *cause = json_object_get(lost, "buffer_full");

	return json_integer_value(json_object_get(cause, "steps"));
}

/* As the daemon counts them. */
static json_int_t told_by_daemon(void)
{
	json_t *status = channel_status(stage.ranks.daemon.dir, record_stage_channel(&stage, 0));
	json_int_t steps = buffer_steps(json_object_get(status, "lost"));

	json_decref(status);
	return steps;
}

Test(record_gaps, what_the_channel_lost_counts_where_its_records_fell_into_the_recorders_gap)
{
	const char *dir = stage.ranks.daemon.dir;
	json_t *summary;
	bool demoted = false;

	test_daemon_close(&stage.ranks.daemon);
	ranks_start(&stage.ranks, ARGS("--ring-size", "1M", "--stall-limit", "100"));
	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--sync", "0.02", "--json"));
	ranks_run(&stage.ranks, 0, 1);
	cr_assert(record_stage_reads(&stage, 0, 1));
	stand_still(stage.tool.pid);
	for (unsigned int i = 0; i < 2000 && !demoted; i++) {
		ranks_run(&stage.ranks, 0, 20);
		poll(NULL, 0, 5);
		demoted = channel_figure(dir, record_stage_channel(&stage, 0), "readers_demoted") >
			  0;
	}
	cr_assert(demoted);
	lose_steps();
	lap();
	cr_assert_gt(told_by_daemon(), 0);
	kill(stage.tool.pid, SIGCONT);
	cr_assert(command_tells(&stage.tool, "records are lost"));
	cr_assert(record_stage_reads(&stage, 0, 1));
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	record_stage_check(&stage);
	summary = json_loads(stage.tool.out, 0, NULL);
	cr_expect_eq(buffer_steps(json_object_get(summary, "lost_by_channels")), told_by_daemon());
	cr_expect_gt(buffer_steps(json_object_get(summary, "lost_by_totals_only")), 0);
	cr_expect_eq(json_integer_value(json_object_get(summary, "lost_gaps_unproved")), 0);
	json_decref(summary);
}

/* What the whole archive says that its channels lost. */
static json_int_t lost_in_archive(void)
{
	json_t *verified;
	json_int_t steps;

	command_free(&stage.tool);
	cr_assert_eq(command_run(&stage.tool, stage.ranks.daemon.dir,
				 ARGS("verify", stage.archive, "--json")),
		     0, "%s", stage.tool.err);
	verified = json_loads(stage.tool.out, 0, NULL);
	steps = buffer_steps(json_object_get(verified, "lost"));
	json_decref(verified);
	return steps;
}

/* The losses whose records were overwritten, too, while none ran are of nobody's time, though the
 * archive has them, by the next keyframe. */
Test(record_gaps, what_was_lost_while_none_ran_is_not_of_the_next_recorders_time)
{
	uint64_t read;
	json_t *summary;

	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	lose_steps();
	lap();
	record_stage_record(&stage, ARGS("--json"));
	cr_assert(command_tells(&stage.tool, "records are lost"));
	lose_steps();
	lap();
	cr_assert(record_stage_reads(&stage, 0, 1));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
	expect_all_accounted(ARCHIVE_GAP_STOPPED);
	read = told_as_lost(R3RING_CAUSE_BUFFER_FULL);
	cr_assert_gt(read, 0);
	cr_assert_lt((json_int_t)read, told_by_daemon());
	summary = json_loads(stage.tool.out, 0, NULL);
	cr_expect_eq(buffer_steps(json_object_get(summary, "lost_by_channels")), (json_int_t)read);
	cr_expect_eq(json_object_size(json_object_get(summary, "lost_by_totals_only")), 0);
	cr_expect_eq(json_integer_value(json_object_get(summary, "lost_gaps_unproved")), 0);
	json_decref(summary);
	cr_expect_eq(lost_in_archive(), told_by_daemon());
}

/* A further generation of rank 0, and what it runs. */
static void run_next(void)
{
	engine_close(&stage.ranks.engines[0]);
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
}

/* The next gap from entry @at on, and the generation it is of. */
static size_t expect_unsized(size_t at, enum archive_gap_cause cause, uint64_t generation)
{
	struct archive_generation said = {0};
	struct archive_gap gap = {0};

	for (; at < stage.walk.entry_count && !gap.cause; at++) {
		const struct walked_entry *entry = &stage.walk.entries[at];

		if (entry->head.kind == ARCHIVE_GENERATION)
			memcpy(&said, entry->payload, sizeof(said));
		if (entry->head.kind == ARCHIVE_GAP)
			memcpy(&gap, entry->payload, sizeof(gap));
	}
	cr_expect_eq(gap.cause, cause, "%u", gap.cause);
	cr_expect_eq(gap.lost, 0);
	cr_expect_eq(gap.to_seq, 0);
	cr_expect_eq(said.generation, generation, "%lu", said.generation);
	return at;
}

Test(record_gaps, what_is_gone_with_its_ring_is_a_gap_of_unknown_size)
{
	size_t at;

	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	/* Two generations further; the first one's end was not recorded. */
	run_next();
	run_next();
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	cr_expect_null(strstr(stage.tool.out, "lost by the channels"), "not in its time: %s",
		       stage.tool.out);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 2);
	at = expect_unsized(0, ARCHIVE_GAP_STOPPED, 1);
	expect_unsized(at, ARCHIVE_GAP_STOPPED, 2);
	cr_expect_eq(record_stage_steps(&stage, 0), 20);
}

Test(record_gaps, a_generation_that_came_and_went_while_it_waited_is_a_gap_of_unknown_size)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	stand_still(stage.tool.pid);
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	run_next();
	kill(stage.tool.pid, SIGCONT);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "generations 1 to 1 were gone"), "%s",
			   stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.out, "missed: 1 generations"), "%s", stage.tool.out);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 1);
	expect_unsized(0, ARCHIVE_GAP_LATE, 1);
	cr_expect_eq(record_stage_steps(&stage, 0), 10);
}

Test(record_gaps, generations_before_it_began_are_no_gap)
{
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	run_next();
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.out, "lost: nothing"), "%s", stage.tool.out);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
}

/* Of the same name, at a daemon of another runtime directory: its ring has the next number. */
static struct test_daemon elsewhere;
static struct engine other;

static void open_elsewhere(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&elsewhere, NULL);
	cr_assert_eq(engine_open(&other, elsewhere.dir, stage.ranks.name, 16, &err), 0, "%s",
		     err.text);
}

static void close_elsewhere(void)
{
	engine_close(&other);
	test_daemon_close(&elsewhere);
}

static uint64_t newest_generation(void)
{
	struct archive_generation said = {0};

	for (size_t i = 0; i < stage.walk.entry_count; i++) {
		if (stage.walk.entries[i].head.kind == ARCHIVE_GENERATION)
			memcpy(&said, stage.walk.entries[i].payload, sizeof(said));
	}
	return said.generation;
}

static void expect_nothing_missed(uint64_t generation)
{
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_null(strstr(stage.tool.err, "gone"), "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.out, "lost: nothing"), "%s", stage.tool.out);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
	cr_expect_eq(newest_generation(), generation);
}

Test(record_gaps, a_number_that_another_directorys_ring_has_is_no_gap_in_front_of_the_first)
{
	open_elsewhere();
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	expect_nothing_missed(2);
	close_elsewhere();
}

Test(record_gaps, a_number_that_another_directorys_ring_has_is_no_gap_between_two)
{
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_reads(&stage, 0, 10));
	open_elsewhere(); /* as its first: whose 1 is taken */
	run_next();
	cr_assert(record_stage_reads(&stage, 0, 10));
	expect_nothing_missed(3);
	close_elsewhere();
}

static bool has_ended(const json_t *channel, long steps)
{
	const json_t *reader = json_array_get(json_object_get(channel, "readers"), 0);

	(void)steps;
	return strcmp(json_string_value(json_object_get(channel, "state")), "ended") == 0 &&
	       reader && json_integer_value(json_object_get(reader, "lag_records")) == 0;
}

Test(record_gaps, a_generation_that_it_slept_through_is_missing_and_not_the_end_of_the_one_before)
{
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_reads(&stage, 0, 10));
	engine_close(&stage.ranks.engines[0]);
	cr_assert(status_becomes(stage.ranks.daemon.dir, record_stage_channel(&stage, 0), has_ended,
				 0));
	stand_still(stage.tool.pid);
	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 10, 10);
	run_next();
	kill(stage.tool.pid, SIGCONT);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.out, "behind 1 gaps no keyframe came"), "%s",
			   stage.tool.out);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 1);
	expect_unsized(0, ARCHIVE_GAP_OVERRUN, 2);
	cr_expect_eq(record_stage_steps(&stage, 0), 20);
}
