/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announcing a step (step_begin plus step_end), the daemon's end consumed by
 * another process that does not sleep; beside copying the announcement's bytes
 * into lines that the other process has read.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/producer.h>

#include "tests/bench/bench.h"
#include "tests/support/fake_service.h"

#define ROUNDS 4000u
#define WARM_UP 400u
#define SPANS_MAX 1024u
#define AREA_BYTES (2u << 20) /* as a lane */
#define LOOKS_BEFORE_YIELD 1024u

enum { PRODUCER_CPU = 0, DAEMON_CPU = 1 };

static void wait_turn(unsigned int *looks)
{
	r3ring_cpu_relax();
	if (++*looks % LOOKS_BEFORE_YIELD == 0)
		sched_yield();
}

/* Bytes of a step's entry with @spans spans. */
static uint64_t entry_bytes(uint64_t spans)
{
	return (sizeof(struct lane_entry) + sizeof(struct lane_step) +
		sizeof(struct r3ring_step_record) + spans * sizeof(struct r3ring_span) + 63) &
	       ~63ull;
}

/* ---- the floor: copying into lines that the other core has read -------- */

struct copied {
	uint64_t there; /* copies made, by the writer */
	uint8_t pad0[R3RING_LINE - 8];
	uint64_t read; /* copies read */
	uint8_t pad1[R3RING_LINE - 8];
	uint64_t bytes;
	uint64_t sum; /* so that reading is not left out */
	uint8_t area[AREA_BYTES];
};

static uint64_t place(const struct copied *copied, uint64_t round)
{
	return round % (AREA_BYTES / copied->bytes) * copied->bytes;
}

static int read_copies(void *arg)
{
	struct copied *copied = arg;
	unsigned int looks = 0;

	for (uint64_t round = 0; round < WARM_UP + ROUNDS; round++) {
		const uint8_t *at = copied->area + place(copied, round);

		/* Pairs with the writer's release. */
		while (r3ring_load_acquire_u64(&copied->there) <= round)
			wait_turn(&looks);
		for (uint64_t line = 0; line < copied->bytes; line += 64)
			copied->sum += at[line];
		/* Pairs with the writer's acquire. */
		r3ring_store_release_u64(&copied->read, round + 1);
	}
	return 0;
}

static double copy_once(struct copied *copied, const uint8_t *from, uint64_t round)
{
	unsigned int looks = 0;
	uint64_t start = bench_now_ns();
	double ns;

	memcpy(copied->area + place(copied, round), from, copied->bytes);
	/* Pairs with the reader's acquire. */
	r3ring_store_release_u64(&copied->there, round + 1);
	ns = (double)(bench_now_ns() - start);
	/* Pairs with the reader's release. */
	while (r3ring_load_acquire_u64(&copied->read) <= round)
		wait_turn(&looks);
	return ns;
}

static int copy_floor(const struct bench_row *row, double *value)
{
	struct copied *copied = bench_shared(sizeof(*copied));
	uint8_t *from = calloc(1, entry_bytes(SPANS_MAX));
	double *times = calloc(ROUNDS, sizeof(*times));
	int rc = -ENOMEM;

	if (copied && from && times) {
		pid_t pid;

		copied->bytes = entry_bytes(row->size);
		pid = bench_spawn(read_copies, copied, DAEMON_CPU);
		rc = pid < 0 ? pid : bench_pin(PRODUCER_CPU);
		for (uint64_t round = 0; !rc && round < WARM_UP + ROUNDS; round++) {
			double ns = copy_once(copied, from, round);

			if (round >= WARM_UP)
				times[round - WARM_UP] = ns;
		}
		rc = rc ? rc : bench_join(pid);
	}
	if (!rc)
		*value = bench_percentile(times, ROUNDS, 50);
	free(times);
	free(from);
	bench_unshare(copied, sizeof(*copied));
	return rc;
}

/* ---- steps -------------------------------------------------------------- */

struct stepping {
	struct fake_service service;
	uint64_t ready; /* the producer may be opened */
	uint64_t read;  /* steps read */
	uint64_t sum;
	uint64_t spans;
	double ns;
};

static void read_entry(struct stepping *stepping, const uint8_t *payload)
{
	for (uint32_t byte = 0; byte < stepping->service.entry.payload_bytes; byte += 64)
		stepping->sum += payload[byte];
}

/* The daemon's process: never sleeps, reads all of each entry, gives back. */
static int be_daemon(void *arg)
{
	struct stepping *stepping = arg;
	unsigned int looks = 0;
	int rc;

	fake_service_expect(&stepping->service);
	rc = fake_service_await(&stepping->service);
	for (uint64_t taken = 0; !rc && taken < WARM_UP + ROUNDS;) {
		const uint8_t *payload = fake_service_next(&stepping->service, &rc);

		if (!payload) {
			wait_turn(&looks);
			continue;
		}
		read_entry(stepping, payload);
		fake_service_release(&stepping->service, 1);
		/* Pairs with the acquire in step_once(). */
		r3ring_store_release_u64(&stepping->read, ++taken);
	}
	fake_service_next(&stepping->service, NULL);
	return rc;
}

static double step_once(struct stepping *stepping, struct r3ring_producer *producer,
			const struct r3ring_step *step, uint64_t round)
{
	unsigned int looks = 0;
	uint64_t start = bench_now_ns();
	double ns;

	r3ring_step_begin(producer, step, NULL);
	r3ring_step_end(producer, NULL);
	ns = (double)(bench_now_ns() - start);
	/* Pairs with the release in be_daemon(). */
	while (r3ring_load_acquire_u64(&stepping->read) <= round)
		wait_turn(&looks);
	return ns;
}

/* One layer, so that the device's own work counts as little as it can. */
static int open_producer(struct stepping *stepping, struct r3ring_producer **producer)
{
	struct r3ring_producer_options options = fake_service_options(&stepping->service);

	options.layer_count = 1;
	options.max_rows = SPANS_MAX;
	return r3ring_producer_open(producer, &options, NULL);
}

static int run_steps(struct stepping *stepping, double *times)
{
	static uint64_t request[SPANS_MAX];
	static uint32_t position[SPANS_MAX], row[SPANS_MAX], rows[SPANS_MAX];
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = (uint32_t)stepping->spans,
		.row_end = (uint32_t)stepping->spans,
		.valid_end = (uint32_t)stepping->spans,
		.spans = (uint32_t)stepping->spans,
		.span_request = request,
		.span_position = position,
		.span_row = row,
		.span_rows = rows,
	};
	struct r3ring_producer *producer;
	struct r3ring_producer_stats stats;
	int rc = open_producer(stepping, &producer);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < SPANS_MAX; i++) {
		request[i] = i;
		row[i] = i;
		rows[i] = 1;
	}
	for (uint64_t round = 0; round < WARM_UP + ROUNDS; round++) {
		double ns = step_once(stepping, producer, &step, round);

		if (round >= WARM_UP)
			times[round - WARM_UP] = ns;
	}
	r3ring_producer_get_stats(producer, &stats);
	r3ring_producer_close(producer);
	return stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL] ||
			       stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL]
		       ? -ENOBUFS
		       : 0;
}

static int step_measured(const struct bench_row *row, double *value)
{
	struct stepping *stepping = bench_shared(sizeof(*stepping));
	double *times = calloc(ROUNDS, sizeof(*times));
	int rc = -ENOMEM;

	if (stepping && times) {
		rc = fake_service_start(&stepping->service);
		if (!rc) {
			pid_t pid;

			stepping->spans = row->size;
			pid = bench_spawn(be_daemon, stepping, DAEMON_CPU);
			rc = pid < 0 ? pid : bench_pin(PRODUCER_CPU);
			rc = rc ? rc : run_steps(stepping, times);
			rc = rc ? rc : bench_join(pid);
			fake_service_stop(&stepping->service);
		}
	}
	if (!rc)
		*value = bench_percentile(times, ROUNDS, 50);
	free(times);
	bench_unshare(stepping, sizeof(*stepping));
	return rc;
}

static const struct bench_row rows[] = {
	{"step_begin + step_end, 1 span", "ns", NULL, step_measured, BENCH_VALUE_AT_MOST, 1000, 1,
	 50},
	{"step_begin + step_end, 64 spans", "ns", NULL, step_measured, BENCH_VALUE_AT_MOST, 1000,
	 64, 50},
	{"step_begin + step_end, 1024 spans, beside copying their bytes", "ns", copy_floor,
	 step_measured, BENCH_RATIO_AT_MOST, 1.5, 1024, 50},
};

const struct bench_group bench_step = {
	"step",
	rows,
	sizeof(rows) / sizeof(rows[0]),
};
