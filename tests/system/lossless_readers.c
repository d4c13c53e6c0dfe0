/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless readers: what they get, whom they hold up, and for how long. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"
#include "tests/support/settle.h"

#define BASE "lossless"
#define OTHER "other"
#define ROWS 8u
#define STALL_MS "300"

static struct test_daemon daemon_a;
static struct engine engine_a, engine_b;
static struct listener listener_a;
static struct reader_worker keen, lazy;
static char instance[R3RING_INSTANCE_MAX + 1], channel[80], other[80];

static void start_with(const char *const *args)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, args);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, BASE));
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	snprintf(other, sizeof(other), "%s", engine_channel(daemon_a.dir, OTHER));
	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
}

static void start(void)
{
	start_with((const char *[]){"--ring-size", "1M", "--stall-limit", STALL_MS, NULL});
}

static void finish(void)
{
	if (engine_a.producer)
		engine_close(&engine_a);
	if (engine_b.producer)
		engine_close(&engine_b);
	if (daemon_a.pid)
		cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
	cr_expect_eq(test_shm_names(instance), 0);
}

TestSuite(lossless, .init = start, .fini = finish, .timeout = 120);

static struct reader_job job(enum r3ring_cursor_mode mode)
{
	return (struct reader_job){
		.options =
			{
				.size = sizeof(struct r3ring_reader_options),
				.runtime_dir = daemon_a.dir,
				.channel = channel,
				.mode = mode,
			},
	};
}

static int64_t figure(const char *key)
{
	return channel_figure(daemon_a.dir, channel, key);
}

static bool has_demoted(const void *ctx)
{
	(void)ctx;
	return figure("readers_demoted") > 0;
}

static bool has_waited(const void *ctx)
{
	(void)ctx;
	return figure("waits_for_readers") > 0;
}

static int64_t settle(void)
{
	int64_t number = engine_settle(&engine_a, daemon_a.dir, channel, ROWS);

	cr_assert_gt(number, 0, "no step comes through");
	return number;
}

static void expect_whole(const struct reader_page *page, uint64_t steps)
{
	cr_expect_eq(page->seen.wrong, 0);
	cr_expect_eq(page->seq_breaks, 0);
	cr_expect_eq(page->seen.stats.now.lost, 0);
	cr_expect_eq(page->seen.overruns, 0);
	cr_expect_eq(page->accounted, steps, "%llu", (unsigned long long)page->accounted);
	cr_expect_eq(page->seen.partial, 0);
}

/* ---- what it gets --------------------------------------------------------- */

Test(lossless, a_lossless_reader_gets_every_record_while_a_lossy_one_is_lapped)
{
	const uint64_t steps = 20000;
	struct reader_job lossless = job(R3RING_LOSSLESS), lossy = job(R3RING_LOSSY);
	int64_t number;

	lossless.dawdle_us = 1;
	lossy.dawdle_us = 2000;
	reader_worker_start(&keen, &lossless);
	reader_worker_start(&lazy, &lossy);
	for (uint64_t i = 0; i < steps; i++)
		engine_step(&engine_a, 0, ROWS);
	number = settle();
	cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
	reader_worker_finish(&keen);
	reader_worker_finish(&lazy);
	expect_whole(keen.page, (uint64_t)number);
	cr_expect_gt(figure("waits_for_readers"), 0);
	cr_expect_gt(lazy.page->seen.stats.now.lost, 0);
	cr_expect_eq(lazy.page->seen.wrong, 0);
	cr_expect_eq(figure("readers_demoted"), 0);
}

static uint64_t newest_record(void)
{
	json_t *object = channel_status(daemon_a.dir, channel);
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
	settle(); /* else a step below may find no room and never come */
	for (unsigned int i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct r3ring_reader_options options = job(R3RING_LOSSLESS).options;
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

static bool has_generation_and_step(const struct listener *listener, uint64_t generation)
{
	return listener->newest_generation >= generation && listener->complete >= 2;
}

Test(lossless, it_is_waited_for_in_the_next_generation_too)
{
	struct r3ring_reader_options options = job(R3RING_LOSSLESS).options;
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
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 1);
	listener_close(&listener_a);
}

static bool is_registered(const void *ctx)
{
	(void)ctx;
	return channel_readers(daemon_a.dir, channel) == 1;
}

Test(lossless, the_next_daemon_waits_for_it_too_when_it_goes_on_at_once)
{
	struct reader_job lossless = job(R3RING_LOSSLESS);

	reader_worker_start(&keen, &lossless);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&keen, 1));
	test_daemon_restart(&daemon_a, (const char *[]){"--ring-size", "1M", NULL});
	settle();
	/* Sooner than a heartbeat is missed. */
	cr_expect(reader_worker_wait(is_registered, NULL, 2000));
	reader_worker_finish(&keen);
	cr_expect_eq(keen.page->seen.stats.generations, 1);
}

/* ---- one that stands still ------------------------------------------------- */

static void flood(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++) {
		engine_step(&engine_a, 0, ROWS);
		worker_compute();
	}
}

static bool knows_of_its_loss(const void *ctx)
{
	const struct listener *seen = ctx;

	return seen->overruns > 0;
}

Test(lossless, a_stopped_reader_is_demoted_after_the_stall_limit_and_told_what_it_lost)
{
	struct reader_job lossless = job(R3RING_LOSSLESS);
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
		flood(100);
	cr_assert(has_demoted(NULL));
	waited = figure("waited_for_readers_ms");
	cr_expect_geq(waited, 299);
	cr_expect_leq(waited, 600, "%lld ms", (long long)waited);
	flood(5000); /* laps it */
	settle();    /* and does so once: nothing is written any more when it goes on */
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
	start_with((const char *[]){"--ring-size", "4M", "--stall-limit", STALL_MS, NULL});
	lossless = job(R3RING_LOSSLESS);
	lossy = job(R3RING_LOSSY);
	reader_worker_start(&keen, &lossless);
	reader_worker_start(&lazy, &lossy);
	cr_assert_eq(engine_open(&engine_b, daemon_a.dir, engine_instance(daemon_a.dir, OTHER), 16,
				 &err),
		     0, "%s", err.text);
	listener_open(&listener_a, daemon_a.dir, other);
	reader_worker_pause(&keen);
	for (int i = 0; i < 1000 && !has_waited(NULL); i++)
		flood(20);
	/* The stall is on: the other channel's steps come through. */
	number = engine_step(&engine_b, 0, ROWS);
	cr_expect(listener_read_until(&listener_a, listener_has_step, (uint64_t)number));
	cr_expect_eq(channel_figure(daemon_a.dir, other, "waits_for_readers"), 0);
	flood(2000);
	number = settle();
	cr_assert(reader_worker_accounts(&lazy, (uint64_t)number));
	reader_worker_finish(&lazy);
	expect_whole(lazy.page, (uint64_t)number);
	reader_worker_kill(&keen);
	listener_close(&listener_a);
	finish();
}

/* ---- one that dies ---------------------------------------------------------- */

static bool no_readers(const void *ctx)
{
	(void)ctx;
	return channel_readers(daemon_a.dir, channel) == 0;
}

Test(lossless_patient, failure_39_a_killed_reader_holds_nobody_up, .timeout = 120)
{
	struct reader_job lossless;
	int64_t number;

	start_with((const char *[]){"--ring-size", "1M", "--stall-limit", "100000", NULL});
	lossless = job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	reader_worker_pause(&keen);
	for (int i = 0; i < 100 && !has_waited(NULL); i++)
		flood(20);
	cr_assert(has_waited(NULL));
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 1);
	reader_worker_kill(&keen);
	cr_expect(reader_worker_wait(no_readers, NULL, 2000));
	listener_open(&listener_a, daemon_a.dir, channel);
	number = settle();
	cr_expect(listener_read_until(&listener_a, listener_has_step, (uint64_t)number));
	listener_close(&listener_a);
	cr_expect_eq(figure("readers_demoted"), 0);
	finish();
}

Test(lossless, failure_39_readers_that_are_killed_at_any_time_leave_the_daemon_and_others_whole)
{
	const uint64_t steps = 6000;
	struct reader_job lossless = job(R3RING_LOSSLESS);
	int64_t number;

	reader_worker_start(&lazy, &lossless);
	for (int i = 0; i < 20; i++) {
		reader_worker_start(&keen, &lossless);
		for (uint64_t step = 0; step < steps / 20; step++)
			engine_step(&engine_a, 0, ROWS);
		reader_worker_kill(&keen);
	}
	number = settle();
	cr_assert(reader_worker_accounts(&lazy, (uint64_t)number));
	reader_worker_finish(&lazy);
	expect_whole(lazy.page, (uint64_t)number);
	cr_expect(reader_worker_wait(no_readers, NULL, 2000));
}

/* ---- dropping instead ------------------------------------------------------- */

Test(lossless_dropping, steps_dropped_for_a_full_ring_are_counted_exactly, .timeout = 120)
{
	struct reader_job lossless;
	const struct listener *seen;
	int64_t number;

	start_with((const char *[]){"--ring-size", "1M", "--stall-limit", STALL_MS,
				    "--lossless-policy", "drop", NULL});
	lossless = job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	seen = &keen.page->seen;
	flood(10);
	cr_assert(reader_worker_accounts(&keen, 10));
	reader_worker_pause(&keen);
	flood(8000);
	cr_expect_eq(figure("readers_demoted"), 0);
	reader_worker_go_on(&keen);
	flood(100);
	number = settle();
	cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
	reader_worker_finish(&keen);
	expect_whole(keen.page, (uint64_t)number);
	cr_expect_gt(seen->lost_steps[R3RING_CAUSE_RING_FULL], 0);
	cr_expect_eq(seen->lost_rows[R3RING_CAUSE_RING_FULL],
		     ROWS * seen->lost_steps[R3RING_CAUSE_RING_FULL]);
	cr_expect_eq(seen->complete + seen->lost_steps[R3RING_CAUSE_RING_FULL] +
			     seen->lost_steps[R3RING_CAUSE_BUFFER_FULL] +
			     seen->lost_steps[R3RING_CAUSE_QUEUE_FULL],
		     (uint64_t)number);
	cr_expect_geq(seen->newest_step_end, (uint64_t)number);
	finish();
}

static const char *policy_of(const char *name)
{
	json_t *status = channel_status(daemon_a.dir, name);
	static char policy[16];

	snprintf(policy, sizeof(policy), "%s",
		 json_string_value(json_object_get(status, "lossless_policy")));
	json_decref(status);
	return policy;
}

Test(lossless_dropping, channels_that_a_pattern_names_drop_while_others_demote, .timeout = 60)
{
	struct r3ring_error err = {0};
	struct reader_job lossless;

	start_with((const char *[]){"--ring-size", "1M", "--stall-limit", STALL_MS,
				    "--lossless-drop", "none/*," BASE "*/0", NULL});
	cr_assert_eq(engine_open(&engine_b, daemon_a.dir, engine_instance(daemon_a.dir, OTHER), 16,
				 &err),
		     0, "%s", err.text);
	cr_expect_str_eq(policy_of(channel), "drop");
	cr_expect_str_eq(policy_of(other), "demote");
	lossless = job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	reader_worker_pause(&keen);
	flood(8000);
	cr_expect_eq(figure("readers_demoted"), 0);
	reader_worker_go_on(&keen);
	cr_assert_gt(settle(), 0);
	reader_worker_finish(&keen);
	cr_expect_gt(keen.page->seen.lost_steps[R3RING_CAUSE_RING_FULL], 0);
	finish();
}

static bool has_waited_in_vain(void)
{
	return figure("waited_for_readers_ms") >= 299;
}

/* Of the channel's status: what was lost to a full ring, and what is accounted for. */
static uint64_t lost_to_full_ring(uint64_t *accounted)
{
	json_t *status = channel_status(daemon_a.dir, channel);
	const char *cause;
	uint64_t full = 0;
	json_t *counts;

	*accounted = (uint64_t)json_integer_value(json_object_get(status, "steps_complete"));
	json_object_foreach (json_object_get(status, "lost"), cause, counts) {
		uint64_t steps = (uint64_t)json_integer_value(json_object_get(counts, "steps"));

		*accounted += steps;
		if (strcmp(cause, "ring_full") == 0)
			full = steps;
	}
	json_decref(status);
	return full;
}

/* Whether the status has what was lost up to @ctx, a uint64_t, as steps and by cause. */
static bool has_lost(const void *ctx)
{
	uint64_t accounted;

	return lost_to_full_ring(&accounted) >= *(const uint64_t *)ctx &&
	       accounted == (uint64_t)figure("steps");
}

Test(lossless_dropping, the_status_counts_dropped_steps_while_the_ring_is_full, .timeout = 60)
{
	const char *const args[] = {
		"--ring-size", "1M", "--stall-limit", STALL_MS, "--lossless-policy", "drop", NULL};
	struct reader_job lossless;
	uint64_t lost, accounted;

	start_with(args);
	lossless = job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	flood(10);
	cr_assert(reader_worker_accounts(&keen, 10));
	reader_worker_pause(&keen);
	for (int i = 0; i < 1000 && !has_waited_in_vain(); i++)
		flood(20);
	lost = 500;
	for (int i = 0; i < 100 && !has_lost(&lost); i++)
		flood(20);
	cr_assert(reader_worker_wait(has_lost, &lost, 5000));
	/* Another daemon counts them no less, and no more. */
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, args);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	cr_expect(reader_worker_wait(has_lost, &lost, 5000));
	reader_worker_go_on(&keen);
	cr_assert(reader_worker_accounts(&keen, (uint64_t)settle()));
	lost = lost_to_full_ring(&accounted);
	reader_worker_finish(&keen);
	cr_expect_eq(keen.page->seen.lost_steps[R3RING_CAUSE_RING_FULL], lost);
	cr_expect_eq(listener_accounted(&keen.page->seen), accounted);
	finish();
}

Test(lossless_dropping, a_daemons_death_while_it_drops_steps_leaves_their_cause, .timeout = 60)
{
	const char *const args[] = {
		"--ring-size", "1M", "--stall-limit", STALL_MS, "--lossless-policy", "drop", NULL};
	struct r3ring_producer_stats stats;
	struct reader_job lossless;
	const struct listener *seen;
	int64_t number;

	start_with(args);
	lossless = job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	seen = &keen.page->seen;
	flood(10);
	cr_assert(reader_worker_accounts(&keen, 10));
	reader_worker_pause(&keen);
	for (int i = 0; i < 1000 && !has_waited_in_vain(); i++)
		flood(20);
	flood(1000);
	/* Twice: what the second finds noted it tells, too. */
	for (int i = 0; i < 2; i++) {
		test_daemon_kill(&daemon_a);
		test_daemon_restart(&daemon_a, args);
		cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	}
	reader_worker_go_on(&keen);
	number = settle();
	cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
	reader_worker_finish(&keen);
	r3ring_producer_get_stats(engine_a.producer, &stats);
	cr_expect_gt(seen->lost_steps[R3RING_CAUSE_RING_FULL], 500);
	cr_expect_eq(seen->lost_steps[R3RING_CAUSE_QUEUE_FULL],
		     stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL]);
	cr_expect_eq(seen->lost_steps[R3RING_CAUSE_BUFFER_FULL],
		     stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL]);
	cr_expect_eq(listener_accounted(seen), (uint64_t)number);
	cr_expect_eq(seen->wrong, 0);
	finish();
}

/* ---- a daemon that dies ------------------------------------------------------ */

Test(lossless_patient, a_lossless_reader_loses_nothing_when_the_daemon_is_killed_and_followed,
     .timeout = 120)
{
	const char *const args[] = {"--ring-size", "1M", "--stall-limit", "5000", NULL};
	struct reader_job lossless;
	int64_t number = 0;

	start_with(args);
	lossless = job(R3RING_LOSSLESS);
	lossless.busy_us = 20;
	reader_worker_start(&keen, &lossless);
	for (int i = 0; i < 3; i++) {
		flood(300);
		test_daemon_kill(&daemon_a);
		flood(20);
		test_daemon_restart(&daemon_a, args);
		flood(600);
		number = settle();
		cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
		cr_expect(status_becomes(daemon_a.dir, channel, status_has_readers, 1));
	}
	reader_worker_finish(&keen);
	expect_whole(keen.page, (uint64_t)number);
	cr_expect_eq(keen.page->seen.stats.generations, 1);
	cr_expect_eq(keen.page->seen.stats.demoted, 0);
	finish();
}
