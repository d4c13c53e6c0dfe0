/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons that are killed, stopped and ended under engines at work. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/ledger.h"
#include "tests/support/stand_still.h"
#include "tests/support/worker.h"

#define BASE "faults-daemon"
#define ROWS 4u
#define KILLS 4
#define SHM_NEEDED (512ull << 20) /* rings that no reader falls out of, of some generations */
#define NS_PER_SECOND 1000000000ull

/* No call of a step may wait for anybody. Generous: other programs may have the
 * cores meanwhile. */
#define SLOWEST_NS NS_PER_SECOND

static struct test_daemon daemon_a;
static struct worker worker_a;
static struct ledger ledger_a;
static struct engine engine_a;
static char instance[R3RING_INSTANCE_MAX + 1];

static void start(void)
{
	if (!test_shm_takes(SHM_NEEDED))
		cr_skip_test("/dev/shm has less than 512 MiB free");
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "128M", NULL});
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, BASE));
}

static void finish(void)
{
	ledger_close(&ledger_a);
	if (daemon_a.pid)
		cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
	cr_expect_eq(test_shm_names(instance), 0);
}

TestSuite(faults_daemon, .init = start, .fini = finish, .timeout = 120);

/* ---- an engine at work -------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* One step; notes how long its slowest call took. */
static void timed_step(struct engine *engine, struct worker_page *page)
{
	uint64_t times[4];
	int64_t step;

	times[0] = now_ns();
	step = engine_begin(engine, 0, ROWS);
	times[1] = now_ns();
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(engine, step, layer, ROWS);
	times[2] = now_ns();
	engine_end(engine);
	times[3] = now_ns();
	for (int i = 0; i < 3; i++) {
		if (times[i + 1] - times[i] > page->slowest_ns)
			page->slowest_ns = times[i + 1] - times[i];
	}
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, page->progress + 1);
}

static int run_until_stopped(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	(void)ctx;
	if (engine_open(&engine, daemon_a.dir, instance, 16, &page->err) < 0)
		return 1;
	engine.doorbell_layers = 2;
	while (!r3ring_load_relaxed_u64(&page->stop)) {
		timed_step(&engine, page);
		worker_compute();
	}
	r3ring_producer_get_stats(engine.producer, &page->stats);
	engine_close(&engine);
	return 0;
}

static void end_worker(void)
{
	r3ring_store_relaxed_u64(&worker_a.page->stop, 1);
	cr_assert_eq(worker_wait(&worker_a), 0, "%s", worker_a.page->err.text);
	cr_expect_lt(worker_a.page->slowest_ns, SLOWEST_NS);
}

static bool has_complete(const struct ledger *ledger, uint64_t steps)
{
	return ledger_newest(ledger)->complete >= steps;
}

static uint64_t lost_in_all(void)
{
	uint64_t steps = 0;

	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		steps += ledger_newest(&ledger_a)->lost_steps[cause];
	return steps;
}

static uint64_t dropped_in_all(const struct r3ring_producer_stats *stats)
{
	uint64_t steps = 0;

	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		steps += stats->dropped_steps[cause];
	return steps;
}

/* ---- killed ------------------------------------------------------------- */

/* Kills it under the engine, lets that go on alone, and starts the next. */
static void kill_and_restart(unsigned int kills)
{
	/* Not at the same point of a step each time. */
	uint64_t complete = ledger_newest(&ledger_a)->complete + 20 + 7 * kills;

	cr_assert(ledger_read_until(&ledger_a, has_complete, complete));
	test_daemon_kill(&daemon_a);
	cr_assert(
		worker_reaches(&worker_a, r3ring_load_relaxed_u64(&worker_a.page->progress) + 40));
	test_daemon_restart(&daemon_a, (const char *[]){"--ring-size", "128M", NULL});
	cr_assert(test_daemon_said(&daemon_a, "(came back): goes on"));
}

Test(faults_daemon, killed_again_and_again_every_step_is_delivered_once_or_told_as_lost)
{
	const struct r3ring_producer_stats *stats;

	worker_start(&worker_a, run_until_stopped, NULL);
	cr_assert(worker_reaches(&worker_a, 1));
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	for (unsigned int kills = 0; kills < KILLS; kills++)
		kill_and_restart(kills);
	cr_assert(ledger_read_until(&ledger_a, has_complete,
				    ledger_newest(&ledger_a)->complete + 50));
	end_worker();
	cr_assert(test_daemon_said(&daemon_a, "drained, "));
	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN));
	stats = &worker_a.page->stats;
	cr_expect_eq(ledger_a.count, 1);
	cr_expect_eq(ledger_unaccounted(&ledger_a, stats->steps), 0);
	cr_expect_eq(ledger_newest(&ledger_a)->newest_step, stats->steps);
	/* No death cost a step: what is lost, the engine had no room for. */
	cr_expect_eq(lost_in_all(), dropped_in_all(stats));
	cr_expect_eq(ledger_a.gaps, 0);
	cr_expect_eq(ledger_a.wrong, 0);
}

/* Steps without a daemon until a thousand of them were lost to its absence. Returns
 * 0 when all were counted so from the moment at which its end was noticed. */
static int run_without_daemon(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};
	struct r3ring_producer_stats *stats = &page->stats;
	uint64_t full;

	(void)ctx;
	if (engine_open(&engine, daemon_a.dir, instance, 16, &page->err) < 0)
		return 1;
	do {
		timed_step(&engine, page);
		worker_compute();
		r3ring_producer_get_stats(engine.producer, stats);
	} while (stats->connected);
	full = stats->dropped_steps[R3RING_CAUSE_BUFFER_FULL];
	while (stats->dropped_steps[R3RING_CAUSE_DAEMON_RESTART] < 30000) {
		timed_step(&engine, page);
		r3ring_producer_get_stats(engine.producer, stats);
	}
	engine_close(&engine);
	return stats->dropped_steps[R3RING_CAUSE_BUFFER_FULL] == full &&
			       stats->dropped_steps[R3RING_CAUSE_QUEUE_FULL] == 0 &&
			       stats->generation == 0
		       ? 0
		       : 2;
}

Test(faults_daemon, killed_for_good_the_engine_goes_on_counts_its_losses_and_closes)
{
	worker_start(&worker_a, run_without_daemon, NULL);
	cr_assert(worker_reaches(&worker_a, 20));
	test_daemon_kill(&daemon_a);
	cr_expect_eq(worker_wait(&worker_a), 0, "%s", worker_a.page->err.text);
	cr_expect_lt(worker_a.page->slowest_ns, SLOWEST_NS);
	/* What it left is cleaned up by the next one. */
	test_daemon_restart(&daemon_a, NULL);
}

static bool has_begun(const struct ledger *ledger, uint64_t requests)
{
	return ledger_newest(ledger)->begun >= requests;
}

static int run_with_two_requests(struct worker_page *page, const void *ctx)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "never finished"};
	struct engine engine = {0};

	(void)ctx;
	if (engine_open(&engine, daemon_a.dir, instance, 16, &page->err) < 0)
		return 1;
	r3ring_request_begin(engine.producer, &request);
	r3ring_request_begin(engine.producer, &request);
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, 1);
	pause();
	return 0;
}

Test(faults_daemon, killed_together_with_the_engine_requests_end_when_the_next_engine_begins)
{
	worker_start(&worker_a, run_with_two_requests, NULL);
	cr_assert(worker_reaches(&worker_a, 1));
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	cr_assert(ledger_read_until(&ledger_a, has_begun, 2));
	test_daemon_kill(&daemon_a);
	worker_kill(&worker_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, 16, NULL), 0);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_generations, 2));
	cr_expect_eq(ledger_a.generations[0].closed, R3RING_CLOSED_CRASHED);
	cr_expect_eq(ledger_a.generations[0].next, 2);
	cr_expect_eq(ledger_a.generations[0].ends_unknown, 2);
	cr_expect_eq(ledger_a.generations[0].aborted, 0);
	cr_expect_eq(ledger_a.generations[1].begun, 0);
	engine_close(&engine_a);
}

/* ---- ended -------------------------------------------------------------- */

Test(faults_daemon, terminated_under_an_engine_it_drains_closes_and_the_engine_goes_on)
{
	uint64_t progress, told;

	worker_start(&worker_a, run_until_stopped, NULL);
	cr_assert(worker_reaches(&worker_a, 1));
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	cr_assert(ledger_read_until(&ledger_a, has_complete, 50));
	progress = r3ring_load_relaxed_u64(&worker_a.page->progress);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance), 0);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN));
	told = ledger_newest(&ledger_a)->newest_step;
	cr_expect_geq(told, progress);
	cr_expect_eq(ledger_unaccounted(&ledger_a, told), 0);
	progress = r3ring_load_relaxed_u64(&worker_a.page->progress);
	cr_assert(worker_reaches(&worker_a, progress + 200));
	end_worker();
	cr_expect_gt(worker_a.page->stats.dropped_steps[R3RING_CAUSE_DAEMON_RESTART], 0);
	cr_expect_eq(ledger_a.count, 1);
	cr_expect_eq(ledger_a.wrong, 0);
}

/* ---- stopped ------------------------------------------------------------ */

#define REQUESTS 6000
#define STEPS_A_REQUEST 4

/* Its id is as long as one may be, so that not all fit the queue. */
static int64_t begin_long_request(unsigned int place)
{
	char id[R3RING_TEXT_ID_MAX + 1];
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .session = id, .turn = id, .sample = id};

	memset(id, 'x', sizeof(id));
	id[snprintf(id, sizeof(id), "g1-%u", place)] = '-';
	id[R3RING_TEXT_ID_MAX] = '\0';
	return r3ring_request_begin(engine_a.producer, &request);
}

static void expect_same_losses(const struct r3ring_producer_stats *stats)
{
	const struct ledger_generation *generation = ledger_newest(&ledger_a);

	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		cr_expect_eq(generation->lost_steps[cause], stats->dropped_steps[cause],
			     "steps lost by cause %d", cause);
		cr_expect_eq(generation->lost_rows[cause], stats->dropped_rows[cause],
			     "rows lost by cause %d", cause);
	}
}

Test(faults_daemon, failure_20_stopped_under_an_engine_all_requests_come_and_all_losses_are_exact)
{
	struct r3ring_producer_stats stats;
	struct ledger_generation *generation;
	int64_t handle = 0, last;

	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, 16, NULL), 0);
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	engine_step(&engine_a, 0, ROWS);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_ended_step, 1));
	stand_still(daemon_a.pid);
	for (unsigned int i = 1; i <= REQUESTS; i++) {
		handle = begin_long_request(i);
		cr_assert_eq(handle, i);
		for (unsigned int step = 0; step < STEPS_A_REQUEST; step++)
			engine_step(&engine_a, handle, ROWS);
	}
	r3ring_producer_get_stats(engine_a.producer, &stats);
	cr_expect_gt(stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL], 0);
	cr_expect_gt(stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL], 0);
	kill(daemon_a.pid, SIGCONT);
	cr_assert(ledger_read_until(&ledger_a, has_begun, REQUESTS));
	last = engine_step(&engine_a, handle, ROWS);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_ended_step, (uint64_t)last));
	generation = ledger_newest(&ledger_a);
	cr_expect_eq(generation->begun, REQUESTS);
	cr_expect_eq(generation->disordered, 0);
	cr_expect_eq(generation->newest_attributed, REQUESTS);
	expect_same_losses(&stats);
	cr_expect_eq(ledger_unaccounted(&ledger_a, (uint64_t)last), 0);
	cr_expect_eq(ledger_a.gaps, 0);
	cr_expect_eq(ledger_a.wrong, 0);
	engine_close(&engine_a);
}
