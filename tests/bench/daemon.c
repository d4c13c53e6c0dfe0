/* SPDX-License-Identifier: Apache-2.0 */
/* The real daemon between a producer and a reader: how late the reader learns of a
 * step's end, and what the daemon uses of a core. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/reader.h>

#include "tests/bench/bench.h"
#include "tests/bench/channel.h"

#define STEPS 60u
#define STEPS_UNTIMED 10u /* until the daemon knows how long a step takes */
#define STEP_NS 20000000ull
#define LAYER_NS 420000ull /* 43 layers leave the rest of a step to the sampler */
#define IDLE_NS 1500000000ull
#define WAIT_MS 2000

/* ---- steps at their pace ---------------------------------------------------- */

struct run {
	struct bench_served served;   /* first: what the functions are given */
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
						      .runtime_dir =
							      run->served.channel->daemon.dir,
						      .channel = run->served.channel->name,
						      .from = R3RING_FROM_OLDEST};
	struct r3ring_reader *reader;
	struct r3ring_view view;
	int rc = r3ring_reader_open(&reader, &options, NULL);

	bench_served_reads(&run->served);
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

static int run_one(struct run *run, uint64_t begin_ns)
{
	const struct bench_channel *channel = run->served.channel;
	int64_t number = bench_channel_begin(channel, 0);

	for (uint32_t layer = 0; number > 0 && layer < CHANNEL_LAYERS; layer++) {
		bench_sleep_until(begin_ns + (layer + 1) * LAYER_NS);
		bench_channel_capture(channel, layer);
	}
	if (number < 1 || number > (int64_t)STEPS)
		return -EIO;
	run->ended_ns[number] = bench_now_ns();
	return r3ring_step_end(channel->producer, NULL);
}

static int run_steps(void *arg)
{
	struct run *run = arg;
	const struct bench_channel *channel = run->served.channel;
	uint64_t start = bench_now_ns(), cpu = 0, begin = 0;
	int rc = 0;

	for (uint32_t step = 0; !rc && step < STEPS; step++) {
		bench_sleep_until(start + step * STEP_NS);
		if (step == STEPS_UNTIMED) {
			begin = bench_now_ns();
			cpu = bench_channel_cpu_ns(channel);
		}
		rc = run_one(run, bench_now_ns());
	}
	run->cpu_ns = bench_channel_cpu_ns(channel) - cpu;
	run->wall_ns = bench_now_ns() - begin;
	return rc;
}

static int run_served(struct run *run)
{
	return bench_serve(&run->served, &bench_flash, NULL, read_ends, run_steps);
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
	struct bench_channel *served = bench_channel_open(&bench_flash, 0, &rc);
	uint64_t start, cpu;

	(void)row;
	if (!rc) {
		start = bench_now_ns();
		cpu = bench_channel_cpu_ns(served);
		bench_sleep_until(start + IDLE_NS);
		*value = 100.0 * (double)(bench_channel_cpu_ns(served) - cpu) /
			 (double)(bench_now_ns() - start);
	}
	bench_channel_close(served);
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
