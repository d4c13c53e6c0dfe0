/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load behind the real daemon, as a decode's steps come: layers while the forward runs,
 * bells after every few of them. How long after its end was published a step is in the
 * snapshot, the feed spinning.
 */
#include <errno.h>
#include <string.h>

#include <r3ring/load.h>
#include <r3ring/reader.h>

#include "tests/bench/bench.h"
#include "tests/bench/channel.h"

#define STEPS 120u
#define STEPS_UNTIMED 20u
#define STEP_NS 20000000ull
#define FORWARD_NS 18000000ull /* the rest of a step is the sampler's */
#define BELL_LAYERS 4u
#define END_NS 60000000000ull

static const struct bench_model k3 = {"Kimi-K3", 92, 896, 16};

static const struct bench_model *model_of(const struct bench_row *row)
{
	return row->size == k3.layers ? &k3 : &bench_flash;
}

struct run {
	struct bench_served served; /* first: what the functions are given */
	uint32_t ends;              /* steps shown */
	double us[STEPS];           /* from its end's publishing until a step was shown */
};

/* ---- reading -------------------------------------------------------------------- */

static int intact(void *reader)
{
	return r3ring_reader_check(reader);
}

static int take(struct run *run, struct r3ring_load *load, struct r3ring_reader *reader)
{
	struct r3ring_step_end_record end = {0};
	struct r3ring_view view;
	int rc = r3ring_reader_next(reader, &view);

	if (rc != 1)
		return rc;
	if (view.type == R3RING_STEP_END && view.len >= sizeof(end))
		memcpy(&end, view.data, sizeof(end));
	rc = r3ring_load_feed_view(load, 0, &view, intact, reader);
	if (rc == 0 && end.publish_ns && run->ends < STEPS)
		run->us[run->ends++] = (double)(bench_now_ns() - end.publish_ns) / 1e3;
	return rc;
}

/* Every step must have been counted whole. */
static int check_load(const struct run *run, const struct r3ring_load *load)
{
	struct r3ring_load_snapshot *snapshot;
	const struct r3ring_load_info *info;
	int rc = r3ring_load_snapshot_create(&snapshot);

	if (rc)
		return rc;
	rc = r3ring_load_read(load, 0, R3RING_LOAD_EVER, R3RING_LOAD_ANY_EPOCH, snapshot);
	info = r3ring_load_snapshot_info(snapshot);
	if (!rc && (info->steps != STEPS ||
		    info->accounts.counted !=
			    (uint64_t)STEPS * CHANNEL_ROWS * run->served.channel->model->layers))
		rc = -EBADMSG;
	r3ring_load_snapshot_free(snapshot);
	return rc;
}

static int read_load(void *arg)
{
	struct run *run = arg;
	const struct r3ring_reader_options options = {.size = sizeof(options),
						      .runtime_dir =
							      run->served.channel->daemon.dir,
						      .channel = run->served.channel->name,
						      .from = R3RING_FROM_OLDEST};
	struct r3ring_load *load = NULL;
	struct r3ring_reader *reader = NULL;
	uint64_t deadline = bench_now_ns() + END_NS;
	int rc = r3ring_load_create(&load, NULL, NULL);

	rc = rc ? rc : r3ring_load_channel(load, run->served.channel->name);
	rc = rc ? rc : r3ring_reader_open(&reader, &options, NULL);
	bench_served_reads(&run->served);
	while (rc >= 0 && run->ends < STEPS) {
		rc = take(run, load, reader);
		if (bench_now_ns() > deadline)
			rc = -ETIMEDOUT;
	}
	rc = rc < 0 ? rc : check_load(run, load);
	r3ring_reader_close(reader);
	r3ring_load_destroy(load);
	return rc;
}

/* ---- steps at their pace ----------------------------------------------------------- */

/* Skewed as routing is: of each row's experts half are among an eighth of all. */
static void fill_ids(const struct bench_channel *served)
{
	const struct bench_model *model = served->model;
	uint32_t seed = 1;

	for (uint32_t i = 0; i < CHANNEL_ROWS * model->top_k; i++) {
		seed = seed * 1664525 + 1013904223;
		served->ids[i] = (seed >> 8) % (i % 2 ? model->experts : model->experts / 8);
	}
}

static int run_one(const struct bench_channel *served, uint64_t begin_ns)
{
	int64_t number = bench_channel_begin(served, BELL_LAYERS);
	uint32_t layers = served->model->layers;

	for (uint32_t layer = 0; number > 0 && layer < layers; layer++) {
		bench_sleep_until(begin_ns + (layer + 1) * FORWARD_NS / layers);
		bench_channel_capture(served, layer);
	}
	return number < 1 ? -EIO : r3ring_step_end(served->producer, NULL);
}

static int run_steps(void *arg)
{
	const struct run *run = arg;
	uint64_t start = bench_now_ns();
	int rc = 0;

	for (uint32_t step = 0; !rc && step < STEPS; step++) {
		bench_sleep_until(start + step * STEP_NS);
		rc = run_one(run->served.channel, bench_now_ns());
	}
	return rc;
}

static int end_to_snapshot(const struct bench_row *row, double *value)
{
	struct run *run = bench_shared(sizeof(*run));
	int rc = run ? bench_serve(&run->served, model_of(row), fill_ids, read_load, run_steps)
		     : -ENOMEM;

	if (!rc)
		*value = bench_percentile(run->us + STEPS_UNTIMED, STEPS - STEPS_UNTIMED,
					  row->percent);
	bench_unshare(run, sizeof(*run));
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "DeepSeek-V4-Flash, r3ringd, 50 steps/s, end to snapshot, p99",
	 .unit = "us",
	 .measured = end_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 43,
	 .percent = 99},
	{.name = "Kimi-K3, r3ringd, 50 steps/s, end to snapshot, p50",
	 .unit = "us",
	 .measured = end_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 92,
	 .percent = 50},
	{.name = "Kimi-K3, r3ringd, 50 steps/s, end to snapshot, p99",
	 .unit = "us",
	 .measured = end_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 92,
	 .percent = 99},
};

const struct bench_group bench_load_served = {"load", rows, sizeof(rows) / sizeof(*rows)};
