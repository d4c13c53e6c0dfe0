/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/dead_ring.h"

struct dead_ring dead;

const struct r3ring_layer_entry dead_layer[DEAD_LAYERS] = {
	{.layer_id = 1}, {.layer_id = 2}, {.layer_id = 3}};

struct r3ring_record dead_schema(void)
{
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	record.u.schema.head = (struct r3ring_schema_record){
		.layers = DEAD_LAYERS,
		.experts = 8,
		.top_k = DEAD_TOP_K,
		.max_rows = 16,
		.rows_per_record = 2,
		.clock = 1,
		.model = "unit",
	};
	record.u.schema.layers = dead_layer;
	return record;
}

void dead_open(void)
{
	char name[64];
	const struct r3ring_segment_options options = {
		.size = sizeof(options),
		.name = name,
		.label = "unit/0",
		.arena_bytes = 65536,
		.depth = 1024,
		.generation = DEAD_GENERATION,
	};
	struct r3ring_record schema = dead_schema();

	snprintf(name, sizeof(name), "/r3ring-unit-remains-%d", getpid());
	cr_assert_eq(r3ring_segment_create(&dead.segment, &options, NULL), 0);
	r3ring_segment_unlink(dead.segment);
	cr_assert_eq(publisher_open(&dead.publisher, dead.segment, &schema), 0);
	cr_assert_eq(publish_schema(&dead.publisher, R3RING_DESC_BOUNDARY), 0);
	remains_init(&dead.remains);
}

void dead_close(void)
{
	remains_free(&dead.remains);
	publisher_close(&dead.publisher);
	r3ring_segment_close(dead.segment);
}

/* ---- records ------------------------------------------------------------ */

void dead_put(const struct r3ring_record *record)
{
	cr_assert_eq(publish_record(&dead.publisher, record, 0), 0);
}

static void dead_step_of_cause(uint64_t step, uint32_t flags, enum r3ring_cause cause)
{
	struct r3ring_record record = {.type = R3RING_STEP};

	record.u.step.head = (struct r3ring_step_record){.step = step,
							 .total_rows = DEAD_ROWS,
							 .row_end = DEAD_ROWS,
							 .valid_end = DEAD_ROWS - 1,
							 .flags = flags,
							 .cause = (uint16_t)cause};
	dead_put(&record);
}

void dead_step(uint64_t step, uint32_t flags)
{
	dead_step_of_cause(step, flags, R3RING_CAUSE_NONE);
}

void dead_drop(uint64_t step, enum r3ring_cause cause)
{
	dead_step_of_cause(step, R3RING_STEP_DROPPED, cause);
}

/* A layer of four rows takes two records. */
void dead_layer_part(uint64_t step, uint32_t layer, uint32_t part)
{
	const uint16_t ids[2 * DEAD_TOP_K] = {0};
	struct r3ring_record record = {.type = R3RING_LAYER};

	record.u.layer.head = (struct r3ring_layer_record){
		.step = step,
		.layer_id = dead_layer[layer].layer_id,
		.layer_index = (uint16_t)layer,
		.row = 2 * part,
		.rows = 2,
		.total_rows = DEAD_ROWS,
		.valid_rows = 2 - part,
		.missing = 1 + part,
		.out_of_range = 5 + part,
		.top_k = DEAD_TOP_K,
	};
	record.u.layer.ids = ids;
	dead_put(&record);
}

void dead_end(uint64_t step)
{
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head = (struct r3ring_step_end_record){
		.step = step, .status = R3RING_STEP_COMPLETE, .publish_ns = 1000 * step};
	dead_put(&record);
}

void dead_lost(uint64_t from, uint64_t to, enum r3ring_cause cause)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = (struct r3ring_lost_record){.from_step = from,
						    .to_step = to,
						    .steps = to - from + 1,
						    .rows = 10 * (to - from + 1),
						    .cause = cause};
	dead_put(&record);
}

void dead_read(void)
{
	cr_assert_eq(remains_read(&dead.remains, dead.segment), 0);
}
