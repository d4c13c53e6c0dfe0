/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between processes, beside the same way without a ring. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/ring.h>

#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"

#define ARENA_BYTES (8u << 20)
#define DEPTH 16384u
#define ECHO_ARENA_BYTES 65536u
#define ECHO_DEPTH 1024u
#define ROUNDS 20000u
#define WARM_UP 2000u /* more than a lap of the rings that echo: all pages are mapped */
#define RATE_NS 100000000ull
#define RATE_NS_MAX 1000000000ull
#define RATE_SLICE 1000u

enum { WRITER_CPU = 0, READER_CPU = 1 };

/* ---- one-way latency through two rings ----------------------------------- */

struct echo {
	struct made_ring there, back;
	uint32_t size;
};

static int return_records(void *arg)
{
	struct echo *echo = arg;
	struct r3ring_record_spec spec = {.len = echo->size, .units = 1};
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	uint8_t record[64];
	int rc = cursor_make(echo->there.reader_fd, &segment, &cursor);

	for (uint64_t i = 0; !rc && i < WARM_UP + ROUNDS; i++) {
		rc = await_record(cursor, record, sizeof(record));
		if (!rc)
			rc = r3ring_writer_put(echo->back.writer, &spec, record);
	}
	return rc;
}

static int echo_rounds(struct echo *echo, double *times)
{
	struct r3ring_record_spec spec = {.len = echo->size, .units = 1};
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	uint8_t record[64] = {0};
	int rc = cursor_make(echo->back.reader_fd, &segment, &cursor);

	for (uint64_t i = 0; !rc && i < WARM_UP + ROUNDS; i++) {
		uint64_t start = bench_now_ns();

		rc = r3ring_writer_put(echo->there.writer, &spec, record);
		if (!rc)
			rc = await_record(cursor, record, sizeof(record));
		if (i >= WARM_UP)
			times[i - WARM_UP] = (double)(bench_now_ns() - start) / 2;
	}
	r3ring_cursor_close(cursor);
	r3ring_segment_close(segment);
	return rc;
}

static int line_one_way(const struct bench_row *row, double *value)
{
	return bench_line_one_way(row->percent, value);
}

static int record_one_way(const struct bench_row *row, double *value)
{
	struct echo echo = {
		.there.reader_fd = -1, .back.reader_fd = -1, .size = (uint32_t)row->size};
	double *times = calloc(ROUNDS, sizeof(*times));
	int rc = times ? ring_make(&echo.there, ECHO_ARENA_BYTES, ECHO_DEPTH) : -ENOMEM;

	rc = rc ? rc : ring_make(&echo.back, ECHO_ARENA_BYTES, ECHO_DEPTH);
	if (!rc) {
		pid_t pid = bench_spawn(return_records, &echo, READER_CPU);

		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		rc = rc ? rc : echo_rounds(&echo, times);
		rc = rc ? rc : bench_join(pid);
	}
	if (!rc)
		*value = bench_percentile(times, ROUNDS, row->percent);
	ring_free(&echo.back);
	ring_free(&echo.there);
	free(times);
	return rc;
}

/* ---- writer beside lossy readers ------------------------------------------ */

#define CROWD_MAX 8u

struct reader_turns {
	uint64_t looks;
	uint8_t pad[R3RING_LINE - 8];
};

struct crowd {
	uint32_t stop;
	uint8_t pad[R3RING_LINE - 4];
	struct reader_turns turns[CROWD_MAX];
	int reader_fd;
	uint32_t running;
};

static int read_until_stopped(void *arg)
{
	struct crowd *crowd = arg;
	uint64_t *looks = &crowd->turns[r3ring_fetch_add_u32(&crowd->running, 1)].looks;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	uint8_t record[1024];
	struct r3ring_view view;
	int rc = cursor_make(crowd->reader_fd, &segment, &cursor);

	if (rc)
		return rc;
	/* Pairs with the release in writer_rate(). */
	while (!r3ring_load_acquire_u32(&crowd->stop)) {
		r3ring_store_relaxed_u64(looks, *looks + 1);
		rc = r3ring_cursor_read(cursor, &view, record, sizeof(record));
		if (rc < 0 && rc != -EOVERFLOW)
			return rc;
		if (!rc)
			r3ring_cpu_relax();
	}
	return 0;
}

static uint64_t looks_of_all(const struct crowd *crowd)
{
	uint64_t looks = 0;

	for (unsigned int i = 0; i < CROWD_MAX; i++)
		looks += r3ring_load_relaxed_u64(&crowd->turns[i].looks);
	return looks;
}

/* Records for each second of the writer's processor time. Counts only while a
 * reader runs: others may have the readers' core for a while, and one reader for a
 * larger part of the time than eight. */
static int write_for_a_while(struct r3ring_writer *writer, const struct crowd *crowd, uint32_t size,
			     double *rate)
{
	struct r3ring_record_spec spec = {.len = size, .units = 1};
	uint8_t record[1024] = {0};
	uint64_t all = 0, used = 0, written = 0;
	int rc = 0;

	while (!rc && used < RATE_NS && all < RATE_NS_MAX) {
		uint64_t looks = looks_of_all(crowd), start = bench_cpu_ns(), passed;

		for (unsigned int i = 0; !rc && i < RATE_SLICE; i++)
			rc = r3ring_writer_put(writer, &spec, record);
		passed = bench_cpu_ns() - start;
		all += passed;
		if (looks_of_all(crowd) == looks)
			continue;
		used += passed;
		written += RATE_SLICE;
	}
	*rate = (double)written * 1e3 / (double)used;
	return rc ? rc : used ? 0 : -ENODATA;
}

static int writer_rate(uint64_t size, unsigned int readers, double *value)
{
	struct made_ring ring = {.reader_fd = -1};
	struct crowd *crowd = bench_shared(sizeof(*crowd));
	pid_t pids[CROWD_MAX];
	unsigned int started = 0;
	int rc = crowd ? ring_make(&ring, ARENA_BYTES, DEPTH) : -ENOMEM;

	if (!rc) {
		crowd->reader_fd = ring.reader_fd;
		while (started < readers)
			pids[started++] = bench_spawn(read_until_stopped, crowd, READER_CPU);
		rc = bench_pin(WRITER_CPU);
		rc = rc ? rc : write_for_a_while(ring.writer, crowd, (uint32_t)size, value);
		/* Pairs with the acquire in read_until_stopped(). */
		r3ring_store_release_u32(&crowd->stop, 1);
		while (started) {
			int ended = bench_join(pids[--started]);

			rc = rc ? rc : ended;
		}
	}
	ring_free(&ring);
	bench_unshare(crowd, sizeof(*crowd));
	return rc;
}

static int rate_with_one(const struct bench_row *row, double *value)
{
	return writer_rate(row->size, 1, value);
}

static int rate_with_eight(const struct bench_row *row, double *value)
{
	return writer_rate(row->size, CROWD_MAX, value);
}

static const struct bench_row rows[] = {
	{.name = "64 B record one way, p50, beside a cache line",
	 .unit = "ns",
	 .floor = line_one_way,
	 .measured = record_one_way,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2,
	 .size = 64,
	 .percent = 50},
	{.name = "64 B record one way, p99, beside a cache line",
	 .unit = "ns",
	 .floor = line_one_way,
	 .measured = record_one_way,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 3,
	 .size = 64,
	 .percent = 99},
	{.name = "1 KiB writes with 8 lossy readers, beside with 1",
	 .unit = "1e6/s",
	 .floor = rate_with_one,
	 .measured = rate_with_eight,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.9,
	 .size = 1024},
};

const struct bench_group bench_ring = {"ring", rows, sizeof(rows) / sizeof(rows[0])};
