/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/made_lives.h"

#define RECORD_BYTES (1u << 20)

const struct lives_shape lives_flash_decode = {"DeepSeek-V4-Flash", 256, 43, 256, 6, 256, 64};
const struct lives_shape lives_k3_prefill = {"Kimi-K3", 8192, 92, 896, 16, 1, 1};

size_t lives_layer_bytes(const struct lives_shape *shape)
{
	return (size_t)shape->rows * shape->top_k * sizeof(uint16_t);
}

static uint32_t record_rows(const struct lives_shape *shape)
{
	uint32_t rows = RECORD_BYTES / (shape->top_k * (uint32_t)sizeof(uint16_t));

	return rows < shape->rows ? rows : shape->rows;
}

static int give(struct lives *lives, const struct r3ring_record *record)
{
	const struct r3ring_view view = {
		.seq = ++lives->seq, .generation = 1, .type = record->type};

	return lives->take(lives->ctx, &view, record);
}

/* ---- making ------------------------------------------------------------- */

static int give_schema(struct lives *lives)
{
	const struct lives_shape *shape = lives->shape;
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < shape->layers; i++)
		lives->layers[i].layer_id = (int32_t)i;
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = shape->layers,
		.experts = shape->experts,
		.top_k = shape->top_k,
		.max_rows = shape->rows,
		.rows_per_record = record_rows(shape),
		.clock = 1,
		.generation = 1,
	};
	strncpy(record.u.schema.head.model, shape->model, R3RING_MODEL_NAME_MAX);
	record.u.schema.layers = lives->layers;
	return give(lives, &record);
}

/* Each cell's experts lie a step apart, around the circle. */
static void fill_ids(struct lives *lives)
{
	const struct lives_shape *shape = lives->shape;
	uint64_t state = 1;

	for (size_t cell = 0; cell < (size_t)shape->layers * shape->rows; cell++) {
		uint32_t first, apart;

		state = state * 6364136223846793005u + 1442695040888963407u;
		first = (uint32_t)(state >> 33) % shape->experts;
		apart = 1 + (uint32_t)(state >> 40) % (shape->experts / shape->top_k);
		for (uint32_t k = 0; k < shape->top_k; k++)
			lives->ids[cell * shape->top_k + k] =
				(uint16_t)((first + k * apart) % shape->experts);
	}
}

int lives_make(struct lives *lives, const struct lives_shape *shape, lives_take_fn take, void *ctx)
{
	const uint32_t rows = shape->rows / shape->requests;

	*lives = (struct lives){.shape = shape, .take = take, .ctx = ctx};
	lives->layers = calloc(shape->layers, sizeof(*lives->layers));
	lives->spans = calloc(shape->requests, sizeof(*lives->spans));
	lives->ids = calloc(shape->layers, lives_layer_bytes(shape));
	if (!lives->layers || !lives->spans || !lives->ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < shape->requests; i++)
		lives->spans[i] = (struct r3ring_span){.request = i + 1,
						       .row = i * rows,
						       .rows = rows,
						       .accepted = R3RING_UNKNOWN_U32};
	fill_ids(lives);
	return give_schema(lives);
}

void lives_free(struct lives *lives)
{
	free(lives->layers);
	free(lives->spans);
	free(lives->ids);
}

/* ---- living ------------------------------------------------------------- */

static int give_requests(struct lives *lives, enum r3ring_request_event event)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < lives->shape->requests; i++) {
		struct r3ring_record record = {.type = R3RING_REQUEST};
		char id[4] = {(char)('a' + i / 26 % 26), (char)('a' + i % 26),
			      (char)('a' + i / 676)};

		record.u.request.head = (struct r3ring_request_record){
			.handle = i + 1,
			.accepted_tokens = event == R3RING_REQUEST_BEGIN
						   ? R3RING_UNKNOWN_U32
						   : lives->shape->steps * lives->spans[0].rows + 1,
			.event = (uint8_t)event,
			.reason = event == R3RING_REQUEST_END ? R3RING_END_FINISHED : 0,
			.id_len = event == R3RING_REQUEST_BEGIN ? 3 : 0,
		};
		record.u.request.id = id;
		record.u.request.session = record.u.request.turn = record.u.request.sample = "";
		rc = give(lives, &record);
	}
	return rc;
}

int lives_begin(struct lives *lives)
{
	return give_requests(lives, R3RING_REQUEST_BEGIN);
}

int lives_end(struct lives *lives)
{
	return give_requests(lives, R3RING_REQUEST_END);
}

static int give_layers(struct lives *lives)
{
	const struct lives_shape *shape = lives->shape;
	const uint32_t part = record_rows(shape);
	struct r3ring_record record = {.type = R3RING_LAYER};
	int rc = 0;

	for (uint32_t layer = 0; !rc && layer < shape->layers; layer++)
		for (uint32_t row = 0; !rc && row < shape->rows; row += part) {
			uint32_t rows = shape->rows - row < part ? shape->rows - row : part;

			record.u.layer.head = (struct r3ring_layer_record){
				.step = lives->step,
				.layer_id = (int32_t)layer,
				.layer_index = (uint16_t)layer,
				.row = row,
				.rows = rows,
				.total_rows = shape->rows,
				.valid_rows = rows,
				.top_k = shape->top_k,
			};
			record.u.layer.ids =
				lives->ids + ((size_t)layer * shape->rows + row) * shape->top_k;
			rc = give(lives, &record);
		}
	return rc;
}

int lives_step(struct lives *lives, uint32_t index)
{
	const struct lives_shape *shape = lives->shape;
	struct r3ring_record record = {.type = R3RING_STEP};
	int rc;

	lives->step++;
	for (uint32_t i = 0; i < shape->requests; i++)
		lives->spans[i].position = index * lives->spans[i].rows;
	record.u.step.head = (struct r3ring_step_record){
		.step = lives->step,
		.total_rows = shape->rows,
		.row_end = shape->rows,
		.valid_end = shape->rows,
		.spans = shape->requests,
	};
	record.u.step.spans = lives->spans;
	rc = give(lives, &record);
	if (!rc)
		rc = give_layers(lives);
	record = (struct r3ring_record){.type = R3RING_STEP_END};
	record.u.step_end.head.step = lives->step;
	record.u.step_end.head.status = R3RING_STEP_COMPLETE;
	return rc ? rc : give(lives, &record);
}
