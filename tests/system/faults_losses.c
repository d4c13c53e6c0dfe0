/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer counts as lost is what readers are told, cause by cause. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/ledger.h"
#include "tests/support/stand_still.h"
#include "tests/support/worker.h"

#define BASE "faults-losses"
#define ROWS 4u
#define QUEUE_STEPS 20000u /* more than the queue takes */
#define SPANS_TOO_MANY 70000u

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct ledger ledger_a;

/* A ring that holds all records of such a run. */
static const char *const ring[] = {"--ring-size", "128M", NULL};

static void start(void)
{
	struct r3ring_error err = {0};

	if (!test_shm_takes(256u << 20))
		cr_skip_test("/dev/shm has less than 256 MiB free");
	test_daemon_start(&daemon_a, ring);
	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	engine_step(&engine_a, 0, ROWS);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_ended_step, 1));
}

TestSuite(faults_losses, .init = start, .timeout = 120);

static bool has_told_of(const struct ledger *ledger, uint64_t step)
{
	return ledger_newest(ledger)->newest_step >= step;
}

/* Ends all in good order and compares the accounts. */
static void expect_same_losses(void)
{
	uint64_t steps[R3RING_CAUSE_COUNT] = {0}, rows[R3RING_CAUSE_COUNT] = {0};
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(engine_a.producer, &stats);
	engine_close(&engine_a);
	cr_assert(test_daemon_said(&daemon_a, "drained, "));
	/* Nobody can follow to a generation whose daemon has ended. */
	cr_assert(ledger_read_until(&ledger_a, has_told_of, stats.steps));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN));
	for (unsigned int i = 0; i < ledger_a.count; i++) {
		for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
			steps[cause] += ledger_a.generations[i].lost_steps[cause];
			rows[cause] += ledger_a.generations[i].lost_rows[cause];
		}
	}
	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		cr_expect_eq(steps[cause], stats.dropped_steps[cause], "steps of cause %d: %lu %lu",
			     cause, steps[cause], stats.dropped_steps[cause]);
		cr_expect_eq(rows[cause], stats.dropped_rows[cause], "rows of cause %d: %lu %lu",
			     cause, rows[cause], stats.dropped_rows[cause]);
	}
	cr_expect_eq(ledger_newest(&ledger_a)->newest_step, stats.steps);
	cr_expect_eq(ledger_a.gaps, 0);
	cr_expect_eq(ledger_a.wrong, 0);
	ledger_close(&ledger_a);
	cr_expect_eq(test_shm_names(engine_instance(daemon_a.dir, BASE)), 0);
}

static uint64_t dropped(enum r3ring_cause cause)
{
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(engine_a.producer, &stats);
	return stats.dropped_steps[cause];
}

static void run_steps(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		engine_step(&engine_a, 0, ROWS);
}

static void await_connected(uint32_t connected)
{
	struct r3ring_producer_stats stats;

	do {
		worker_compute();
		r3ring_producer_get_stats(engine_a.producer, &stats);
	} while (stats.connected != connected);
}

static void restart(void)
{
	test_daemon_restart(&daemon_a, ring);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	await_connected(1);
}

/* One with more spans than the queue ever takes. */
static void step_too_big(void)
{
	static uint64_t request[SPANS_TOO_MANY];
	static uint32_t position[SPANS_TOO_MANY], rows[SPANS_TOO_MANY];
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.spans = SPANS_TOO_MANY,
		.span_request = request,
		.span_position = position,
		.span_rows = rows,
	};

	cr_assert_lt(r3ring_step_begin(engine_a.producer, &step, NULL), 0);
}

Test(faults_losses, failure_20_a_full_queue_after_a_restart_is_not_told_as_the_restart)
{
	test_daemon_kill(&daemon_a);
	await_connected(0);
	restart();
	engine_step(&engine_a, 0, ROWS);
	cr_assert(ledger_read_until(&ledger_a, has_told_of, 2));
	stand_still(daemon_a.pid);
	run_steps(QUEUE_STEPS);
	cr_assert_gt(dropped(R3RING_CAUSE_QUEUE_FULL), 0);
	kill(daemon_a.pid, SIGCONT);
	expect_same_losses();
}

Test(faults_losses, failure_20_a_queue_filled_while_there_is_no_daemon_is_told_at_the_close)
{
	test_daemon_kill(&daemon_a);
	await_connected(0);
	run_steps(QUEUE_STEPS);
	restart();
	cr_assert_eq(dropped(R3RING_CAUSE_QUEUE_FULL), 0);
	cr_assert_gt(dropped(R3RING_CAUSE_DAEMON_RESTART), 0);
	expect_same_losses();
}

Test(faults_losses, failure_20_steps_too_big_for_any_entry_are_told_as_such)
{
	step_too_big();
	step_too_big();
	engine_step(&engine_a, 0, ROWS);
	step_too_big();
	cr_assert_eq(dropped(R3RING_CAUSE_TOO_BIG), 3);
	expect_same_losses();
}

Test(faults_losses, failure_20_a_gap_of_three_causes_is_told_by_each)
{
	test_daemon_kill(&daemon_a);
	await_connected(0);
	run_steps(QUEUE_STEPS);
	step_too_big();
	restart();
	stand_still(daemon_a.pid);
	run_steps(QUEUE_STEPS);
	step_too_big();
	cr_assert_gt(dropped(R3RING_CAUSE_DAEMON_RESTART), 0);
	cr_assert_eq(dropped(R3RING_CAUSE_TOO_BIG), 2);
	kill(daemon_a.pid, SIGCONT);
	expect_same_losses();
}
