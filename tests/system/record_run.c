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

static uint64_t all_records(void)
{
	uint64_t records = 0;

	for (uint32_t rank = 0; rank < RANKS; rank++)
		records += archive_walk_records(&stage.walk, record_stage_channel(&stage, rank));
	return records;
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
	record_stage_expect_steps(&stage, 100, 40, 30);
	/* What a channel says first is read before the archive knows the channel. */
	command_free(&stage.tool);
	cr_expect_eq(command_run(&stage.tool, stage.ranks.daemon.dir,
				 (const char *[]){"verify", stage.archive, NULL}),
		     0, "%s", stage.tool.err);
}

Test(record_run, a_channel_that_is_not_there_yet_is_waited_for)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_expect_steps(&stage, 10, 0, 0);
}

Test(record_run, a_daemon_that_goes_while_a_channel_is_waited_for_is_waited_for_too)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	test_daemon_kill(&stage.ranks.daemon);
	cr_assert(command_tells(&stage.tool, "waiting for a daemon"));
	test_daemon_restart(&stage.ranks.daemon, ARGS("--ring-size", "4M"));
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_expect_steps(&stage, 10, 0, 0);
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
	record_stage_expect_steps(&stage, 0, 20, 0);
}

Test(record_run, a_channel_that_is_not_there_is_named_with_those_that_are)
{
	char channel[80], told[200];
	const char *const args[] = {"record", channel, "-o", stage.archive, NULL};

	ranks_open(&stage.ranks, 0);
	snprintf(channel, sizeof(channel), "%s/9", stage.ranks.name);
	snprintf(told, sizeof(told), "there is no channel %s, but %s/0: waiting for a channel",
		 channel, stage.ranks.name);
	command_start(&stage.tool, stage.ranks.daemon.dir, args);
	cr_expect(command_tells(&stage.tool, told));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
}

Test(record_run, of_channels_that_are_named_those_that_are_not_there_are_told)
{
	char first[80], second[80], told[120];
	const char *const args[] = {"record", first, second, "-o", stage.archive, NULL};

	ranks_open(&stage.ranks, 0);
	snprintf(first, sizeof(first), "%s/0", stage.ranks.name);
	snprintf(second, sizeof(second), "%s/1", stage.ranks.name);
	snprintf(told, sizeof(told), "%s is not there yet: waiting for it", second);
	command_start(&stage.tool, stage.ranks.daemon.dir, args);
	cr_assert(command_tells(&stage.tool, told));
	ranks_run(&stage.ranks, 0, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	ranks_open(&stage.ranks, 1);
	ranks_run(&stage.ranks, 1, 5);
	cr_assert(record_stage_reads(&stage, 1, 5));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_expect_steps(&stage, 10, 5, 0);
}

Test(record_run, draft_channels_are_recorded_when_asked_for)
{
	char channel[80];

	ranks_open(&stage.ranks, 0);
	ranks_open_draft(&stage.ranks);
	record_stage_run_told(&stage, 0, 5, 5);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	snprintf(channel, sizeof(channel), "%s/0.draft", stage.ranks.name);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_records(&stage.walk, channel), 0);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--draft")), 0);
	record_stage_check(&stage);
	cr_expect_gt(archive_walk_records(&stage.walk, channel), 0);
	record_stage_expect_steps(&stage, 5, 0, 0);
}

Test(record_run, layers_that_are_left_out_are_told_and_need_no_room)
{
	uint64_t skipped = 0, layers = 0;

	ranks_open(&stage.ranks, 0);
	record_stage_run_told(&stage, 0, 20, 20);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--layers", "4:6")), 0);
	record_stage_expect_steps(&stage, 20, 0, 0);
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
	record_stage_run_told(&stage, 0, 5, 5);
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
	record_stage_run_told(&stage, 0, 20, 40);
	kill(stage.tool.pid, SIGTERM);
	cr_assert_eq(command_wait(&stage.tool), 0);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	record_stage_expect_steps(&stage, 40, 0, 0);
	for (size_t i = 0; i < stage.walk.block_count; i++) {
		const struct walked_block *block = &stage.walk.blocks[i];

		/* The last one of each segment says so, and no other. */
		cr_expect_eq((block->head.flags & ARCHIVE_BLOCK_LAST) != 0,
			     i + 1 == stage.walk.block_count || block[1].segment != block->segment);
	}
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
	record_stage_expect_steps(&stage, 80, 0, 0);
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
	record_stage_expect_steps(&stage, 40, 40, 40);
}

/* Killed while it goes to a rank that just appeared, or has only just come to it. */
static void kill_as_it_joins(uint32_t rank, bool joined)
{
	ranks_open(&stage.ranks, rank);
	ranks_run(&stage.ranks, rank, 10);
	/* Its files may shrink meanwhile: the index's log does. */
	if (joined)
		cr_assert(record_stage_reads(&stage, rank, 10));
	kill(stage.tool.pid, SIGKILL);
	command_wait(&stage.tool);
	ranks_run(&stage.ranks, rank, 10);
	record_stage_record(&stage, ARGS("--sync", "0.02"));
}

Test(record_run, killed_as_it_joins_a_rank_its_successor_has_all_of_it)
{
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 20);
	record_stage_record(&stage, ARGS("--sync", "0.02"));
	cr_assert(record_stage_has_bytes(&stage, 1000));
	kill_as_it_joins(1, false);
	cr_assert(record_stage_reads(&stage, 1, 20));
	kill_as_it_joins(2, true);
	ranks_run(&stage.ranks, 0, 20);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		cr_assert(record_stage_reads(&stage, rank, rank ? 20 : 40));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_expect_steps(&stage, 40, 20, 20);
}

Test(record_run, killed_while_it_waits_for_a_channel_its_successor_waits_anew)
{
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	kill(stage.tool.pid, SIGKILL);
	command_wait(&stage.tool);
	record_stage_record(&stage, NULL);
	cr_assert(command_tells(&stage.tool, "waiting for a channel"));
	ranks_open(&stage.ranks, 0);
	ranks_run(&stage.ranks, 0, 10);
	cr_assert(record_stage_reads(&stage, 0, 10));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_expect_steps(&stage, 10, 0, 0);
}
