/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What monitors cost the daemon: records that it moves in a second of its own processor time,
 * with a monitor on the channel beside without. Steps come in bursts, which the daemon
 * takes at its own speed; what the monitor itself uses is its own.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <r3ring/reader.h>

#include "tests/bench/bench.h"
#include "tests/bench/channel.h"
#include "tests/support/channel_status.h"
#include "tests/support/command.h"
#include "tests/support/engine.h"

#define BURST 16u               /* steps */
#define BUFFER_BYTES (8u << 20) /* has room for a burst */
#define BURSTS 150u
#define WARM_UP 10u /* bursts */
#define LOOK_NS 200000
#define PATIENCE_NS 20000000000ull
#define RECORDS (CHANNEL_LAYERS + 2u) /* of a step */

enum { NOBODY, TOP, SERVE };

struct bed {
	struct bench_channel *channel;
	struct r3ring_reader *reader; /* knows when the daemon has done with a burst */
	struct command monitor;
};

/* ---- bursts ---------------------------------------------------------------- */

static int take_what_is_there(const struct bed *bed, uint64_t *ended)
{
	struct r3ring_view view;
	int rc;

	while ((rc = r3ring_reader_next(bed->reader, &view)) == 1) {
		struct r3ring_view found = view;

		if (r3ring_reader_check(bed->reader) == 0 && found.type == R3RING_STEP_END)
			*ended = found.step;
	}
	return rc == -EOVERFLOW ? 0 : rc;
}

/* Until the step's end was published, without asking to be woken. */
static int await_end(const struct bed *bed, uint64_t step)
{
	const struct timespec nap = {.tv_nsec = LOOK_NS};
	uint64_t ended = 0, begin = bench_now_ns();
	int rc = 0;

	while (rc == 0 && ended < step) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		rc = take_what_is_there(bed, &ended);
		if (rc == 0 && bench_now_ns() - begin > PATIENCE_NS)
			rc = -ETIMEDOUT;
	}
	return rc;
}

static int run_burst(const struct bed *bed)
{
	int64_t step = 0;

	for (uint32_t i = 0; i < BURST; i++) {
		step = bench_channel_begin(bed->channel, 0);
		if (step < 1)
			return step < 0 ? (int)step : -EIO;
		for (uint32_t layer = 0; layer < CHANNEL_LAYERS; layer++)
			bench_channel_capture(bed->channel, layer);
		r3ring_step_end(bed->channel->producer, NULL);
	}
	return await_end(bed, (uint64_t)step);
}

static int run_bursts(const struct bed *bed, unsigned int count)
{
	int rc = 0;

	while (rc == 0 && count--)
		rc = run_burst(bed);
	return rc;
}

/* ---- monitors -------------------------------------------------------------- */

static int open_reader(struct bed *bed)
{
	const struct r3ring_reader_options options = {.size = sizeof(options),
						      .runtime_dir = bed->channel->daemon.dir,
						      .channel = bed->channel->name,
						      .from = R3RING_FROM_LATEST};

	return r3ring_reader_open(&bed->reader, &options, NULL);
}

/* It is on the channel once all of its readers are, beside ours: those of serve are two, for
 * load and for routes. */
static int start_monitor(struct bed *bed, uint64_t which)
{
	const char *dir = bed->channel->daemon.dir;
	const char *instance = engine_instance(dir, "bench");

	if (which == TOP)
		command_start(&bed->monitor, dir,
			      (const char *const[]){"top", "--jsonl", "--interval", "0.5",
						    "--instance", instance, NULL});
	else if (which == SERVE)
		command_start(&bed->monitor, dir,
			      (const char *const[]){"serve", "--listen", "127.0.0.1:0",
						    "--instance", instance, NULL});
	else
		return 0;
	return status_becomes(dir, bed->channel->name, status_has_readers, which == SERVE ? 3 : 2)
		       ? 0
		       : -ETIMEDOUT;
}

static int measure(uint64_t which, double *value)
{
	struct r3ring_producer_stats stats;
	struct bed bed = {0};
	uint64_t cpu = 0, dropped = 0;
	int rc;

	bed.channel = bench_channel_open(&bench_flash, BUFFER_BYTES, &rc);
	rc = rc ? rc : open_reader(&bed);
	rc = rc ? rc : start_monitor(&bed, which);
	rc = rc ? rc : run_bursts(&bed, WARM_UP);
	if (rc == 0) {
		cpu = bench_channel_cpu_ns(bed.channel);
		rc = run_bursts(&bed, BURSTS);
	}
	if (rc == 0) {
		cpu = bench_channel_cpu_ns(bed.channel) - cpu;
		*value = (double)BURST * BURSTS * RECORDS / ((double)cpu / 1e9) / 1e3;
		r3ring_producer_get_stats(bed.channel->producer, &stats);
		for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
			dropped += stats.dropped_steps[cause];
		rc = dropped ? -ENOBUFS : 0;
	}
	if (bed.monitor.pid)
		command_free(&bed.monitor);
	r3ring_reader_close(bed.reader);
	bench_channel_close(bed.channel);
	return rc;
}

static int alone(const struct bench_row *row, double *value)
{
	(void)row;
	return measure(NOBODY, value);
}

static int watched(const struct bench_row *row, double *value)
{
	return measure(row->size, value);
}

static const struct bench_row rows[] = {
	{.name = "records a CPU second of the daemon's, r3ring top on",
	 .unit = "k/s",
	 .floor = alone,
	 .measured = watched,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.98,
	 .size = TOP},
	{.name = "records a CPU second of the daemon's, r3ring serve on",
	 .unit = "k/s",
	 .floor = alone,
	 .measured = watched,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.98,
	 .size = SERVE},
};

const struct bench_group bench_monitors = {"monitors", rows, sizeof(rows) / sizeof(rows[0])};
