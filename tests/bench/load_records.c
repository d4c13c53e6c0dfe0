/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/bench/load_records.h"

static const struct made_shape k3 = {"Kimi-K3", 256, 92, 896, 16};
static const struct made_shape flash = {"DeepSeek-V4-Flash", 256, 43, 256, 6};

const struct made_shape *made_shape_of(const struct bench_row *row)
{
	return row->size == k3.layers ? &k3 : &flash;
}

size_t made_layer_bytes(const struct made_shape *shape)
{
	return sizeof(struct r3ring_layer_record) +
	       (size_t)shape->rows * shape->top_k * sizeof(uint16_t);
}

struct r3ring_record made_schema(const struct made_shape *shape, struct r3ring_layer_entry *layers)
{
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < shape->layers; i++)
		layers[i] = (struct r3ring_layer_entry){.layer_id = (int32_t)i};
	record.u.schema.head = (struct r3ring_schema_record){.layers = shape->layers,
							     .experts = shape->experts,
							     .top_k = shape->top_k,
							     .max_rows = shape->rows,
							     .rows_per_record = shape->rows,
							     .clock = 1};
	strncpy(record.u.schema.head.model, shape->model, R3RING_MODEL_NAME_MAX);
	record.u.schema.layers = layers;
	return record;
}

struct r3ring_record made_step(const struct made_shape *shape, uint64_t step)
{
	struct r3ring_record record = {.type = R3RING_STEP};

	record.u.step.head = (struct r3ring_step_record){.step = step,
							 .total_rows = shape->rows,
							 .row_end = shape->rows,
							 .valid_end = shape->rows};
	return record;
}

struct r3ring_record made_layer(const struct made_shape *shape, uint64_t step, uint32_t layer,
				const uint16_t *ids)
{
	struct r3ring_record record = {.type = R3RING_LAYER};

	record.u.layer.head = (struct r3ring_layer_record){.step = step,
							   .layer_id = (int32_t)layer,
							   .layer_index = (uint16_t)layer,
							   .rows = shape->rows,
							   .total_rows = shape->rows,
							   .valid_rows = shape->rows,
							   .top_k = shape->top_k};
	record.u.layer.ids = ids;
	return record;
}

struct r3ring_record made_step_end(uint64_t step)
{
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head = (struct r3ring_step_end_record){
		.step = step, .status = R3RING_STEP_COMPLETE, .publish_ns = bench_now_ns()};
	return record;
}

/* Skewed as routing is: of each row's experts half are among an eighth of all. */
void made_ids_fill(const struct made_shape *shape, uint16_t *ids)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < (size_t)shape->rows * shape->top_k; i++) {
		seed = seed * 1664525 + 1013904223;
		ids[i] = (uint16_t)((seed >> 8) % (i % 2 ? shape->experts : shape->experts / 8));
	}
}
