/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: what an instance's channels say is in the archive, through all restarts. */
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

TestSuite(record_run, .init = setup, .fini = teardown, .timeout = 120);

static const char *channel_of(uint32_t rank)
{
	char suffix[8];

	snprintf(suffix, sizeof(suffix), "%u", rank);
	return ranks_channel(&stage.ranks, suffix);
}

static bool has_steps(const json_t *channel, long steps)
{
	return json_integer_value(json_object_get(channel, "steps")) >= steps;
}

/* Runs steps of a rank's generation, and waits until that has told @told of them in all: a
 * recorder with an idle limit would not wait for a slow daemon. */
static void run_told(uint32_t rank, uint32_t steps, long told)
{
	ranks_run(&stage.ranks, rank, steps);
	cr_assert(status_becomes(stage.ranks.daemon.dir, channel_of(rank), has_steps, told));
}

static uint64_t all_records(void)
{
	uint64_t records = 0;

	for (uint32_t rank = 0; rank < RANKS; rank++)
		records += archive_walk_records(&stage.walk, channel_of(rank));
	return records;
}

static void expect_steps(uint64_t first, uint64_t second, uint64_t third)
{
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
	cr_expect_eq(record_stage_steps(&stage, 0), first, "%lu and not %lu: %s",
		     record_stage_steps(&stage, 0), first, stage.tool.err);
	cr_expect_eq(record_stage_steps(&stage, 1), second);
	cr_expect_eq(record_stage_steps(&stage, 2), third);
}

/* ---- what is recorded ----------------------------------------------------- */

Test(record_run, all_ranks_are_recorded_those_that_appear_later_too)
{
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 50);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_reads(&stage, 0, 50));
	ranks_open(&stage.ranks, 1);
	ranks_run(&stage.ranks, 1, 40);
	ranks_open(&stage.ranks, 2);
	ranks_run(&stage.ranks, 2, 30);
	ranks_run(&stage.ranks, 0, 50);
	cr_assert(record_stage_reads(&stage, 0, 100));
	cr_assert(record_stage_reads(&stage, 1, 40));
	cr_assert(record_stage_reads(&stage, 2, 30));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_null(strstr(stage.tool.out, "gaps"), "%s", stage.tool.out);
	expect_steps(100, 40, 30);
}

Test(record_run, a_channel_that_is_not_there_yet_is_waited_for)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	expect_steps(10, 0, 0);
}

Test(record_run, a_daemon_that_goes_while_a_channel_is_waited_for_is_waited_for_too)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	test_daemon_kill(&stage.ranks.daemon);
	/* Until it has looked for one in vain. */
	poll(NULL, 0, 500);
	test_daemon_restart(&stage.ranks.daemon, ARGS("--ring-size", "4M"));
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	expect_steps(10, 0, 0);
}

Test(record_run, channels_that_are_named_are_recorded_and_no_others)
{
	char channel[80];
	const char *const args[] = {"record", channel, "-o", stage.archive, IDLE, NULL};

	ranks_open_all(&stage.ranks);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_run(&stage.ranks, rank, 20);
	cr_assert(ranks_published(&stage.ranks, 20));
	snprintf(channel, sizeof(channel), "%s/1", stage.ranks.name);
	cr_assert_eq(command_run(&stage.tool, stage.ranks.daemon.dir, args), 0, "%s",
		     stage.tool.err);
	expect_steps(0, 20, 0);
}

Test(record_run, draft_channels_are_recorded_when_asked_for)
{
	char channel[80];

	ranks_open(&stage.ranks, 0);
	ranks_open_draft(&stage.ranks);
	run_told(0, 5, 5);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	snprintf(channel, sizeof(channel), "%s/0.draft", stage.ranks.name);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_records(&stage.walk, channel), 0);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--draft")), 0);
	record_stage_check(&stage);
	cr_expect_gt(archive_walk_records(&stage.walk, channel), 0);
	expect_steps(5, 0, 0);
}

Test(record_run, layers_that_are_left_out_are_told_and_need_no_room)
{
	uint64_t skipped = 0, layers = 0;

	ranks_open(&stage.ranks, 0);
	run_told(0, 20, 20);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--layers", "4:6")), 0);
	expect_steps(20, 0, 0);
	for (size_t i = 0; i < stage.walk.entry_count; i++) {
		const struct archive_entry *head = &stage.walk.entries[i].head;

		skipped += head->kind == ARCHIVE_SKIPPED;
		layers += head->kind == ARCHIVE_RECORD && head->type == R3RING_LAYER;
	}
	/* Of the engine's layers 3 to 7. */
	cr_expect_eq(layers, 2 * 20);
	cr_expect_eq(skipped, 3 * 20);
}

Test(record_run, layers_that_no_channel_has_are_told_with_those_that_it_has)
{
	ranks_open(&stage.ranks, 0);
	run_told(0, 5, 5);
	cr_expect_eq(record_stage_run(&stage, ARGS(IDLE, "--layers", "40:50")), 1);
	cr_expect_not_null(strstr(stage.tool.err, "/0 has none of the layers 40:50 (--layers); it "
						  "has 3-7\n"),
			   "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "names no layer of any channel"));
}

Test(record_run, the_json_summary_has_the_figures_of_the_archive)
{
	json_t *summary;

	ranks_open_all(&stage.ranks);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_run(&stage.ranks, rank, 20);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--json")), 0);
	record_stage_check(&stage);
	summary = json_loads(stage.tool.out, 0, NULL);
	cr_assert_not_null(summary);
	cr_expect_eq(json_integer_value(json_object_get(summary, "records")),
		     (json_int_t)all_records());
	cr_expect_eq(json_integer_value(json_object_get(summary, "stored_records")),
		     (json_int_t)all_records());
	cr_expect_eq(json_integer_value(json_object_get(summary, "channels")), RANKS);
	cr_expect_eq(json_integer_value(json_object_get(summary, "archive_bytes")),
		     (json_int_t)stage.walk.segments[0].bytes);
	json_decref(summary);
}

/* ---- how it ends ----------------------------------------------------------- */

Test(record_run, interrupted_or_terminated_it_ends_in_good_order)
{
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 20);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_has_bytes(&stage, 1000));
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "goes on where it ended"));
	run_told(0, 20, 40);
	kill(stage.tool.pid, SIGTERM);
	cr_assert_eq(command_wait(&stage.tool), 0);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	expect_steps(40, 0, 0);
	for (size_t i = 0; i < stage.walk.block_count; i++) {
		const struct walked_block *block = &stage.walk.blocks[i];

		/* The last one of each segment says so, and no other. */
		cr_expect_eq((block->head.flags & ARCHIVE_BLOCK_LAST) != 0,
			     i + 1 == stage.walk.block_count || block[1].segment != block->segment);
	}
}

Test(record_run, at_its_own_limit_it_ends_with_success_and_a_larger_one_goes_on)
{
	uint64_t steps = 0;

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--max-size", "64K", "--sync", "0.05"));
	while (!command_ended(&stage.tool)) {
		ranks_run(&stage.ranks, 0, 2);
		steps += 2;
		poll(NULL, 0, 5);
	}
	cr_assert_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "as large as it may be"));
	record_stage_check(&stage);
	cr_expect_leq(stage.walk.segments[0].bytes, 64 << 10);
	cr_expect_lt(record_stage_steps(&stage, 0), steps);
	run_told(0, 0, (long)steps);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--max-size", "64M")), 0);
	expect_steps(steps, 0, 0);
}

Test(record_run, with_rotate_it_goes_on_and_tells_what_it_removes)
{
	uint64_t bytes = 0;

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--max-size", "512K", "--rotate"));
	while (!command_has_told(&stage.tool, "removed") && !command_ended(&stage.tool)) {
		ranks_run(&stage.ranks, 0, 20);
		poll(NULL, 0, 5);
	}
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	cr_expect_not_null(strstr(stage.tool.err, "segments are removed (--rotate)"), "%s",
			   stage.tool.err);
	record_stage_check(&stage);
	cr_expect_gt(stage.walk.segments[0].head.number, 1);
	for (size_t i = 0; i < stage.walk.segment_count; i++)
		bytes += stage.walk.segments[i].bytes;
	cr_expect_leq(bytes, 512 << 10);
}

Test(record_run, a_directory_that_cannot_be_made_is_a_failure_and_no_lack_of_a_channel)
{
	ranks_open(&stage.ranks, 0);
	record_stage_record_in(&stage, NULL, "/nonexistent/archive", ARGS(IDLE));
	cr_expect_eq(command_wait(&stage.tool), 1, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "/nonexistent/archive cannot be made"));
}

Test(record_run, a_directory_that_is_recorded_into_is_refused_a_second_time)
{
	struct command second = {0};
	const char *const args[] = {"record", "--instance",  stage.ranks.name,
				    "-o",     stage.archive, NULL};

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_has_bytes(&stage, 128));
	cr_expect_eq(command_run(&second, stage.ranks.daemon.dir, args), 1);
	cr_expect_not_null(strstr(second.err, "another recorder"), "%s", second.err);
	command_free(&second);
	cr_expect_eq(command_interrupt(&stage.tool), 0);
}

/* ---- restarts ---------------------------------------------------------------- */

Test(record_run, an_engine_that_begins_anew_is_followed)
{
	record_stage_record(&stage, ARGS("--sync", "0.02"));
	for (unsigned int i = 0; i < 4; i++) {
		ranks_open(&stage.ranks, 0);
		ranks_run(&stage.ranks, 0, 20);
		cr_assert(record_stage_reads(&stage, 0, 20));
		engine_close(&stage.ranks.engines[0]);
	}
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	expect_steps(80, 0, 0);
	cr_expect_eq(stage.walk.entries[stage.walk.entry_count - 1].generation, 4);
}

Test(record_run, a_daemon_that_dies_and_its_successor_lose_nothing_for_it)
{
	ranks_open_all(&stage.ranks);
	record_stage_record(&stage, NULL);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		cr_assert(record_stage_reads(&stage, rank, 0));
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_run(&stage.ranks, rank, 20);
	cr_assert(ranks_published(&stage.ranks, 20));
	test_daemon_kill(&stage.ranks.daemon);
	test_daemon_restart(&stage.ranks.daemon, ARGS("--ring-size", "4M"));
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct r3ring_producer_stats stats;

		do {
			poll(NULL, 0, 5);
			r3ring_producer_get_stats(stage.ranks.engines[rank].producer, &stats);
		} while (!stats.connected);
		ranks_run(&stage.ranks, rank, 20);
		cr_assert(record_stage_reads(&stage, rank, 40));
	}
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	expect_steps(40, 40, 40);
}

/* ---- losses -------------------------------------------------------------------- */

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
	for (unsigned int i = 0; i < 40; i++)
		ranks_run(&stage.ranks, 0, 200);
	cr_assert_gt(
		engine_settle(&stage.ranks.engines[0], stage.ranks.daemon.dir, channel_of(0), 1),
		0);
}

/* What the daemon published on rank 0's channel. */
static uint64_t published(void)
{
	json_t *status = channel_status(stage.ranks.daemon.dir, channel_of(0));
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
	cr_expect_eq(archive_walk_records(&stage.walk, channel_of(0)) + gap.lost, published());
}

Test(record_run, what_was_overwritten_before_it_came_is_a_gap_of_exact_size)
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

Test(record_run, what_was_overwritten_while_none_ran_is_a_gap_of_exact_size)
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

Test(record_run, one_that_stood_still_for_too_long_is_told_that_nobody_waits_for_it)
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
		demoted = channel_figure(dir, channel_of(0), "readers_demoted") > 0;
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

Test(record_run, what_the_channels_lost_is_told_by_its_cause)
{
	uint64_t lost;
	json_t *summary, *cause;

	ranks_open(&stage.ranks, 0);
	/* Nobody empties the engine's buffer. */
	stand_still(stage.ranks.daemon.pid);
	ranks_run(&stage.ranks, 0, 1000);
	kill(stage.ranks.daemon.pid, SIGCONT);
	run_told(0, 0, 1000);
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

/* A further generation of rank 0, and what it runs. */
static void run_next(void)
{
	engine_close(&stage.ranks.engines[0]);
	ranks_open(&stage.ranks, 0);
	run_told(0, 10, 10);
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

Test(record_run, what_is_gone_with_its_ring_is_a_gap_of_unknown_size)
{
	size_t at;

	ranks_open(&stage.ranks, 0);
	run_told(0, 10, 10);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	/* Two generations further; the first one's end was not recorded. */
	run_next();
	run_next();
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 2);
	at = expect_unsized(0, ARCHIVE_GAP_STOPPED, 1);
	expect_unsized(at, ARCHIVE_GAP_STOPPED, 2);
	cr_expect_eq(record_stage_steps(&stage, 0), 20);
}

Test(record_run, a_generation_that_came_and_went_while_it_waited_is_a_gap_of_unknown_size)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	stand_still(stage.tool.pid);
	ranks_open(&stage.ranks, 0);
	run_told(0, 10, 10);
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

Test(record_run, generations_before_it_began_are_no_gap)
{
	ranks_open(&stage.ranks, 0);
	run_told(0, 10, 10);
	run_next();
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.out, "lost: nothing"), "%s", stage.tool.out);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
}

static bool has_ended(const json_t *channel, long steps)
{
	const json_t *reader = json_array_get(json_object_get(channel, "readers"), 0);

	(void)steps;
	return strcmp(json_string_value(json_object_get(channel, "state")), "ended") == 0 &&
	       reader && json_integer_value(json_object_get(reader, "lag_records")) == 0;
}

Test(record_run, a_generation_that_it_slept_through_is_missing_and_not_the_end_of_the_one_before)
{
	ranks_open(&stage.ranks, 0);
	run_told(0, 10, 10);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_reads(&stage, 0, 10));
	engine_close(&stage.ranks.engines[0]);
	cr_assert(status_becomes(stage.ranks.daemon.dir, channel_of(0), has_ended, 0));
	stand_still(stage.tool.pid);
	ranks_open(&stage.ranks, 0);
	run_told(0, 10, 10);
	run_next();
	kill(stage.tool.pid, SIGCONT);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 1);
	expect_unsized(0, ARCHIVE_GAP_OVERRUN, 2);
	cr_expect_eq(record_stage_steps(&stage, 0), 20);
}
