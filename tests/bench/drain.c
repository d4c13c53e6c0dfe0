/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's drain of whole steps from a host buffer into a ring, beside memcpy
 * of the same ids into an arena as large. Both count processor time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "capture_daemon/drain.h"
#include "capture_daemon/sizing.h"
#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"

#define MEASURE_NS 100000000ull
#define UNTIMED_LAPS 2u /* of the arena, until all its pages are mapped */
#define DRAIN_CPU 0
#define LANE_BYTES 65536u

struct shape {
	const char *model;
	uint32_t rows, layers, experts, top_k;
};

static const struct shape flash_decode = {"DeepSeek-V4-Flash", 256, 43, 256, 6};
static const struct shape k3_prefill = {"Kimi-K3", 8192, 92, 896, 16};

static const struct shape *shape_of(const struct bench_row *row)
{
	return row->size == flash_decode.rows ? &flash_decode : &k3_prefill;
}

static uint64_t ids_bytes(const struct shape *shape)
{
	return (uint64_t)shape->layers * shape->rows * shape->top_k * sizeof(uint16_t);
}

static struct r3ring_schema_record schema_of(const struct shape *shape)
{
	struct r3ring_schema_record schema = {
		.layers = shape->layers,
		.experts = shape->experts,
		.top_k = (uint16_t)shape->top_k,
		.max_rows = shape->rows,
		.clock = 1,
	};

	snprintf(schema.model, sizeof(schema.model), "%s", shape->model);
	return schema;
}

/* Steps to write before timing: laps of the arena, and of its descriptors. */
static uint64_t untimed_steps(const struct shape *shape, const struct ring_sizes *sizes)
{
	return UNTIMED_LAPS * sizes->arena_bytes / ids_bytes(shape) + 1;
}

/* ---- floor -------------------------------------------------------------- */

static int copy_steps(const struct bench_row *row, double *value)
{
	const struct shape *shape = shape_of(row);
	const struct r3ring_schema_record schema = schema_of(shape);
	const uint64_t bytes = ids_bytes(shape);
	struct ring_sizes sizes;
	uint64_t untimed, start = 0, passed = 0, steps = 0, at = 0;
	uint8_t *arena = NULL, *from = NULL;
	int rc = sizing_choose(&sizes, &schema, 0, NULL);

	if (rc)
		return rc;
	arena = bench_shared(sizes.arena_bytes);
	from = bench_shared(bytes);
	rc = arena && from ? bench_pin(DRAIN_CPU) : -ENOMEM;
	untimed = untimed_steps(shape, &sizes);
	for (; !rc && passed < MEASURE_NS; steps++) {
		if (steps == untimed)
			start = bench_cpu_ns();
		at = at + bytes > sizes.arena_bytes ? 0 : at;
		memcpy(arena + at, from, bytes);
		__asm__ __volatile__("" ::"r"(arena) : "memory");
		at += bytes;
		passed = steps < untimed ? 0 : bench_cpu_ns() - start;
	}
	if (!rc)
		*value = (double)passed / (double)(steps - untimed) / 1e3;
	bench_unshare(from, bytes);
	bench_unshare(arena, sizes.arena_bytes);
	return rc;
}

/* ---- draining ------------------------------------------------------------ */

struct bed {
	const struct shape *shape;
	struct ring_sizes sizes;
	struct made_ring ring;
	struct drain drain;
	struct r3ring_layer_entry *layers;
	uint8_t entry[sizeof(struct lane_step) + sizeof(struct r3ring_step_record)];
};

static void bed_close(struct bed *bed)
{
	struct drain *drain = &bed->drain;

	publisher_close(&drain->publisher);
	drain->publisher = (struct publisher){0};
	pages_release(&drain->pages);
	drain->pages = (struct pages){0};
	if (drain->buffer.base)
		device_host_ops.buffer_free(drain->device, &drain->buffer);
	drain->buffer = (struct device_buffer){0};
	drain_close(drain);
	ring_free(&bed->ring);
	free(bed->layers);
}

static int bed_alloc(struct bed *bed)
{
	struct drain *drain = &bed->drain;

	bed->layers = calloc(bed->shape->layers, sizeof(*bed->layers));
	drain->parts_max = 1024;
	drain->parts = calloc(drain->parts_max, sizeof(*drain->parts));
	return bed->layers && drain->parts ? drain_alloc_layers(drain) : -ENOMEM;
}

/* The buffer and the pages, as a producer makes them. */
static int bed_make_channel(struct bed *bed)
{
	struct drain *drain = &bed->drain;
	uint64_t bytes = extent_bytes(&drain->geometry, bed->shape->rows);
	int rc = device_host_ops.open(&drain->device, &(struct device_options){0}, NULL);

	if (rc)
		return rc;
	drain->ops = &device_host_ops;
	rc = device_host_ops.buffer_alloc(drain->device, R3RING_BUFFER_HOST, bytes, &drain->buffer,
					  NULL);
	if (rc)
		return rc;
	memset(drain->buffer.base, 0, bytes);
	return pages_create(&drain->pages, bed->shape->layers, LANE_BYTES, LANE_BYTES, NULL);
}

static bool carry_on(void *ctx)
{
	(void)ctx;
	return true;
}

/* As the daemon does, without a reader that has registered. */
static int bed_open_publisher(struct bed *bed, const struct r3ring_record *schema)
{
	struct publisher *publisher = &bed->drain.publisher;
	int rc = publisher_open(publisher, bed->ring.segment, schema);

	return rc ? rc : publisher_serve(publisher, &bed->drain.policy, carry_on, NULL);
}

static int bed_open(struct bed *bed, const struct shape *shape)
{
	struct r3ring_record schema = {.type = R3RING_SCHEMA, .u.schema.head = schema_of(shape)};
	struct drain *drain = &bed->drain;
	int rc = sizing_choose(&bed->sizes, &schema.u.schema.head, 0, NULL);

	*bed = (struct bed){.shape = shape, .sizes = bed->sizes, .ring.reader_fd = -1};
	drain_init(drain, shape->model);
	drain->geometry = (struct extent_geometry){
		.layers = shape->layers,
		.top_k = shape->top_k,
		.experts = shape->experts,
		.rows_per_record = bed->sizes.rows_per_record,
	};
	rc = rc ? rc : bed_alloc(bed);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < shape->layers; i++)
		bed->layers[i].layer_id = (int32_t)i;
	schema.u.schema.head.rows_per_record = bed->sizes.rows_per_record;
	schema.u.schema.layers = bed->layers;
	rc = bed_make_channel(bed);
	rc = rc ? rc : ring_make(&bed->ring, bed->sizes.arena_bytes, bed->sizes.depth);
	r3ring_writer_close(bed->ring.writer); /* the publisher opens its own */
	bed->ring.writer = NULL;
	return rc ? rc : bed_open_publisher(bed, &schema);
}

/* What producer and device leave behind for one whole step. */
static void ring_bells(struct bed *bed, uint64_t step)
{
	struct extent_slot *slot = pages_slot(&bed->drain.pages, 0);

	for (uint32_t layer = 0; layer < bed->shape->layers; layer++) {
		struct extent_bell *bell = pages_bell(slot, layer);

		bell->rows = bed->shape->rows;
		/* Pairs with the acquire in step_bell(). */
		r3ring_store_release_u64(&bell->step, step);
	}
	/* Both pair with acquires in the drain of a step. */
	r3ring_store_release_u64(&slot->begin_step, step);
	r3ring_store_release_u64(&slot->end_step, step);
}

static int drain_one(struct bed *bed, uint64_t step)
{
	const struct lane_step lane = {.rows_before = (step - 1) * bed->shape->rows,
				       .extents = step};
	const struct r3ring_step_record record = {
		.step = step,
		.total_rows = bed->shape->rows,
		.row_end = bed->shape->rows,
		.valid_end = bed->shape->rows,
	};

	memcpy(bed->entry, &lane, sizeof(lane));
	memcpy(bed->entry + sizeof(lane), &record, sizeof(record));
	ring_bells(bed, step);
	return drain_step(&bed->drain, bed->entry, sizeof(bed->entry), NULL);
}

static int drain_steps(const struct bench_row *row, double *value)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	uint64_t untimed, start = 0, passed = 0, step = 0;
	int rc = bed ? bench_pin(DRAIN_CPU) : -ENOMEM;

	if (rc)
		return rc;
	rc = bed_open(bed, shape_of(row));
	untimed = untimed_steps(bed->shape, &bed->sizes);
	while (!rc && passed < MEASURE_NS) {
		if (step == untimed)
			start = bench_cpu_ns();
		rc = drain_one(bed, ++step);
		passed = step <= untimed ? 0 : bench_cpu_ns() - start;
	}
	if (!rc && bed->drain.publisher.totals.steps_complete != step)
		rc = -EBADMSG;
	if (!rc)
		*value = (double)passed / (double)(step - untimed) / 1e3;
	bed_close(bed);
	free(bed);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "DeepSeek-V4-Flash decode of 256 rows, beside memcpy",
	 .unit = "us",
	 .floor = copy_steps,
	 .measured = drain_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.5,
	 .size = 256},
	{.name = "Kimi-K3 prefill of 8192 rows, beside memcpy",
	 .unit = "us",
	 .floor = copy_steps,
	 .measured = drain_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.1,
	 .size = 8192},
};

const struct bench_group bench_drain = {"drain", rows, sizeof(rows) / sizeof(rows[0])};
