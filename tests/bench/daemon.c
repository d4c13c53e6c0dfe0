/* SPDX-License-Identifier: Apache-2.0 */
/* The real daemon between a producer and a reader: how late the reader learns of a
 * step's end, and what the daemon uses of a core. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/producer.h>
#include <r3ring/reader.h>

#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define STEPS 60u
#define STEPS_UNTIMED 10u /* until the daemon knows how long a step takes */
#define STEP_NS 20000000ull
#define LAYER_NS 420000ull /* 43 layers leave the rest of a step to the sampler */
#define IDLE_NS 1500000000ull
#define WAIT_MS 2000

/* DeepSeek-V4-Flash, decoding. */
#define LAYERS 43u
#define EXPERTS 256u
#define TOP_K 6u
#define ROWS 256u

struct served {
	struct test_daemon daemon;
	struct r3ring_layer_entry layers[LAYERS];
	struct r3ring_producer *producer;
	const char *channel;
	int64_t *ids;
};

static void sleep_until(uint64_t ns)
{
	const struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u),
				      .tv_nsec = (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

static uint64_t daemon_cpu_ns(const struct served *served)
{
	struct timespec used = {0};
	clockid_t clock;

	if (!clock_getcpuclockid(served->daemon.pid, &clock))
		clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* ---- a served channel ----------------------------------------------------- */

static void served_close(struct served *served)
{
	if (!served)
		return;
	r3ring_producer_close(served->producer);
	test_daemon_close(&served->daemon);
	free(served->ids);
	bench_unshare(served, sizeof(*served));
}

static int open_producer(struct served *served)
{
	const struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = served->daemon.dir,
		.instance = engine_instance(served->daemon.dir, "bench"),
		.device = "host",
		.model = "DeepSeek-V4-Flash",
		.experts = EXPERTS,
		.top_k = TOP_K,
		.max_rows = ROWS,
		.layer_count = LAYERS,
		.layers = served->layers,
	};

	return r3ring_producer_open(&served->producer, &options, NULL);
}

static struct served *served_open(int *rc)
{
	struct served *served = bench_shared(sizeof(*served));

	*rc = served ? bench_unpin() : -ENOMEM;
	if (*rc)
		return served;
	test_daemon_start(&served->daemon, NULL);
	served->channel = engine_channel(served->daemon.dir, "bench");
	served->ids = calloc((size_t)ROWS * TOP_K, sizeof(*served->ids));
	for (uint32_t i = 0; i < LAYERS; i++)
		served->layers[i].layer_id = (int32_t)i;
	*rc = served->ids ? open_producer(served) : -ENOMEM;
	return served;
}

/* ---- steps at their pace ---------------------------------------------------- */

struct run {
	const struct served *served;
	uint32_t reading;
	uint64_t ended_ns[STEPS + 1]; /* by step number: before step_end was called */
	uint64_t read_ns[STEPS + 1];  /* when the reader had its STEP_END */
	uint64_t cpu_ns, wall_ns;     /* of the timed steps */
};

static void note_end(struct run *run, const struct r3ring_view *view, uint64_t now)
{
	if (view->type == R3RING_STEP_END && view->step <= STEPS)
		run->read_ns[view->step] = now;
}

/* Sleeps while there is nothing, as readers do. */
static int read_ends(void *arg)
{
	struct run *run = arg;
	const struct r3ring_reader_options options = {.size = sizeof(options),
						      .runtime_dir = run->served->daemon.dir,
						      .channel = run->served->channel,
						      .from = R3RING_FROM_OLDEST};
	struct r3ring_reader *reader;
	struct r3ring_view view;
	int rc = r3ring_reader_open(&reader, &options, NULL);

	/* Pairs with the acquire in run_steps(); also where it failed. */
	r3ring_store_release_u32(&run->reading, 1);
	while (rc >= 0 && !run->read_ns[STEPS]) {
		rc = r3ring_reader_next(reader, &view);
		if (rc == 1) {
			struct r3ring_view found = view;

			rc = r3ring_reader_check(reader);
			if (!rc)
				note_end(run, &found, bench_now_ns());
		} else if (!rc) {
			rc = r3ring_reader_wait(reader, WAIT_MS);
			rc = rc == 0 ? -ETIMEDOUT : rc;
		}
	}
	return rc < 0 ? rc : 0;
}

static int run_one(const struct served *served, struct run *run, uint64_t begin_ns)
{
	const uint32_t rows = ROWS;
	const uint64_t request = 1;
	const uint32_t position = 0;
	const struct r3ring_step step = {.size = sizeof(step),
					 .total_rows = ROWS,
					 .row_end = ROWS,
					 .valid_end = ROWS,
					 .spans = 1,
					 .span_request = &request,
					 .span_position = &position,
					 .span_rows = &rows};
	const struct r3ring_topk topk = {.ids = served->ids,
					 .type = R3RING_INT64,
					 .rows = ROWS,
					 .columns = TOP_K,
					 .row_stride = TOP_K};
	int64_t number = r3ring_step_begin(served->producer, &step, NULL);

	for (uint32_t layer = 0; number > 0 && layer < LAYERS; layer++) {
		sleep_until(begin_ns + (layer + 1) * LAYER_NS);
		r3ring_capture(served->producer, (int32_t)layer, &topk, NULL);
	}
	if (number < 1 || number > (int64_t)STEPS)
		return -EIO;
	run->ended_ns[number] = bench_now_ns();
	return r3ring_step_end(served->producer, NULL);
}

static int run_steps(const struct served *served, struct run *run)
{
	uint64_t start, cpu = 0, begin = 0;
	unsigned int looks = 0;
	int rc = 0;

	/* Pairs with the release in read_ends(). */
	while (!r3ring_load_acquire_u32(&run->reading))
		wait_turn(&looks);
	start = bench_now_ns();
	for (uint32_t step = 0; !rc && step < STEPS; step++) {
		sleep_until(start + step * STEP_NS);
		if (step == STEPS_UNTIMED) {
			begin = bench_now_ns();
			cpu = daemon_cpu_ns(served);
		}
		rc = run_one(served, run, bench_now_ns());
	}
	run->cpu_ns = daemon_cpu_ns(served) - cpu;
	run->wall_ns = bench_now_ns() - begin;
	return rc;
}

static int run_served(struct run *run)
{
	int rc;
	struct served *served = served_open(&rc);

	run->served = served;
	if (!rc) {
		pid_t pid = bench_spawn(read_ends, run, 1);

		rc = pid < 0 ? pid : run_steps(served, run);
		rc = rc ? rc : bench_join(pid);
	}
	served_close(served);
	return rc;
}

/* ---- rows ---------------------------------------------------------------- */

static int end_to_reader(const struct bench_row *row, double *value)
{
	struct run *run = bench_shared(sizeof(*run));
	double times[STEPS];
	size_t count = 0;
	int rc = run ? run_served(run) : -ENOMEM;

	for (uint32_t step = STEPS_UNTIMED + 1; !rc && step <= STEPS; step++) {
		if (!run->read_ns[step])
			rc = -ENODATA;
		times[count++] = (double)(run->read_ns[step] - run->ended_ns[step]) / 1e3;
	}
	if (!rc)
		*value = bench_percentile(times, count, row->percent);
	bench_unshare(run, sizeof(*run));
	return rc;
}

static int daemon_share(const struct bench_row *row, double *value)
{
	struct run *run = bench_shared(sizeof(*run));
	int rc = run ? run_served(run) : -ENOMEM;

	(void)row;
	if (!rc)
		*value = 100.0 * (double)run->cpu_ns / (double)run->wall_ns;
	bench_unshare(run, sizeof(*run));
	return rc;
}

static int idle_share(const struct bench_row *row, double *value)
{
	int rc;
	struct served *served = served_open(&rc);
	uint64_t start, cpu;

	(void)row;
	if (!rc) {
		start = bench_now_ns();
		cpu = daemon_cpu_ns(served);
		sleep_until(start + IDLE_NS);
		*value = 100.0 * (double)(daemon_cpu_ns(served) - cpu) /
			 (double)(bench_now_ns() - start);
	}
	served_close(served);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "step end to sleeping reader at 50 steps/s, p50",
	 .unit = "us",
	 .measured = end_to_reader,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .percent = 50},
	{.name = "daemon at 50 steps/s, share of a core",
	 .unit = "%",
	 .measured = daemon_share,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 10},
	{.name = "daemon without steps, share of a core",
	 .unit = "%",
	 .measured = idle_share,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 0.1},
};

const struct bench_group bench_daemon = {"daemon", rows, sizeof(rows) / sizeof(rows[0])};
