/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless readers: what they get, whom they hold up, and for how long. */
#include <criterion/criterion.h>

#include "tests/support/channel_status.h"
#include "tests/support/lap.h"
#include "tests/system/lossless_stage.h"

static struct listener listener_a;

static void start(void)
{
	lossless_start((const char *[]){"--ring-size", "1M", "--stall-limit", STALL_MS, NULL});
}

TestSuite(lossless, .init = start, .fini = lossless_finish, .timeout = 120);

/* ---- what it gets --------------------------------------------------------- */

Test(lossless, a_lossless_reader_gets_every_record_while_a_lossy_one_is_lapped)
{
	const uint64_t steps = 20000;
	struct reader_job lossless = lossless_job(R3RING_LOSSLESS),
			  lossy = lossless_job(R3RING_LOSSY);
	int64_t number;

	lossless.dawdle_us = 1;
	lossy.dawdle_us = 2000;
	reader_worker_start(&keen, &lossless);
	reader_worker_start(&lazy, &lossy);
	for (uint64_t i = 0; i < steps; i++)
		engine_step(&engine_a, 0, ROWS);
	number = lossless_settle();
	cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
	reader_worker_finish(&keen);
	reader_worker_finish(&lazy);
	lossless_expect_whole(keen.page, (uint64_t)number);
	cr_expect_gt(lossless_figure("waits_for_readers"), 0);
	cr_expect_gt(lazy.page->seen.stats.now.lost, 0);
	cr_expect_eq(lazy.page->seen.wrong, 0);
	cr_expect_eq(lossless_figure("readers_demoted"), 0);
}

static uint64_t newest_record(void)
{
	json_t *object = channel_status(daemon_a.dir, channel_a);
	uint64_t seq = (uint64_t)json_integer_value(
		json_object_get(json_object_get(object, "ring"), "tail_seq"));

	json_decref(object);
	return seq;
}

Test(lossless, it_begins_where_it_says_and_loses_nothing_from_there)
{
	const enum r3ring_cursor_start starts[] = {R3RING_FROM_OLDEST, R3RING_FROM_LATEST,
						   R3RING_FROM_SEQ, R3RING_FROM_KEYFRAME};

	for (int i = 0; i < 5000; i++)
		engine_step(&engine_a, 0, ROWS);
	lossless_settle(); /* else a step below may find no room and never come */
	for (unsigned int i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct r3ring_reader_options options = lossless_job(R3RING_LOSSLESS).options;
		struct listener listener;

		options.from = starts[i];
		options.seq = newest_record();
		listener_open_as(&listener, &options);
		for (int step = 0; step < 3000; step++) {
			int64_t number = engine_step(&engine_a, 0, ROWS);

			cr_assert(listener_read_until(&listener, listener_has_step,
						      (uint64_t)number - 1));
		}
		cr_expect_eq(listener.stats.now.lost, 0, "start %u", i);
		cr_expect_eq(listener.wrong, 0);
		cr_expect(listener.stats.registered);
		cr_expect_not(listener.stats.demoted);
		listener_close(&listener);
	}
}

Test(lossless, what_was_overwritten_before_it_was_opened_counts_as_kept_by_nobody)
{
	struct r3ring_reader_options options = lossless_job(R3RING_LOSSLESS).options;
	struct listener listener;
	int64_t newest;

	cr_assert(engine_lap(&engine_a, daemon_a.dir, channel_a, ROWS, 0));
	lossless_settle();
	options.from = R3RING_FROM_FIRST;
	listener_open_as(&listener, &options);
	newest = engine_step(&engine_a, 0, ROWS);
	cr_assert(listener_read_until(&listener, listener_has_step, (uint64_t)newest));
	cr_expect_gt(listener.stats.now.lost, 0);
	cr_expect_eq(listener.stats.unkept, listener.stats.now.lost);
	cr_expect_not(listener.stats.demoted);
	listener_close(&listener);
}

static bool has_generation_and_step(const struct listener *listener, uint64_t generation)
{
	return listener->newest_generation >= generation && listener->complete >= 2;
}

Test(lossless, it_is_waited_for_in_the_next_generation_too)
{
	struct r3ring_reader_options options = lossless_job(R3RING_LOSSLESS).options;
	struct r3ring_error err = {0};
	uint64_t lost;

	listener_open_as(&listener_a, &options);
	engine_step(&engine_a, 0, ROWS);
	engine_close(&engine_a);
	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(listener_read_until(&listener_a, has_generation_and_step, 2));
	lost = listener_a.stats.now.lost;
	for (int i = 0; i < 5000; i++) {
		int64_t number = engine_step(&engine_a, 0, ROWS);

		cr_assert(listener_read_until(&listener_a, listener_has_step, (uint64_t)number));
	}
	cr_expect_eq(lost, 0);
	cr_expect_eq(listener_a.stats.now.lost, 0);
	cr_expect_eq(channel_readers(daemon_a.dir, channel_a), 1);
	listener_close(&listener_a);
}

static bool is_registered(const void *ctx)
{
	(void)ctx;
	return channel_readers(daemon_a.dir, channel_a) == 1;
}

Test(lossless, the_next_daemon_waits_for_it_too_when_it_goes_on_at_once)
{
	struct reader_job lossless = lossless_job(R3RING_LOSSLESS);

	reader_worker_start(&keen, &lossless);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&keen, 1));
	test_daemon_restart(&daemon_a, (const char *[]){"--ring-size", "1M", NULL});
	lossless_settle();
	/* Sooner than a heartbeat is missed. */
	cr_expect(reader_worker_wait(is_registered, NULL, 2000));
	reader_worker_finish(&keen);
	cr_expect_eq(keen.page->seen.stats.generations, 1);
}

/* ---- one that stands still ------------------------------------------------- */

static bool has_demoted(const void *ctx)
{
	(void)ctx;
	return lossless_figure("readers_demoted") > 0;
}

static bool knows_of_its_loss(const void *ctx)
{
	const struct listener *seen = ctx;

	return seen->overruns > 0;
}

Test(lossless, a_stopped_reader_is_demoted_after_the_stall_limit_and_told_what_it_lost)
{
	struct reader_job lossless = lossless_job(R3RING_LOSSLESS);
	const struct listener *seen;
	uint64_t cursor;
	int64_t waited;

	reader_worker_start(&keen, &lossless);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&keen, 1));
	reader_worker_pause(&keen);
	seen = &keen.page->seen;
	cursor = seen->stats.now.cursor;
	for (int i = 0; i < 100 && !has_demoted(NULL); i++)
		lossless_flood(100);
	cr_assert(has_demoted(NULL));
	waited = lossless_figure("waited_for_readers_ms");
	cr_expect_geq(waited, 299);
	cr_expect_leq(waited, 600, "%lld ms", (long long)waited);
	lossless_flood(5000); /* laps it */
	lossless_settle();    /* and does so once: nothing is written any more when it goes on */
	reader_worker_go_on(&keen);
	cr_assert(reader_worker_wait(knows_of_its_loss, seen, 20000));
	reader_worker_finish(&keen);
	cr_expect_eq(seen->stats.now.gap_from, cursor);
	cr_expect_eq(seen->stats.now.gap_to - cursor + 1, seen->stats.now.lost);
	cr_expect_eq(seen->stats.demoted_from, cursor);
	cr_expect_gt(seen->stats.demoted_to, cursor);
	cr_expect_eq(seen->stats.unkept, 0);
	cr_expect_eq(seen->wrong, 0);
	cr_expect_eq(keen.page->seq_breaks, 0);
}

Test(lossless_patient, its_siblings_and_other_channels_do_not_notice, .timeout = 120)
{
	struct reader_job lossless, lossy;
	struct r3ring_error err = {0};
	int64_t number;

	/* Enough for what the engine's buffer holds when the stall ends. */
	lossless_start((const char *[]){"--ring-size", "4M", "--stall-limit", STALL_MS, NULL});
	lossless = lossless_job(R3RING_LOSSLESS);
	lossy = lossless_job(R3RING_LOSSY);
	reader_worker_start(&keen, &lossless);
	reader_worker_start(&lazy, &lossy);
	cr_assert_eq(engine_open(&engine_b, daemon_a.dir, engine_instance(daemon_a.dir, OTHER), 16,
				 &err),
		     0, "%s", err.text);
	listener_open(&listener_a, daemon_a.dir, channel_b);
	reader_worker_pause(&keen);
	for (int i = 0; i < 1000 && !lossless_has_waited(NULL); i++)
		lossless_flood(20);
	/* The stall is on: the other channel's steps come through. */
	number = engine_step(&engine_b, 0, ROWS);
	cr_expect(listener_read_until(&listener_a, listener_has_step, (uint64_t)number));
	cr_expect_eq(channel_figure(daemon_a.dir, channel_b, "waits_for_readers"), 0);
	lossless_flood(2000);
	number = lossless_settle();
	cr_assert(reader_worker_accounts(&lazy, (uint64_t)number));
	reader_worker_finish(&lazy);
	lossless_expect_whole(lazy.page, (uint64_t)number);
	reader_worker_kill(&keen);
	listener_close(&listener_a);
	lossless_finish();
}

/* ---- one that dies ---------------------------------------------------------- */

static bool no_readers(const void *ctx)
{
	(void)ctx;
	return channel_readers(daemon_a.dir, channel_a) == 0;
}

Test(lossless_patient, failure_39_a_killed_reader_holds_nobody_up, .timeout = 120)
{
	struct reader_job lossless;
	int64_t number;

	lossless_start((const char *[]){"--ring-size", "1M", "--stall-limit", "100000", NULL});
	lossless = lossless_job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	reader_worker_pause(&keen);
	for (int i = 0; i < 100 && !lossless_has_waited(NULL); i++)
		lossless_flood(20);
	cr_assert(lossless_has_waited(NULL));
	cr_expect_eq(channel_readers(daemon_a.dir, channel_a), 1);
	reader_worker_kill(&keen);
	cr_expect(reader_worker_wait(no_readers, NULL, 2000));
	listener_open(&listener_a, daemon_a.dir, channel_a);
	number = lossless_settle();
	cr_expect(listener_read_until(&listener_a, listener_has_step, (uint64_t)number));
	listener_close(&listener_a);
	cr_expect_eq(lossless_figure("readers_demoted"), 0);
	lossless_finish();
}

Test(lossless, failure_39_readers_that_are_killed_at_any_time_leave_the_daemon_and_others_whole)
{
	const uint64_t steps = 6000;
	struct reader_job lossless = lossless_job(R3RING_LOSSLESS);
	int64_t number;

	reader_worker_start(&lazy, &lossless);
	for (int i = 0; i < 20; i++) {
		reader_worker_start(&keen, &lossless);
		for (uint64_t step = 0; step < steps / 20; step++)
			engine_step(&engine_a, 0, ROWS);
		reader_worker_kill(&keen);
	}
	number = lossless_settle();
	cr_assert(reader_worker_accounts(&lazy, (uint64_t)number));
	reader_worker_finish(&lazy);
	lossless_expect_whole(lazy.page, (uint64_t)number);
	cr_expect(reader_worker_wait(no_readers, NULL, 2000));
}

/* ---- a daemon that dies ------------------------------------------------------ */

Test(lossless_patient, a_lossless_reader_loses_nothing_when_the_daemon_is_killed_and_followed,
     .timeout = 120)
{
	const char *const args[] = {"--ring-size", "1M", "--stall-limit", "5000", NULL};
	struct reader_job lossless;
	int64_t number = 0;

	lossless_start(args);
	lossless = lossless_job(R3RING_LOSSLESS);
	lossless.busy_us = 20;
	reader_worker_start(&keen, &lossless);
	for (int i = 0; i < 3; i++) {
		lossless_flood(300);
		test_daemon_kill(&daemon_a);
		lossless_flood(20);
		test_daemon_restart(&daemon_a, args);
		lossless_flood(600);
		number = lossless_settle();
		cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
		cr_expect(status_becomes(daemon_a.dir, channel_a, status_has_readers, 1));
	}
	reader_worker_finish(&keen);
	lossless_expect_whole(keen.page, (uint64_t)number);
	cr_expect_eq(keen.page->seen.stats.generations, 1);
	cr_expect_eq(keen.page->seen.stats.demoted, 0);
	lossless_finish();
}
