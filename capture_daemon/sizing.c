/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of a channel's ring. */
#include <errno.h>
#include <inttypes.h>

#include "capture_daemon/sizing.h"
#include "channel/extent.h"

#define DEFAULT_SEGMENT (32ull << 20)
#define ARENA_MIN 65536ull
#define ARENA_MAX (64ull << 30)
#define ARENA_BYTES_PER_RECORD 512 /* small decode steps have records of 128 bytes */
#define DEPTH_MIN 1024u
#define DEPTH_MAX (1u << 24)
#define RECORDS_PER_ARENA 8 /* the largest record is arena / 8 */
#define ROWS_PER_RECORD_MAX 4096u
#define ROWS_PER_RECORD_LEAST 64u
#define STEPS_HELD 4

static uint64_t region_align(uint64_t bytes)
{
	return (bytes + R3RING_REGION_ALIGN - 1) & ~(uint64_t)(R3RING_REGION_ALIGN - 1);
}

static uint32_t depth_of(uint64_t arena)
{
	uint64_t depth = arena / ARENA_BYTES_PER_RECORD;

	if (depth < DEPTH_MIN)
		return DEPTH_MIN;
	return depth > DEPTH_MAX ? DEPTH_MAX : (uint32_t)depth;
}

static uint64_t segment_of(uint64_t arena)
{
	return 2 * R3RING_REGION_ALIGN +
	       region_align((uint64_t)depth_of(arena) * sizeof(struct r3ring_desc)) +
	       region_align(arena);
}

/* Largest power-of-two arena whose segment has at most @bytes; 0 when none. */
static uint64_t arena_within(uint64_t bytes)
{
	uint64_t arena = 0;

	for (uint64_t next = ARENA_MIN; next <= ARENA_MAX && segment_of(next) <= bytes; next *= 2)
		arena = next;
	return arena;
}

static uint64_t row_bytes(const struct r3ring_schema_record *schema)
{
	return (uint64_t)schema->top_k * sizeof(uint16_t);
}

static uint64_t layer_record_bytes(const struct r3ring_schema_record *schema, uint32_t rows)
{
	return sizeof(struct r3ring_layer_record) + rows * row_bytes(schema);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Bytes of the largest record that must fit whatever the steps are like. */
static uint64_t record_least(const struct r3ring_schema_record *schema)
{
	uint32_t rows = schema->rows_per_record;
	uint64_t bytes;

	if (!rows)
		rows = schema->max_rows < ROWS_PER_RECORD_LEAST ? schema->max_rows
								: ROWS_PER_RECORD_LEAST;
	bytes = layer_record_bytes(schema, rows);
	bytes = larger(bytes, sizeof(struct r3ring_schema_record) +
				      schema->layers * sizeof(struct r3ring_layer_entry));
	bytes = larger(bytes, sizeof(struct r3ring_step_end_record) +
				      schema->layers * sizeof(struct r3ring_missing_layer));
	return larger(bytes, sizeof(struct r3ring_request_record) + 4 * R3RING_TEXT_ID_MAX);
}

static uint64_t arena_least(const struct r3ring_schema_record *schema)
{
	uint64_t arena = ARENA_MIN;

	while (arena / RECORDS_PER_ARENA < record_least(schema))
		arena *= 2;
	return arena;
}

/* Bytes in the ring of four of the largest steps. */
static uint64_t steps_bytes(const struct r3ring_schema_record *schema)
{
	const struct extent_geometry geometry = {
		.layers = schema->layers,
		.top_k = schema->top_k,
		.experts = schema->experts,
		.rows_per_record = schema->rows_per_record ? schema->rows_per_record
							   : ROWS_PER_RECORD_MAX,
		.captures_rows = schema->captures_rows,
	};

	return STEPS_HELD * extent_bytes(&geometry, schema->max_rows);
}

static uint64_t arena_default(const struct r3ring_schema_record *schema)
{
	uint64_t arena = larger(arena_within(DEFAULT_SEGMENT), arena_least(schema));

	while (arena < steps_bytes(schema) && arena < ARENA_MAX)
		arena *= 2;
	return arena;
}

static uint32_t rows_of(const struct r3ring_schema_record *schema, uint64_t arena)
{
	uint64_t room = arena / RECORDS_PER_ARENA - sizeof(struct r3ring_layer_record);
	uint64_t rows = room / row_bytes(schema);

	if (schema->rows_per_record)
		return schema->rows_per_record;
	return rows > ROWS_PER_RECORD_MAX ? ROWS_PER_RECORD_MAX : (uint32_t)rows;
}

uint64_t sizing_usual_bytes(uint64_t ring_size)
{
	return segment_of(arena_within(ring_size ? ring_size : DEFAULT_SEGMENT));
}

int sizing_choose(struct ring_sizes *sizes, const struct r3ring_schema_record *schema,
		  uint64_t ring_size, struct r3ring_error *err)
{
	uint64_t least = arena_least(schema);
	uint64_t arena = ring_size ? arena_within(ring_size) : arena_default(schema);

	if (arena < least || arena > ARENA_MAX)
		return r3ring_error_set(err, -EMSGSIZE,
					"a ring of %" PRIu64 " bytes is too small: %u layers with "
					"top-k %u need at least %" PRIu64
					" (r3ringd --ring-size %" PRIu64 "K)",
					ring_size, schema->layers, schema->top_k, segment_of(least),
					segment_of(least) / 1024);
	*sizes = (struct ring_sizes){
		.arena_bytes = arena,
		.segment_bytes = segment_of(arena),
		.depth = depth_of(arena),
		.rows_per_record = rows_of(schema, arena),
	};
	return 0;
}
