/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that one process copies into the ring and another one out of it, beside
 * the same bytes through an equal arena of blocks with one flag each.
 *
 * Counted is the processor time of the busier side: short waits for the other
 * side are part of it, long ones (the other side was not running) are not, so that
 * who else uses the machine matters little.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/ring.h>

#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"

#define ARENA_BYTES (8u << 20)
#define DEPTH 16384u
#define COPIED_BYTES (96ull << 20)
#define UNTIMED_BYTES (16ull << 20) /* two laps, until both sides have mapped all pages */
#define STALL_LOOKS 256u

enum { WRITER_CPU = 0, READER_CPU = 1 };

/* ---- time of one side ----------------------------------------------------- */

struct side {
	unsigned int looks;
	uint64_t stall_begin;
	uint64_t stalled_ns;
	uint64_t begin_ns;
	uint64_t busy_ns;
};

static void look_again(struct side *side)
{
	r3ring_cpu_relax();
	if (++side->looks % STALL_LOOKS)
		return;
	if (side->looks == STALL_LOOKS)
		side->stall_begin = bench_cpu_ns();
	sched_yield();
}

static void found(struct side *side)
{
	if (side->looks >= STALL_LOOKS)
		side->stalled_ns += bench_cpu_ns() - side->stall_begin;
	side->looks = 0;
}

static void begin_timing(struct side *side, uint64_t done)
{
	if (done != UNTIMED_BYTES)
		return;
	side->stalled_ns = 0;
	side->begin_ns = bench_cpu_ns();
}

static void end_timing(struct side *side)
{
	side->busy_ns = bench_cpu_ns() - side->begin_ns - side->stalled_ns;
}

struct sides {
	struct side writer;
	uint8_t pad0[R3RING_LINE];
	struct side reader;
	uint8_t pad1[R3RING_LINE];
	uint64_t taken; /* records that the reader of the ring has read */
	uint8_t pad2[R3RING_LINE];
};

static double gigabytes_per_second(const struct sides *sides)
{
	uint64_t ns = sides->writer.busy_ns > sides->reader.busy_ns ? sides->writer.busy_ns
								    : sides->reader.busy_ns;

	return (double)(COPIED_BYTES - UNTIMED_BYTES) / (double)ns;
}

/* ---- floor: blocks with a flag, full or empty ------------------------------ */

struct blocks {
	uint64_t size;
	uint64_t count;
	uint32_t *flags; /* one a line */
	uint8_t *arena;
	uint8_t seen; /* sum of a byte of each block: what is copied must be used */
	struct sides *sides;
};

static uint32_t *flag_of(const struct blocks *blocks, uint64_t block)
{
	return &blocks->flags[block * R3RING_LINE / sizeof(uint32_t)];
}

static int copy_blocks_out(void *arg)
{
	struct blocks *blocks = arg;
	struct side *side = &blocks->sides->reader;
	uint8_t *buffer = malloc(blocks->size);

	if (!buffer)
		return -ENOMEM;
	for (uint64_t done = 0, i = 0; done < COPIED_BYTES; done += blocks->size, i++) {
		uint64_t block = i % blocks->count;

		begin_timing(side, done);
		/* Pairs with the release behind the copy in. */
		while (!r3ring_load_acquire_u32(flag_of(blocks, block)))
			look_again(side);
		found(side);
		memcpy(buffer, blocks->arena + block * blocks->size, blocks->size);
		blocks->seen = (uint8_t)(blocks->seen + buffer[i % blocks->size]);
		/* Pairs with the acquire before the copy in. */
		r3ring_store_release_u32(flag_of(blocks, block), 0);
	}
	end_timing(side);
	free(buffer);
	return blocks->seen == 0 ? 0 : -EBADMSG;
}

static void copy_blocks_in(struct blocks *blocks, const uint8_t *source)
{
	struct side *side = &blocks->sides->writer;

	for (uint64_t done = 0, i = 0; done < COPIED_BYTES; done += blocks->size, i++) {
		uint64_t block = i % blocks->count;

		begin_timing(side, done);
		/* Pairs with the release behind the copy out. */
		while (r3ring_load_acquire_u32(flag_of(blocks, block)))
			look_again(side);
		found(side);
		memcpy(blocks->arena + block * blocks->size, source, blocks->size);
		/* Pairs with the acquire before the copy out. */
		r3ring_store_release_u32(flag_of(blocks, block), 1);
	}
	end_timing(side);
}

static int blocks_throughput(const struct bench_row *row, double *value)
{
	struct blocks blocks = {.size = row->size, .count = ARENA_BYTES / row->size};
	size_t flags_bytes = blocks.count * R3RING_LINE;
	uint8_t *source = calloc(1, row->size);
	int rc = -ENOMEM;

	blocks.flags = bench_shared(flags_bytes);
	blocks.arena = bench_shared(ARENA_BYTES);
	blocks.sides = bench_shared(sizeof(*blocks.sides));
	if (source && blocks.flags && blocks.arena && blocks.sides) {
		pid_t pid = bench_spawn(copy_blocks_out, &blocks, READER_CPU);

		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		if (!rc)
			copy_blocks_in(&blocks, source);
		rc = rc ? rc : bench_join(pid);
	}
	if (!rc)
		*value = gigabytes_per_second(blocks.sides);
	free(source);
	bench_unshare(blocks.sides, sizeof(*blocks.sides));
	bench_unshare(blocks.arena, ARENA_BYTES);
	bench_unshare(blocks.flags, flags_bytes);
	return rc;
}

/* ---- the ring ------------------------------------------------------------- */

/* The ring's writer never waits; here it does, for a word with the records that
 * the reader has taken, so that both sides move every byte. */
struct stream {
	struct made_ring ring;
	uint64_t size;
	uint64_t records;
	uint64_t taken_step; /* how often the reader says what it has taken */
	struct sides *sides;
};

static int copy_records_out(void *arg)
{
	struct stream *stream = arg;
	struct side *side = &stream->sides->reader;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	struct r3ring_view view;
	uint8_t *buffer = malloc(stream->size);
	int rc = buffer ? cursor_make(stream->ring.reader_fd, &segment, &cursor) : -ENOMEM;

	for (uint64_t i = 0; !rc && i < stream->records; i++) {
		begin_timing(side, i * stream->size);
		while (!(rc = r3ring_cursor_read(cursor, &view, buffer, stream->size)))
			look_again(side);
		found(side);
		rc = rc == 1 ? 0 : rc;
		if ((i + 1) % stream->taken_step == 0)
			/* Pairs with the acquire in copy_records_in(). */
			r3ring_store_release_u64(&stream->sides->taken, i + 1);
	}
	end_timing(side);
	free(buffer);
	return rc;
}

static int copy_records_in(struct stream *stream, const uint8_t *source)
{
	struct r3ring_record_spec spec = {.len = (uint32_t)stream->size, .units = 1};
	uint64_t ahead = ARENA_BYTES / stream->size * 15 / 16;
	struct side *side = &stream->sides->writer;
	uint64_t taken = 0;
	int rc = 0;

	for (uint64_t i = 0; !rc && i < stream->records; i++) {
		begin_timing(side, i * stream->size);
		while (i - taken >= ahead) {
			/* Pairs with the release in copy_records_out(). */
			taken = r3ring_load_acquire_u64(&stream->sides->taken);
			if (i - taken >= ahead)
				look_again(side);
		}
		found(side);
		rc = r3ring_writer_put(stream->ring.writer, &spec, source);
	}
	end_timing(side);
	return rc;
}

static int ring_throughput(const struct bench_row *row, double *value)
{
	struct stream stream = {
		.ring.reader_fd = -1, .size = row->size, .records = COPIED_BYTES / row->size};
	uint8_t *source = calloc(1, row->size);
	int rc = source ? ring_make(&stream.ring, ARENA_BYTES, DEPTH) : -ENOMEM;

	stream.taken_step = ARENA_BYTES / stream.size / 64;
	stream.sides = bench_shared(sizeof(*stream.sides));
	if (!rc && stream.sides) {
		pid_t pid = bench_spawn(copy_records_out, &stream, READER_CPU);

		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		rc = rc ? rc : copy_records_in(&stream, source);
		rc = rc ? rc : bench_join(pid);
		*value = gigabytes_per_second(stream.sides);
	}
	bench_unshare(stream.sides, sizeof(*stream.sides));
	ring_free(&stream.ring);
	free(source);
	return rc;
}

static const struct bench_row rows[] = {
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
};

const struct bench_group bench_copy = {"copy", rows, sizeof(rows) / sizeof(rows[0])};
