/* SPDX-License-Identifier: Apache-2.0 */
/* Eight channels and sixteen readers on one daemon. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/instance.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"
#include "tests/support/worker.h"

#define CHANNELS 8u
#define READERS 16u
#define STEPS 200u
#define ROWS 8u
#define MAX_ROWS 512u
#define STEP_NS 5000000
#define DEADLINE_MS 20000

/* Fair: at a common rate no channel is behind by more than half and so many steps, */
#define SLACK_STEPS 40u
/* and its steps wait for the daemon, in the mean, at most so many times as long as
 * those of the one that is served best, which counts as this long at least. */
#define GAP_RATIO 8u
#define GAP_LEAST_NS 5000000u

static struct test_daemon daemon_a;
static struct worker engines[CHANNELS];
static struct reader_worker readers[READERS];
static char name[64], channels[CHANNELS][80];
static uint64_t *go; /* shared with the engines */

static void setup(void)
{
	go = mmap(NULL, sizeof(*go), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(go != MAP_FAILED);
}

static void teardown(void)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		if (engines[i].pid)
			worker_kill(&engines[i]);
	}
	for (uint32_t i = 0; i < READERS; i++) {
		if (readers[i].worker.pid)
			reader_worker_kill(&readers[i]);
	}
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

TestSuite(many_channels, .init = setup, .fini = teardown, .timeout = 120);

/* ---- engines ------------------------------------------------------------ */

static void pause_until(struct timespec *next)
{
	next->tv_nsec += STEP_NS;
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL); /* stands for work */
}

static int run_engine(struct worker_page *page, const void *rank)
{
	const struct engine_rank which = {.rank = *(const uint32_t *)rank};
	struct timespec next;
	struct engine engine;

	if (engine_open_rank(&engine, daemon_a.dir, name, which, MAX_ROWS, &page->err) < 0)
		return 1;
	r3ring_store_release_u64(&page->progress, 1);
	while (!r3ring_load_acquire_u64(go))
		worker_compute();
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (uint32_t i = 0; i < STEPS; i++) {
		engine_step(&engine, 0, ROWS);
		pause_until(&next);
	}
	r3ring_producer_get_stats(engine.producer, &page->stats);
	engine_close(&engine);
	return 0;
}

static void start_engines(const char *const *args)
{
	test_daemon_start(&daemon_a, args);
	snprintf(name, sizeof(name), "%s", engine_instance(daemon_a.dir, "eight"));
	for (uint32_t rank = 0; rank < CHANNELS; rank++) {
		snprintf(channels[rank], sizeof(channels[rank]), "%s/%u", name, rank);
		worker_start(&engines[rank], run_engine, &rank);
		cr_assert(worker_reaches(&engines[rank], 1), "%s", engines[rank].page->err.text);
	}
}

/* Two of each channel. */
static void start_readers(void)
{
	for (uint32_t i = 0; i < READERS; i++) {
		const struct reader_job job = {
			.options =
				{
					.size = sizeof(job.options),
					.runtime_dir = daemon_a.dir,
					.channel = channels[i % CHANNELS],
				},
		};

		reader_worker_start(&readers[i], &job);
	}
}

static uint64_t dropped(const struct worker *engine)
{
	uint64_t steps = 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		steps += engine->page->stats.dropped_steps[cause];
	return steps;
}

/* All that the engine did not have to drop came whole and right. */
static void expect_complete(uint32_t reader)
{
	const struct listener *seen = &readers[reader].page->seen;
	uint64_t steps = STEPS - dropped(&engines[reader % CHANNELS]);

	cr_expect(reader_worker_accounts(&readers[reader], STEPS), "reader %u", reader);
	cr_expect_eq(seen->complete, steps, "reader %u: %lu of %lu", reader,
		     (unsigned long)seen->complete, (unsigned long)steps);
	cr_expect_eq(seen->ids_checked, steps * ROWS * ENGINE_LAYERS * ENGINE_TOP_K, "reader %u",
		     reader);
	cr_expect_eq(seen->partial, 0, "reader %u", reader);
	cr_expect_eq(seen->wrong, 0, "reader %u", reader);
	cr_expect_eq(seen->overruns, 0, "reader %u", reader);
	cr_expect_eq(readers[reader].page->seq_breaks, 0, "reader %u", reader);
}

static void wait_for_engines(void)
{
	for (uint32_t rank = 0; rank < CHANNELS; rank++)
		cr_assert_eq(worker_wait(&engines[rank]), 0, "%s", engines[rank].page->err.text);
}

Test(many_channels, sixteen_readers_get_all_of_eight_channels)
{
	start_engines((const char *[]){"--ring-size", "4M", NULL});
	start_readers();
	r3ring_store_release_u64(go, 1);
	wait_for_engines();
	for (uint32_t i = 0; i < READERS; i++)
		expect_complete(i);
}

Test(many_channels, a_reader_that_stands_still_disturbs_neither_its_siblings_nor_other_channels)
{
	start_engines((const char *[]){"--ring-size", "1M", NULL});
	start_readers();
	reader_worker_pause(&readers[0]);
	r3ring_store_release_u64(go, 1);
	wait_for_engines();
	for (uint32_t i = 1; i < READERS; i++)
		expect_complete(i);
	reader_worker_go_on(&readers[0]);
	cr_expect(reader_worker_accounts(&readers[0], 1));
	cr_expect_eq(readers[0].page->seq_breaks, 0);
	cr_expect_eq(readers[0].page->seen.wrong, 0);
}

/* ---- fairness ----------------------------------------------------------- */

/* How a channel was served. */
struct service {
	uint64_t steps;
	uint64_t gap_ns; /* sum, from the end of a step to its STEP_END */
};

static struct service served[CHANNELS];
static uint64_t most_behind; /* steps beyond what is fair */

static void note_behind(uint64_t steps)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		uint64_t fair = served[i].steps * 2 + SLACK_STEPS;

		if (steps > fair && steps - fair > most_behind)
			most_behind = steps - fair;
	}
}

static void note_step(struct service *service, const struct r3ring_step_end_record *head)
{
	service->steps++;
	service->gap_ns += head->publish_ns - head->device_end_ns;
	note_behind(service->steps);
}

/* Reads what is there; returns whether all channels have had all their steps. */
static bool read_all(struct r3ring_instance *instance)
{
	struct r3ring_record record;
	struct r3ring_view view;
	uint32_t whole = 0;

	while (r3ring_instance_next(instance, &view) == 1) {
		struct service *service = &served[r3ring_instance_current(instance)];

		cr_assert_eq(r3ring_record_decode(&record, view.type, view.data, view.len, NULL),
			     0);
		if (record.type == R3RING_STEP_END)
			note_step(service, &record.u.step_end.head);
		cr_assert_eq(r3ring_instance_check(instance), 0);
	}
	for (uint32_t i = 0; i < CHANNELS; i++)
		whole += served[i].steps >= STEPS;
	return whole == CHANNELS;
}

static uint64_t mean_gap(const struct service *service)
{
	return service->gap_ns / service->steps;
}

static void expect_fair_gaps(void)
{
	uint64_t best = UINT64_MAX, worst = 0;

	for (uint32_t i = 0; i < CHANNELS; i++) {
		uint64_t gap = mean_gap(&served[i]);

		best = gap < best ? gap : best;
		worst = gap > worst ? gap : worst;
	}
	best = best > GAP_LEAST_NS ? best : GAP_LEAST_NS;
	cr_expect_leq(worst, GAP_RATIO * best, "%lu ns, the best served %lu ns",
		      (unsigned long)worst, (unsigned long)best);
}

Test(many_channels, eight_channels_at_a_common_rate_are_served_alike)
{
	struct r3ring_instance_options options = {.size = sizeof(options)};
	struct r3ring_instance *instance;
	struct r3ring_error err = {0};
	struct timespec now;
	time_t until;

	start_engines((const char *[]){"--ring-size", "4M", NULL});
	options.runtime_dir = daemon_a.dir;
	options.instance = name;
	cr_assert_eq(r3ring_instance_open(&instance, &options, &err), 0, "%s", err.text);
	cr_assert_eq(r3ring_instance_channels(instance), CHANNELS);
	r3ring_store_release_u64(go, 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec + DEADLINE_MS / 1000;
	while (!read_all(instance) && now.tv_sec < until) {
		r3ring_instance_wait(instance, 100);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	wait_for_engines();
	for (uint32_t i = 0; i < CHANNELS; i++)
		cr_assert_eq(served[i].steps + dropped(&engines[i]), STEPS, "channel %u", i);
	cr_expect_eq(most_behind, 0, "a channel was %lu steps further behind than is fair",
		     (unsigned long)most_behind);
	expect_fair_gaps();
	r3ring_instance_close(instance);
}
