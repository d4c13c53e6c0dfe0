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
#define COPIED_BYTES (256ull << 20)
#define UNTIMED_BYTES (32ull << 20) /* some laps, until both sides have mapped all pages */
#define RATE_NS 200000000ull

enum { WRITER_CPU = 0, READER_CPU = 1 };

/* ---- one-way latency: half of a round trip ------------------------------ */

struct line_pair {
	uint64_t there;
	uint8_t pad0[R3RING_LINE - 8];
	uint64_t back;
	uint8_t pad1[R3RING_LINE - 8];
};

static void await_word(const uint64_t *word, uint64_t value)
{
	unsigned int looks = 0;

	/* Pairs with the other side's release of the same word. */
	while (r3ring_load_acquire_u64(word) != value)
		wait_turn(&looks);
}

static int return_lines(void *arg)
{
	struct line_pair *lines = arg;

	for (uint64_t i = 1; i <= WARM_UP + ROUNDS; i++) {
		await_word(&lines->there, i);
		/* Pairs with the acquire in await_word(). */
		r3ring_store_release_u64(&lines->back, i);
	}
	return 0;
}

static int line_one_way(const struct bench_row *row, double *value)
{
	struct line_pair *lines = bench_shared(sizeof(*lines));
	double *times = calloc(ROUNDS, sizeof(*times));
	int rc = -ENOMEM;

	if (lines && times) {
		pid_t pid = bench_spawn(return_lines, lines, READER_CPU);

		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		for (uint64_t i = 1; !rc && i <= WARM_UP + ROUNDS; i++) {
			uint64_t start = bench_now_ns();

			/* Pairs with the acquire in await_word(). */
			r3ring_store_release_u64(&lines->there, i);
			await_word(&lines->back, i);
			if (i > WARM_UP)
				times[i - WARM_UP - 1] = (double)(bench_now_ns() - start) / 2;
		}
		rc = rc ? rc : bench_join(pid);
	}
	if (!rc)
		*value = bench_percentile(times, ROUNDS, row->percent);
	free(times);
	bench_unshare(lines, sizeof(*lines));
	return rc;
}

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

/* ---- throughput, reader copies out --------------------------------------- */

/* An arena of blocks with one flag each: full or empty. */
struct blocks {
	uint64_t size;
	uint64_t count;
	uint32_t *flags; /* one a line */
	uint8_t *arena;
	uint8_t seen; /* sum of a byte of each block: what is copied must be used */
};

static int copy_blocks_out(void *arg)
{
	struct blocks *blocks = arg;
	uint8_t *buffer = malloc(blocks->size);

	if (!buffer)
		return -ENOMEM;
	for (uint64_t done = 0, i = 0; done < COPIED_BYTES; done += blocks->size, i++) {
		uint64_t block = i % blocks->count;
		uint32_t *flag = &blocks->flags[block * R3RING_LINE / sizeof(uint32_t)];
		unsigned int looks = 0;

		/* Pairs with the release behind the copy in. */
		while (!r3ring_load_acquire_u32(flag))
			wait_turn(&looks);
		memcpy(buffer, blocks->arena + block * blocks->size, blocks->size);
		blocks->seen = (uint8_t)(blocks->seen + buffer[i % blocks->size]);
		/* Pairs with the acquire before the copy in. */
		r3ring_store_release_u32(flag, 0);
	}
	free(buffer);
	return blocks->seen == 0 ? 0 : -EBADMSG;
}

/* Returns when the timed part began. */
static uint64_t copy_blocks_in(struct blocks *blocks, const uint8_t *source)
{
	uint64_t start = 0;

	for (uint64_t done = 0, i = 0; done < COPIED_BYTES; done += blocks->size, i++) {
		uint64_t block = i % blocks->count;
		uint32_t *flag = &blocks->flags[block * R3RING_LINE / sizeof(uint32_t)];
		unsigned int looks = 0;

		if (done == UNTIMED_BYTES)
			start = bench_now_ns();
		/* Pairs with the release behind the copy out. */
		while (r3ring_load_acquire_u32(flag))
			wait_turn(&looks);
		memcpy(blocks->arena + block * blocks->size, source, blocks->size);
		/* Pairs with the acquire before the copy out. */
		r3ring_store_release_u32(flag, 1);
	}
	return start;
}

static double gigabytes_per_second(uint64_t start_ns)
{
	return (double)(COPIED_BYTES - UNTIMED_BYTES) / (double)(bench_now_ns() - start_ns);
}

static int blocks_throughput(const struct bench_row *row, double *value)
{
	struct blocks blocks = {.size = row->size, .count = ARENA_BYTES / row->size};
	size_t flags_bytes = blocks.count * R3RING_LINE;
	uint8_t *source = calloc(1, row->size);
	uint64_t start;
	pid_t pid;
	int rc = -ENOMEM;

	blocks.flags = bench_shared(flags_bytes);
	blocks.arena = bench_shared(ARENA_BYTES);
	if (source && blocks.flags && blocks.arena) {
		pid = bench_spawn(copy_blocks_out, &blocks, READER_CPU);
		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		if (!rc) {
			start = copy_blocks_in(&blocks, source);
			rc = bench_join(pid);
			*value = gigabytes_per_second(start);
		}
	}
	free(source);
	bench_unshare(blocks.arena, ARENA_BYTES);
	bench_unshare(blocks.flags, flags_bytes);
	return rc;
}

/* The ring's writer never waits; here it does, for a word with the records that
 * the reader has taken, so that both sides move every byte. */
struct stream {
	struct made_ring ring;
	uint64_t size;
	uint64_t records;
	uint64_t taken_step; /* how often the reader says what it has taken */
	uint64_t *taken;
};

static int copy_records_out(void *arg)
{
	struct stream *stream = arg;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	uint8_t *buffer = malloc(stream->size);
	int rc = buffer ? cursor_make(stream->ring.reader_fd, &segment, &cursor) : -ENOMEM;

	for (uint64_t i = 1; !rc && i <= stream->records; i++) {
		rc = await_record(cursor, buffer, stream->size);
		if (i % stream->taken_step == 0)
			/* Pairs with the acquire in copy_records_in(). */
			r3ring_store_release_u64(stream->taken, i);
	}
	free(buffer);
	return rc;
}

static int copy_records_in(struct stream *stream, const uint8_t *source, uint64_t *start)
{
	struct r3ring_record_spec spec = {.len = (uint32_t)stream->size, .units = 1};
	uint64_t ahead = ARENA_BYTES / stream->size * 3 / 4;
	uint64_t taken = 0;
	int rc = 0;

	for (uint64_t i = 0; !rc && i < stream->records; i++) {
		unsigned int looks = 0;

		if (i * stream->size == UNTIMED_BYTES)
			*start = bench_now_ns();
		while (i - taken >= ahead) {
			/* Pairs with the release in copy_records_out(). */
			taken = r3ring_load_acquire_u64(stream->taken);
			if (i - taken >= ahead)
				wait_turn(&looks);
		}
		rc = r3ring_writer_put(stream->ring.writer, &spec, source);
	}
	return rc;
}

static int ring_throughput(const struct bench_row *row, double *value)
{
	struct stream stream = {
		.ring.reader_fd = -1, .size = row->size, .records = COPIED_BYTES / row->size};
	uint8_t *source = calloc(1, row->size);
	uint64_t start = 0;
	pid_t pid;
	int rc = source ? ring_make(&stream.ring, ARENA_BYTES, DEPTH) : -ENOMEM;

	stream.taken_step = ARENA_BYTES / stream.size / 16;
	stream.taken = bench_shared(R3RING_LINE);
	if (!rc && stream.taken) {
		pid = bench_spawn(copy_records_out, &stream, READER_CPU);
		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		rc = rc ? rc : copy_records_in(&stream, source, &start);
		rc = rc ? rc : bench_join(pid);
		*value = gigabytes_per_second(start);
	}
	bench_unshare(stream.taken, R3RING_LINE);
	ring_free(&stream.ring);
	free(source);
	return rc;
}

/* ---- writer beside lossy readers ------------------------------------------ */

struct crowd {
	int reader_fd;
	uint32_t *stop;
};

static int read_until_stopped(void *arg)
{
	struct crowd *crowd = arg;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	uint8_t record[1024];
	struct r3ring_view view;
	int rc = cursor_make(crowd->reader_fd, &segment, &cursor);

	if (rc)
		return rc;
	/* Pairs with the release in writer_rate(). */
	while (!r3ring_load_acquire_u32(crowd->stop)) {
		rc = r3ring_cursor_read(cursor, &view, record, sizeof(record));
		if (rc < 0 && rc != -EOVERFLOW)
			return rc;
		if (!rc)
			r3ring_cpu_relax();
	}
	return 0;
}

/* Records for each second of the writer's processor time. */
static int write_for_a_while(struct r3ring_writer *writer, uint32_t size, double *rate)
{
	struct r3ring_record_spec spec = {.len = size, .units = 1};
	uint8_t record[1024] = {0};
	uint64_t start = bench_cpu_ns(), used, written = 0;
	int rc = 0;

	do {
		for (int i = 0; !rc && i < 1000; i++, written++)
			rc = r3ring_writer_put(writer, &spec, record);
		used = bench_cpu_ns() - start;
	} while (!rc && used < RATE_NS);
	*rate = (double)written * 1e3 / (double)used;
	return rc;
}

#define CROWD_MAX 8u

static int writer_rate(uint64_t size, unsigned int readers, double *value)
{
	struct made_ring ring = {.reader_fd = -1};
	struct crowd crowd = {.stop = bench_shared(sizeof(uint32_t))};
	pid_t pids[CROWD_MAX];
	unsigned int started = 0;
	int rc = crowd.stop ? ring_make(&ring, ARENA_BYTES, DEPTH) : -ENOMEM;

	crowd.reader_fd = ring.reader_fd;
	for (; !rc && started < readers; started++) {
		pids[started] = bench_spawn(read_until_stopped, &crowd, READER_CPU);
		if (pids[started] < 0) {
			rc = pids[started];
			break;
		}
	}
	rc = rc ? rc : bench_pin(WRITER_CPU);
	rc = rc ? rc : write_for_a_while(ring.writer, (uint32_t)size, value);
	if (crowd.stop)
		/* Pairs with the acquire in read_until_stopped(). */
		r3ring_store_release_u32(crowd.stop, 1);
	while (started) {
		int ended = bench_join(pids[--started]);

		rc = rc ? rc : ended;
	}
	ring_free(&ring);
	bench_unshare(crowd.stop, sizeof(uint32_t));
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
	{.name = "1 KiB records copied out, beside flagged blocks",
	 .unit = "GB/s",
	 .floor = blocks_throughput,
	 .measured = ring_throughput,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.9,
	 .size = 1024},
	{.name = "32 KiB records copied out, beside flagged blocks",
	 .unit = "GB/s",
	 .floor = blocks_throughput,
	 .measured = ring_throughput,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.9,
	 .size = 32768},
	{.name = "1 KiB writes with 8 lossy readers, beside with 1",
	 .unit = "1e6/s",
	 .floor = rate_with_one,
	 .measured = rate_with_eight,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.9,
	 .size = 1024},
};

const struct bench_group bench_ring = {"ring", rows, sizeof(rows) / sizeof(rows[0])};
