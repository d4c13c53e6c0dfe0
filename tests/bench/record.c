/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a ring into an archive on the disk, as `r3ring record` does it, beside the slower of
 * zstd alone at the same level and writing the same bytes one after the other. All end with
 * the bytes on the disk. And what a token takes there, beside its bare u16 ids.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include <r3ring/record.h>

#include "archive/writer.h"
#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"
#include "tests/support/remove_dir.h"

#define LAYERS 43u
#define EXPERTS 256u
#define TOP_K 6u
#define ROWS 256u
#define STEPS 400u
#define ARENA (64u << 20)
#define DEPTH 32768u
#define PIECE ((size_t)1 << 20)
#define LAYER_BYTES (sizeof(struct r3ring_layer_record) + sizeof(uint16_t) * ROWS * TOP_K)
#define ALL_BYTES ((size_t)STEPS * LAYERS * LAYER_BYTES)

/* ---- what is recorded --------------------------------------------------- */

/* Some experts are called more often than others, as routers do it. */
static void make_row(uint16_t *ids, uint64_t *state)
{
	for (uint32_t k = 0; k < TOP_K; k++) {
		double unit;
		bool again;

		do {
			*state = *state * 6364136223846793005ull + 1442695040888963407ull;
			unit = (double)(*state >> 40) / (double)(1u << 24);
			ids[k] = (uint16_t)((0.4 * unit * unit + 0.6 * unit) * EXPERTS);
			again = false;
			for (uint32_t i = 0; i < k; i++)
				again |= ids[i] == ids[k];
		} while (again);
	}
}

static void make_layer(uint8_t *payload, uint64_t step, uint32_t layer, uint64_t *state)
{
	const struct r3ring_layer_record head = {
		.step = step,
		.layer_id = (int32_t)layer,
		.layer_index = (uint16_t)layer,
		.rows = ROWS,
		.total_rows = ROWS,
		.valid_rows = ROWS,
		.top_k = TOP_K,
	};

	memcpy(payload, &head, sizeof(head));
	for (uint32_t row = 0; row < ROWS; row++)
		make_row((uint16_t *)(void *)(payload + sizeof(head)) + row * TOP_K, state);
}

static int fill_ring(const struct made_ring *ring)
{
	static uint8_t payload[LAYER_BYTES] __attribute__((aligned(64)));
	uint64_t state = 1;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < STEPS * LAYERS; i++) {
		const struct r3ring_record_spec spec = {
			.step = i / LAYERS + 1,
			.units = ROWS,
			.len = LAYER_BYTES,
			.type = R3RING_LAYER,
		};

		make_layer(payload, spec.step, i % LAYERS, &state);
		rc = r3ring_writer_put(ring->writer, &spec, payload);
	}
	return rc;
}

/* Made once; the same for all rows. */
static int the_ring(const struct made_ring **given)
{
	static struct made_ring ring;
	int rc = 0;

	if (!ring.segment) {
		rc = ring_make(&ring, ARENA, DEPTH);
		if (!rc)
			rc = fill_ring(&ring);
	}
	*given = &ring;
	return rc;
}

/* Its payloads in one piece. */
static int the_bytes(const uint8_t **given)
{
	static uint8_t *bytes;
	const struct made_ring *ring;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	struct r3ring_view view;
	size_t at = 0;
	int rc = the_ring(&ring);

	if (!rc && !bytes) {
		bytes = malloc(ALL_BYTES);
		rc = bytes ? cursor_make(ring->reader_fd, &segment, &cursor) : -ENOMEM;
		while (!rc && at < ALL_BYTES &&
		       r3ring_cursor_read(cursor, &view, bytes + at, ALL_BYTES - at) == 1)
			at += view.len;
		r3ring_cursor_close(cursor);
		r3ring_segment_close(segment);
		if (!rc && at != ALL_BYTES)
			rc = -EIO;
	}
	*given = bytes;
	return rc;
}

/* ---- floors ------------------------------------------------------------- */

static double rate(uint64_t start)
{
	return (double)ALL_BYTES / (double)(bench_now_ns() - start);
}

static int compress_all(int level, double *value)
{
	static char packed[PIECE];
	const uint8_t *bytes;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	uint64_t start;
	int rc = zstd ? the_bytes(&bytes) : -ENOMEM;

	if (!rc)
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level);
	start = bench_now_ns();
	for (size_t at = 0; !rc && at < ALL_BYTES; at += PIECE) {
		size_t count = ALL_BYTES - at < PIECE ? ALL_BYTES - at : PIECE;

		if (ZSTD_isError(ZSTD_compress2(zstd, packed, PIECE, bytes + at, count)))
			rc = -EIO;
	}
	if (!rc)
		*value = rate(start);
	ZSTD_freeCCtx(zstd);
	return rc;
}

static int write_pieces(int fd, const uint8_t *bytes)
{
	for (size_t at = 0; at < ALL_BYTES;) {
		size_t count = ALL_BYTES - at < PIECE ? ALL_BYTES - at : PIECE;
		ssize_t written = write(fd, bytes + at, count);

		if (written <= 0)
			return -errno;
		at += (size_t)written;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}

static int write_all(double *value)
{
	char path[] = "/tmp/r3ring-bench-XXXXXX";
	const uint8_t *bytes;
	uint64_t start;
	int rc = the_bytes(&bytes);
	int fd = rc ? -1 : mkstemp(path);

	if (fd < 0)
		return rc ? rc : -errno;
	unlink(path);
	start = bench_now_ns();
	rc = write_pieces(fd, bytes);
	if (!rc)
		*value = rate(start);
	close(fd);
	return rc;
}

/* row->size: the level. */
static int floor_rate(const struct bench_row *row, double *value)
{
	double packing = 0, writing = 0;
	int rc = bench_unpin();

	if (!rc)
		rc = write_all(&writing);
	if (!rc && row->size)
		rc = compress_all((int)row->size, &packing);
	if (!rc)
		*value = row->size && packing < writing ? packing : writing;
	return rc;
}

static int bare_bytes(const struct bench_row *row, double *value)
{
	(void)row;
	*value = (double)(sizeof(uint16_t) * LAYERS * TOP_K);
	return 0;
}

/* ---- recording ---------------------------------------------------------- */

/* As the tool's loop: into its place, and a block more where there is none. */
static int copy_records(struct r3ring_cursor *cursor, struct archive_writer *writer)
{
	int channel = archive_writer_channel(writer, "bench/0");
	uint32_t wanted = 0;
	uint32_t count = 0;
	int rc = 0;

	while (!rc && count < STEPS * LAYERS) {
		struct r3ring_view view;
		size_t capacity;
		void *room;
		int got;

		/* In front of that, for it may hand on the block that the place is in. */
		rc = archive_writer_poll(writer);
		room = archive_writer_room(writer, wanted, &capacity);
		got = room ? r3ring_cursor_read(cursor, &view, room, capacity) : -EIO;
		wanted = got == -EMSGSIZE ? view.len : 0;
		if (!rc && got == 1)
			rc = archive_writer_record(writer, (uint16_t)channel, &view);
		count += got == 1;
		if (!rc && got != 1 && got != -EMSGSIZE)
			rc = got < 0 ? got : -EIO;
	}
	return rc;
}

static int record(int level, double *value, struct archive_writer_stats *stats)
{
	char path[] = "/tmp/r3ring-bench-XXXXXX";
	const struct archive_writer_options options = {
		.dir = mkdtemp(path),
		.level = level,
		.sync = ARCHIVE_SYNC_PERIOD,
	};
	const struct made_ring *ring;
	struct archive_writer *writer = NULL;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	uint64_t start;
	int rc = the_ring(&ring);

	if (!rc)
		rc = cursor_make(ring->reader_fd, &segment, &cursor);
	start = bench_now_ns();
	if (!rc)
		rc = archive_writer_open(&writer, &options, NULL);
	if (!rc)
		rc = copy_records(cursor, writer);
	if (!rc)
		rc = archive_writer_finish(writer, NULL);
	if (!rc) {
		*value = rate(start);
		archive_writer_get_stats(writer, stats);
	}
	archive_writer_close(writer, NULL);
	r3ring_cursor_close(cursor);
	r3ring_segment_close(segment);
	remove_dir(path);
	return rc;
}

static int record_rate(const struct bench_row *row, double *value)
{
	struct archive_writer_stats stats;
	int rc = bench_unpin();

	return rc ? rc : record((int)row->size, value, &stats);
}

static int stored_bytes(const struct bench_row *row, double *value)
{
	struct archive_writer_stats stats;
	double ignored;
	int rc = record((int)row->size, &ignored, &stats);

	if (!rc)
		*value = (double)stats.stored_bytes / (STEPS * ROWS);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "ring to archive, zstd 3, beside the slower of zstd and writing",
	 .unit = "GB/s",
	 .floor = floor_rate,
	 .measured = record_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.8,
	 .size = 3},
	{.name = "ring to archive, not compressed, beside writing",
	 .unit = "GB/s",
	 .floor = floor_rate,
	 .measured = record_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.8,
	 .size = 0},
	{.name = "bytes of a token on disk, zstd 3, beside its bare u16 ids",
	 .unit = "B",
	 .floor = bare_bytes,
	 .measured = stored_bytes,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.0,
	 .size = 3},
};

const struct bench_group bench_record = {"record", rows, sizeof(rows) / sizeof(rows[0])};
