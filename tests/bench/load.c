/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load, fed from a ring that another process writes: what a layer record costs beside
 * one pass over its bytes, and how long after its end a step is in the snapshot. A step is
 * written whole, as a decode's comes: STEP, its layers, STEP_END.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/load.h>

#include "tests/bench/bench.h"
#include "tests/bench/load_records.h"
#include "tests/bench/made_ring.h"

#define ARENA_BYTES (16u << 20)
#define DEPTH 8192u
#define STEPS 400u
#define WARM_UP 20u
#define PACE_NS 2500000ull
#define STEPS_AHEAD 8u /* of a paced writer; the ring has room for twice as many */

enum { WRITER_CPU = 0, READER_CPU = 1 };

/* Shared with the process that writes. */
struct turns {
	uint32_t read; /* steps that the reader has done with */
	uint32_t written;
};

struct bed {
	const struct made_shape *shape;
	struct made_ring ring;
	struct turns *turns;
	bool paced; /* else a step is written once the one before was read */
	uint16_t *ids;
	uint8_t *buffer;
};

static int put(struct bed *bed, const struct r3ring_record *record, uint64_t units)
{
	struct r3ring_record_spec spec = {
		.type = record->type,
		.units = units,
		.len = (uint32_t)r3ring_record_size(record),
	};
	long len = r3ring_record_encode(record, bed->buffer, made_layer_bytes(bed->shape), NULL);

	return len < 0 ? (int)len : r3ring_writer_put(bed->ring.writer, &spec, bed->buffer);
}

/* ---- the process that writes ----------------------------------------------------- */

static int write_step(struct bed *bed, uint64_t step)
{
	struct r3ring_record record = made_step(bed->shape, step);
	int rc = put(bed, &record, 0);

	for (uint32_t layer = 0; !rc && layer < bed->shape->layers; layer++) {
		record = made_layer(bed->shape, step, layer, bed->ids);
		rc = put(bed, &record, bed->shape->rows);
	}
	record = made_step_end(step);
	return rc ? rc : put(bed, &record, 0);
}

/* A reader that gets no processor for long would be lapped, and have nothing to measure. */
static void await_turn(const struct bed *bed, uint32_t step, uint64_t since)
{
	const uint32_t ahead = bed->paced ? STEPS_AHEAD : 1;
	unsigned int looks = 0;

	/* Pairs with the release of whoever reads. */
	while ((bed->paced && bench_now_ns() - since < PACE_NS) ||
	       r3ring_load_acquire_u32(&bed->turns->read) + ahead < step)
		wait_turn(&looks);
}

static int write_steps(void *arg)
{
	struct r3ring_layer_entry layers[128];
	struct bed *bed = arg;
	struct r3ring_record record = made_schema(bed->shape, layers);
	uint64_t since = bench_now_ns();
	int rc = put(bed, &record, 0);

	for (uint32_t step = 1; !rc && step <= STEPS; step++) {
		await_turn(bed, step, since);
		since = bench_now_ns();
		rc = write_step(bed, step);
		/* Pairs with the acquire in read_steps(). */
		r3ring_store_release_u32(&bed->turns->written, step);
	}
	return rc;
}

/* ---- reading ------------------------------------------------------------------------ */

/* Takes the ring's next record; what it costs is measured around it. */
typedef int (*take_fn)(void *ctx, struct r3ring_cursor *cursor, uint16_t *type);

struct passing {
	uint64_t sum;
};

/* One pass in place: no less can be done with a record. */
static int pass_record(void *ctx, struct r3ring_cursor *cursor, uint16_t *type)
{
	struct passing *passing = ctx;
	struct r3ring_view view;
	int r = r3ring_cursor_next(cursor, &view);

	if (r != 1)
		return r;
	for (uint32_t i = 0; i < view.len / sizeof(uint64_t); i++)
		passing->sum += ((const uint64_t *)view.data)[i];
	*type = view.type;
	return r3ring_cursor_check(cursor) < 0 ? -EOVERFLOW : 1;
}

struct feeding {
	struct r3ring_load *load;
	uint64_t published_ns;
};

static int intact(void *cursor)
{
	return r3ring_cursor_check(cursor);
}

static int feed_record(void *ctx, struct r3ring_cursor *cursor, uint16_t *type)
{
	struct feeding *feeding = ctx;
	struct r3ring_step_end_record end;
	struct r3ring_view view;
	int r = r3ring_cursor_next(cursor, &view);

	if (r != 1)
		return r;
	*type = view.type;
	if (view.type == R3RING_STEP_END) {
		memcpy(&end, view.data, sizeof(end));
		feeding->published_ns = end.publish_ns;
	}
	r = r3ring_load_feed_view(feeding->load, 0, &view, intact, cursor);
	return r < 0 ? r : 1;
}

/* CPU time of a layer record, all of its step's records shared by its layers. */
static int read_steps(struct bed *bed, struct r3ring_cursor *cursor, take_fn take, void *ctx,
		      double *ns)
{
	uint64_t passed = 0, start;
	unsigned int looks = 0;
	uint16_t type = 0;
	int r = 1;

	for (uint32_t step = 1; step <= STEPS; step++) {
		/* Pairs with the release in write_steps(). */
		while (r3ring_load_acquire_u32(&bed->turns->written) < step)
			wait_turn(&looks);
		start = bench_cpu_ns();
		for (type = 0; r == 1 && type != R3RING_STEP_END;)
			r = take(ctx, cursor, &type);
		if (step > WARM_UP)
			passed += bench_cpu_ns() - start;
		/* Pairs with the acquire in await_turn(). */
		r3ring_store_release_u32(&bed->turns->read, step);
		if (r != 1)
			return r ? r : -EIO;
	}
	*ns = (double)passed / (STEPS - WARM_UP) / bed->shape->layers;
	return 0;
}

/* From before STEP_END is written until its step is in the snapshot, for each step. */
static int read_latencies(struct bed *bed, struct r3ring_cursor *cursor, struct feeding *feeding,
			  double *us)
{
	uint32_t step = 0;
	uint16_t type = 0;

	while (step < STEPS) {
		int r = feed_record(feeding, cursor, &type);

		if (r < 0)
			return r;
		if (r != 1 || type != R3RING_STEP_END)
			continue;
		us[step++] = (double)(bench_now_ns() - feeding->published_ns) / 1e3;
		/* Pairs with the acquire in await_turn(). */
		r3ring_store_release_u32(&bed->turns->read, step);
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------ */

struct stand {
	struct bed bed;
	struct r3ring_segment *segment;
	struct r3ring_cursor *cursor;
	struct feeding feeding;
	pid_t pid;
};

static int stand_open(struct stand *stand, const struct made_shape *shape, bool paced)
{
	size_t record = made_layer_bytes(shape) + 4096;
	int rc;

	*stand = (struct stand){.bed = {.shape = shape, .paced = paced, .ring.reader_fd = -1}};
	stand->bed.turns = bench_shared(sizeof(*stand->bed.turns));
	stand->bed.ids = malloc(made_layer_bytes(shape));
	stand->bed.buffer = aligned_alloc(64, record / 64 * 64);
	if (!stand->bed.turns || !stand->bed.ids || !stand->bed.buffer)
		return -ENOMEM;
	made_ids_fill(shape, stand->bed.ids);
	rc = ring_make(&stand->bed.ring, ARENA_BYTES, DEPTH);
	rc = rc ? rc : cursor_make(stand->bed.ring.reader_fd, &stand->segment, &stand->cursor);
	rc = rc ? rc : r3ring_load_create(&stand->feeding.load, NULL, NULL);
	rc = rc ? rc : r3ring_load_channel(stand->feeding.load, "bench/0");
	if (rc)
		return rc;
	stand->pid = bench_spawn(write_steps, &stand->bed, WRITER_CPU);
	return stand->pid < 0 ? stand->pid : bench_pin(READER_CPU);
}

static int stand_close(struct stand *stand, int rc)
{
	if (!rc && stand->pid > 0)
		rc = bench_join(stand->pid);
	r3ring_cursor_close(stand->cursor);
	r3ring_segment_close(stand->segment);
	r3ring_load_destroy(stand->feeding.load);
	ring_free(&stand->bed.ring);
	if (stand->bed.turns)
		bench_unshare(stand->bed.turns, sizeof(*stand->bed.turns));
	free(stand->bed.ids);
	free(stand->bed.buffer);
	return rc;
}

static int pass_layer(const struct bench_row *row, double *value)
{
	struct passing passing = {0};
	struct stand stand;
	int rc = stand_open(&stand, made_shape_of(row), false);

	rc = rc ? rc : read_steps(&stand.bed, stand.cursor, pass_record, &passing, value);
	__asm__ __volatile__("" ::"r"(passing.sum));
	return stand_close(&stand, rc);
}

static int feed_layer(const struct bench_row *row, double *value)
{
	struct r3ring_load_stats stats;
	struct stand stand;
	int rc = stand_open(&stand, made_shape_of(row), false);

	rc = rc ? rc : read_steps(&stand.bed, stand.cursor, feed_record, &stand.feeding, value);
	if (!rc) {
		r3ring_load_get_stats(stand.feeding.load, &stats);
		rc = stats.steps == STEPS ? 0 : -EBADMSG;
	}
	return stand_close(&stand, rc);
}

static int step_to_snapshot(const struct bench_row *row, double *value)
{
	double us[STEPS];
	struct stand stand;
	int rc = stand_open(&stand, made_shape_of(row), true);

	rc = rc ? rc : read_latencies(&stand.bed, stand.cursor, &stand.feeding, us);
	if (!rc)
		*value = bench_percentile(us + WARM_UP, STEPS - WARM_UP, row->percent);
	return stand_close(&stand, rc);
}

static const struct bench_row rows[] = {
	{.name = "Kimi-K3 layer record of 256 rows read and counted, beside one pass",
	 .unit = "ns",
	 .floor = pass_layer,
	 .measured = feed_layer,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 3,
	 .size = 92},
	{.name = "DeepSeek-V4-Flash layer record of 256 rows, likewise",
	 .unit = "ns",
	 .floor = pass_layer,
	 .measured = feed_layer,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 3,
	 .size = 43},
	{.name = "DeepSeek-V4-Flash burst of a whole step, end to snapshot, p50",
	 .unit = "us",
	 .measured = step_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 43,
	 .percent = 50},
	{.name = "DeepSeek-V4-Flash burst of a whole step, end to snapshot, p99",
	 .unit = "us",
	 .measured = step_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 43,
	 .percent = 99},
	{.name = "Kimi-K3 burst of a whole step, end to snapshot, p50",
	 .unit = "us",
	 .measured = step_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 92,
	 .percent = 50},
	{.name = "Kimi-K3 burst of a whole step, end to snapshot, p99",
	 .unit = "us",
	 .measured = step_to_snapshot,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .size = 92,
	 .percent = 99},
};

const struct bench_group bench_load = {"load", rows, sizeof(rows) / sizeof(*rows)};
