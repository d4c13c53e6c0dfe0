/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless readers behind a daemon's death, and in a new generation: those that come back
 * later than they are waited for, and how long they are waited for. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/lap.h"
#include "tests/support/reader_worker.h"
#include "tests/support/settle.h"

#define BASE "returns"
#define ROWS 8u
#define RING_RECORDS 1024u

static const char *const args[] = {"--ring-size", "1M", "--stall-limit", "300", NULL};
/* Longer than any of these tests. */
static const char *const patient[] = {"--ring-size", "1M", "--stall-limit", "100000", NULL};
static struct test_daemon daemon_a;
static struct engine engine_a;
static struct reader_worker reader_a;
static char channel[80];

static void open_engine(void)
{
	struct r3ring_error err = {0};

	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
}

/* A lossless reader that has read a step. */
static void start_with(const char *const *daemon_args)
{
	struct reader_job lossless = {.options = {.size = sizeof(lossless.options),
						  .runtime_dir = daemon_a.dir,
						  .channel = channel,
						  .mode = R3RING_LOSSLESS}};

	test_daemon_start(&daemon_a, daemon_args);
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	open_engine();
	reader_worker_start(&reader_a, &lossless);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&reader_a, 1));
}

static void start(void)
{
	start_with(args);
	reader_worker_pause(&reader_a);
}

static void start_patient(void)
{
	start_with(patient);
}

static void finish(void)
{
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
}

TestSuite(lossless_returns, .init = start, .fini = finish, .timeout = 60);
TestSuite(lossless_awaited, .init = start_patient, .fini = finish, .timeout = 60);

static uint64_t newest_record(void)
{
	json_t *status = channel_status(daemon_a.dir, channel);
	json_t *ring = json_object_get(status, "ring");
	uint64_t seq = (uint64_t)json_integer_value(json_object_get(ring, "tail_seq"));

	json_decref(status);
	return seq;
}

/* More than the ring holds; what is kept for a reader that stands still is let go. */
static void lap(void)
{
	cr_assert(engine_lap(&engine_a, daemon_a.dir, channel, ROWS, 0));
}

static void expect_all_lost_is_unkept(void)
{
	const struct r3ring_reader_stats *stats = &reader_a.page->seen.stats;

	reader_worker_finish(&reader_a);
	cr_expect_gt(stats->unkept, 0);
	cr_expect_eq(stats->unkept, stats->lost_before + stats->now.lost);
	cr_expect_eq(stats->demoted, 0);
	cr_expect_eq(reader_a.page->seen.wrong, 0);
}

static bool reads_on(const void *ctx)
{
	const struct listener *seen = &reader_a.page->seen;

	return seen->stats.now.cursor > *(const uint64_t *)ctx;
}

Test(lossless_returns,
     a_reader_that_comes_too_late_to_the_next_daemon_is_told_that_nobody_kept_its_records)
{
	uint64_t newest;

	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, args);
	lap();
	newest = newest_record();
	reader_worker_go_on(&reader_a);
	cr_assert(reader_worker_wait(reads_on, &newest, 20000));
	expect_all_lost_is_unkept();
}

static bool has_generation_2(const void *ctx)
{
	const struct r3ring_reader_stats *stats = &reader_a.page->seen.stats;

	return stats->generation == 2 && stats->now.cursor > *(const uint64_t *)ctx;
}

Test(lossless_returns,
     a_reader_that_comes_too_late_to_a_generation_is_told_that_nobody_kept_its_records)
{
	uint64_t newest;

	engine_close(&engine_a);
	open_engine();
	lap();
	newest = newest_record();
	reader_worker_go_on(&reader_a);
	cr_assert(reader_worker_wait(has_generation_2, &newest, 20000));
	expect_all_lost_is_unkept();
}

/* ---- how long they are waited for ------------------------------------------ */

static void expect_nothing_lost(void)
{
	reader_worker_finish(&reader_a);
	cr_expect_eq(reader_a.page->seen.stats.unkept, 0);
	cr_expect_eq(reader_a.page->seen.stats.demoted, 0);
	cr_expect_eq(reader_a.page->seen.overruns, 0);
	cr_expect_eq(reader_a.page->seq_breaks, 0);
}

Test(lossless_awaited, the_next_daemon_waits_no_longer_once_all_are_back)
{
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, patient);
	lap();
	expect_nothing_lost();
}

Test(lossless_awaited, the_next_daemon_waits_for_none_that_died_with_the_one_before)
{
	test_daemon_kill(&daemon_a);
	reader_worker_kill(&reader_a);
	test_daemon_restart(&daemon_a, patient);
	lap();
}

/* Far longer than it takes readers to come back. */
static bool has_waited_long(void)
{
	return channel_figure(daemon_a.dir, channel, "waited_for_readers_ms") > 300;
}

static void step_until_it_has_waited_long(void)
{
	for (int i = 0; i < 20000 && !has_waited_long(); i++)
		engine_step(&engine_a, 0, ROWS);
	cr_assert(has_waited_long());
}

Test(lossless_awaited, the_next_daemon_waits_for_one_that_lives_and_stands_still)
{
	uint64_t before = newest_record();

	reader_worker_pause(&reader_a);
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, patient);
	step_until_it_has_waited_long();
	cr_expect_leq(newest_record(), before + RING_RECORDS);
	reader_worker_go_on(&reader_a);
	lap();
	expect_nothing_lost();
}

/* Each of them fills what it may. */
Test(lossless_awaited, daemons_that_die_one_after_the_other_keep_what_the_first_did)
{
	reader_worker_pause(&reader_a);
	step_until_it_has_waited_long();
	for (int i = 0; i < 4; i++) {
		test_daemon_kill(&daemon_a);
		test_daemon_restart(&daemon_a, patient);
		cr_assert(test_daemon_said(&daemon_a, "(came back)"));
		step_until_it_has_waited_long();
	}
	reader_worker_go_on(&reader_a);
	lap();
	expect_nothing_lost();
}

static bool is_in_generation_2(const void *ctx)
{
	(void)ctx;
	return reader_a.page->seen.stats.generation == 2;
}

Test(lossless_awaited, a_daemon_that_goes_on_in_a_new_generation_waits_for_readers_of_the_former)
{
	reader_worker_pause(&reader_a);
	engine_close(&engine_a);
	open_engine();
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, patient);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	step_until_it_has_waited_long();
	reader_worker_go_on(&reader_a);
	cr_assert(reader_worker_wait(is_in_generation_2, NULL, 20000));
	expect_nothing_lost();
}
