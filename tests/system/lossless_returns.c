/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless readers that come back later than they are waited for: behind a daemon's
 * death, and to a new generation. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"
#include "tests/support/settle.h"

#define BASE "returns"
#define ROWS 8u

static const char *const args[] = {"--ring-size", "1M", "--stall-limit", "300", NULL};
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

/* A lossless reader that has read a step and stands still. */
static void start(void)
{
	struct reader_job lossless = {.options = {.size = sizeof(lossless.options),
						  .runtime_dir = daemon_a.dir,
						  .channel = channel,
						  .mode = R3RING_LOSSLESS}};

	test_daemon_start(&daemon_a, args);
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	open_engine();
	reader_worker_start(&reader_a, &lossless);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&reader_a, 1));
	reader_worker_pause(&reader_a);
}

static void finish(void)
{
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
}

TestSuite(lossless_returns, .init = start, .fini = finish, .timeout = 60);

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
	uint64_t before = newest_record();

	for (int i = 0; i < 20000 && newest_record() < before + 2000; i++) {
		for (int k = 0; k < 10; k++)
			engine_step(&engine_a, 0, ROWS);
	}
	cr_assert_gt(newest_record(), before + 1999);
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
