/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that is told to end while a reader holds up what an engine that has closed
 * left in its queue: there is no next daemon for that. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"

#define BASE "patience"
#define ROWS 8u
#define ROWS_MOST 1024u /* of a step: the buffer holds several such, so many small ones */
#define NEVER "600000"  /* ms; the daemon's own patience is two seconds */

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct reader_worker reader_a;
static struct r3ring_producer_stats stats;
static char channel[80];

static bool has_waited(const void *ctx)
{
	(void)ctx;
	return channel_figure(daemon_a.dir, channel, "waits_for_readers") > 0;
}

/* A reader that has read one step and stands still. */
static void start_with(const char *const *args)
{
	struct reader_job lossless = {.options = {.size = sizeof(lossless.options),
						  .runtime_dir = daemon_a.dir,
						  .channel = channel,
						  .mode = R3RING_LOSSLESS,
						  .limit_bytes = 1}};
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, args);
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE),
				 ROWS_MOST, &err),
		     0, "%s", err.text);
	reader_worker_start(&reader_a, &lossless);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&reader_a, 1));
	reader_worker_pause(&reader_a);
}

/* The engine closes, with its steps behind the reader; then the daemon ends. */
static void end_both(void)
{
	cr_assert(reader_worker_wait(has_waited, NULL, 10000));
	r3ring_producer_get_stats(engine_a.producer, &stats);
	engine_close(&engine_a);
	cr_assert(test_daemon_said(&daemon_a, "closed it"));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	reader_worker_go_on(&reader_a);
	cr_assert(reader_worker_accounts(&reader_a, stats.steps));
	reader_worker_finish(&reader_a);
	cr_expect_eq(reader_a.page->seen.wrong, 0);
	cr_expect_eq(reader_a.page->accounted, stats.steps);
	test_daemon_close(&daemon_a);
}

static void expect_lost_as_dropped(enum r3ring_cause cause)
{
	cr_expect_eq(reader_a.page->seen.lost_steps[cause], stats.dropped_steps[cause]);
}

Test(daemon_patience, what_a_closed_engine_left_is_delivered_when_it_is_over, .timeout = 60)
{
	const uint64_t steps = 100; /* fewer than the ring holds */

	start_with((const char *[]){"--ring-size", "1M", "--stall-limit", NEVER, NULL});
	for (uint64_t i = 1; i < steps; i++)
		engine_step(&engine_a, 0, ROWS);
	end_both();
	cr_expect_eq(stats.steps, steps);
	cr_expect_eq(reader_a.page->seen.complete, steps);
	cr_expect_eq(reader_a.page->seen.stats.now.lost, 0);
}

/* So that the engine's last steps find no entry. */
static void fill_the_queue(void)
{
	for (int i = 0; i < 100000 && !stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL]; i++) {
		engine_step(&engine_a, 0, ROWS);
		r3ring_producer_get_stats(engine_a.producer, &stats);
	}
}

Test(daemon_patience, what_readers_held_up_until_it_was_over_is_lost_to_the_full_ring,
     .timeout = 60)
{
	const struct listener *seen;

	start_with((const char *[]){"--ring-size", "1M", "--stall-limit", NEVER,
				    "--lossless-policy", "drop", NULL});
	fill_the_queue();
	end_both();
	seen = &reader_a.page->seen;
	cr_expect_gt(seen->lost_steps[R3RING_CAUSE_QUEUE_FULL], 0);
	expect_lost_as_dropped(R3RING_CAUSE_QUEUE_FULL);
	expect_lost_as_dropped(R3RING_CAUSE_BUFFER_FULL);
	cr_expect_gt(seen->lost_steps[R3RING_CAUSE_RING_FULL], 0);
	cr_expect_eq(seen->lost_rows[R3RING_CAUSE_RING_FULL],
		     ROWS * seen->lost_steps[R3RING_CAUSE_RING_FULL]);
	cr_expect_eq(seen->stats.now.lost, 0);
}
