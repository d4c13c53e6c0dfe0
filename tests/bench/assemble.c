/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembler, fed with whole steps and relieved of its requests, beside memcpy of the
 * same ids into memory as large as what the requests hold. Both count processor time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/assembler.h>

#include "tests/bench/bench.h"

#define MEASURE_NS 300000000ull
#define ASSEMBLE_CPU 0
#define RECORD_BYTES (1u << 20)

struct shape {
	const char *model;
	uint32_t rows, layers, experts;
	uint16_t top_k;
	uint32_t requests; /* of a step */
	uint32_t steps;    /* that a request lives */
};

static const struct shape flash_decode = {"DeepSeek-V4-Flash", 256, 43, 256, 6, 256, 64};
static const struct shape k3_prefill = {"Kimi-K3", 8192, 92, 896, 16, 1, 1};

static const struct shape *shape_of(const struct bench_row *row)
{
	return row->size == flash_decode.rows ? &flash_decode : &k3_prefill;
}

static size_t layer_bytes(const struct shape *shape)
{
	return (size_t)shape->rows * shape->top_k * sizeof(uint16_t);
}

static uint32_t record_rows(const struct shape *shape)
{
	uint32_t rows = RECORD_BYTES / (shape->top_k * (uint32_t)sizeof(uint16_t));

	return rows < shape->rows ? rows : shape->rows;
}

/* ---- floor -------------------------------------------------------------- */

static int copy_layers(const struct bench_row *row, double *value)
{
	const struct shape *shape = shape_of(row);
	const size_t bytes = layer_bytes(shape), step = bytes * shape->layers;
	const size_t held = step * (shape->steps + 1);
	uint8_t *from = calloc(1, step), *to = malloc(held);
	uint64_t start = 0, passed = 0, steps = 0;
	int rc = from && to ? bench_pin(ASSEMBLE_CPU) : -ENOMEM;

	for (; !rc && passed < MEASURE_NS; steps++) {
		uint8_t *place = to + (steps % (shape->steps + 1)) * step;

		/* The first lap maps the memory. */
		if (steps == shape->steps + 1)
			start = bench_cpu_ns();
		for (uint32_t layer = 0; layer < shape->layers; layer++)
			memcpy(place + layer * bytes, from + layer * bytes, bytes);
		__asm__ __volatile__("" ::"r"(to) : "memory");
		passed = steps <= shape->steps ? 0 : bench_cpu_ns() - start;
	}
	if (!rc)
		*value = (double)passed / (double)(steps - shape->steps - 1) / 1e3;
	free(from);
	free(to);
	return rc;
}

/* ---- assembling --------------------------------------------------------- */

struct bed {
	const struct shape *shape;
	struct r3ring_assembler *assembler;
	struct r3ring_layer_entry *layers;
	struct r3ring_span *spans;
	uint16_t *ids; /* [layers][rows][top_k] */
	uint64_t seq, step, given;
};

static int feed(struct bed *bed, const struct r3ring_record *record)
{
	const struct r3ring_view view = {.seq = ++bed->seq, .generation = 1, .type = record->type};

	return r3ring_assembler_feed(bed->assembler, 0, &view, record);
}

static int feed_schema(struct bed *bed)
{
	const struct shape *shape = bed->shape;
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < shape->layers; i++)
		bed->layers[i].layer_id = (int32_t)i;
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = shape->layers,
		.experts = shape->experts,
		.top_k = shape->top_k,
		.max_rows = shape->rows,
		.rows_per_record = record_rows(shape),
		.clock = 1,
	};
	strncpy(record.u.schema.head.model, shape->model, R3RING_MODEL_NAME_MAX);
	record.u.schema.layers = bed->layers;
	return feed(bed, &record);
}

static int feed_requests(struct bed *bed, enum r3ring_request_event event)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < bed->shape->requests; i++) {
		struct r3ring_record record = {.type = R3RING_REQUEST};
		char id[4] = {(char)('a' + i / 26 % 26), (char)('a' + i % 26),
			      (char)('a' + i / 676)};

		record.u.request.head = (struct r3ring_request_record){
			.handle = i + 1,
			.accepted_tokens = event == R3RING_REQUEST_BEGIN
						   ? R3RING_UNKNOWN_U32
						   : bed->shape->steps * bed->spans[0].rows + 1,
			.event = (uint8_t)event,
			.reason = event == R3RING_REQUEST_END ? R3RING_END_FINISHED : 0,
			.id_len = event == R3RING_REQUEST_BEGIN ? 3 : 0,
		};
		record.u.request.id = id;
		record.u.request.session = record.u.request.turn = record.u.request.sample = "";
		rc = feed(bed, &record);
	}
	return rc;
}

static int feed_layers(struct bed *bed)
{
	const struct shape *shape = bed->shape;
	const uint32_t part = record_rows(shape);
	struct r3ring_record record = {.type = R3RING_LAYER};
	int rc = 0;

	for (uint32_t layer = 0; !rc && layer < shape->layers; layer++)
		for (uint32_t row = 0; !rc && row < shape->rows; row += part) {
			uint32_t rows = shape->rows - row < part ? shape->rows - row : part;

			record.u.layer.head = (struct r3ring_layer_record){
				.step = bed->step,
				.layer_id = (int32_t)layer,
				.layer_index = (uint16_t)layer,
				.row = row,
				.rows = rows,
				.total_rows = shape->rows,
				.valid_rows = rows,
				.top_k = shape->top_k,
			};
			record.u.layer.ids =
				bed->ids + ((size_t)layer * shape->rows + row) * shape->top_k;
			rc = feed(bed, &record);
		}
	return rc;
}

static int feed_step(struct bed *bed, uint32_t position)
{
	const struct shape *shape = bed->shape;
	struct r3ring_record record = {.type = R3RING_STEP};
	int rc;

	bed->step++;
	for (uint32_t i = 0; i < shape->requests; i++)
		bed->spans[i].position = position * bed->spans[i].rows;
	record.u.step.head = (struct r3ring_step_record){
		.step = bed->step,
		.total_rows = shape->rows,
		.row_end = shape->rows,
		.valid_end = shape->rows,
		.spans = shape->requests,
	};
	record.u.step.spans = bed->spans;
	rc = feed(bed, &record);
	if (!rc)
		rc = feed_layers(bed);
	record = (struct r3ring_record){.type = R3RING_STEP_END};
	record.u.step_end.head.step = bed->step;
	record.u.step_end.head.status = R3RING_STEP_COMPLETE;
	return rc ? rc : feed(bed, &record);
}

/* Requests live, end, and are taken. Counts only the steps' own time: what a request's
 * beginning and end cost is shared by all that a user does with it. */
static int feed_lives(struct bed *bed, uint64_t *passed)
{
	struct r3ring_assembled *got;
	int rc = feed_requests(bed, R3RING_REQUEST_BEGIN);
	uint64_t start = bench_cpu_ns();

	for (uint32_t i = 0; !rc && i < bed->shape->steps; i++)
		rc = feed_step(bed, i);
	*passed += bench_cpu_ns() - start;
	if (!rc)
		rc = feed_requests(bed, R3RING_REQUEST_END);
	while ((got = r3ring_assembler_take(bed->assembler))) {
		const struct r3ring_assembled_info *info = r3ring_assembled_get_info(got);

		if (info->cells_valid != (uint64_t)(info->tokens - 1) * info->layers)
			rc = -EBADMSG;
		bed->given++;
		r3ring_assembled_free(got);
	}
	return rc;
}

static int bed_open(struct bed *bed)
{
	const struct shape *shape = bed->shape;
	uint32_t rows = shape->rows / shape->requests;
	int rc = r3ring_assembler_create(&bed->assembler, NULL, NULL);

	if (rc)
		return rc;
	bed->layers = calloc(shape->layers, sizeof(*bed->layers));
	bed->spans = calloc(shape->requests, sizeof(*bed->spans));
	bed->ids = calloc(shape->layers, layer_bytes(shape));
	if (!bed->layers || !bed->spans || !bed->ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < shape->requests; i++)
		bed->spans[i] = (struct r3ring_span){.request = i + 1,
						     .row = i * rows,
						     .rows = rows,
						     .accepted = R3RING_UNKNOWN_U32};
	rc = r3ring_assembler_channel(bed->assembler, "bench/0");
	if (rc < 0)
		return rc;
	rc = feed_schema(bed);
	return rc ? rc : bench_pin(ASSEMBLE_CPU);
}

static int assemble_steps(const struct bench_row *row, double *value)
{
	struct bed bed = {.shape = shape_of(row)};
	uint64_t passed = 0, untimed = 0, before;
	int rc = bed_open(&bed);

	if (!rc)
		rc = feed_lives(&bed, &untimed);
	before = bed.step;
	while (!rc && passed < MEASURE_NS)
		rc = feed_lives(&bed, &passed);
	if (!rc && bed.given != (bed.step / bed.shape->steps) * bed.shape->requests)
		rc = -EBADMSG;
	if (!rc)
		*value = (double)passed / (double)(bed.step - before) / 1e3;
	r3ring_assembler_destroy(bed.assembler);
	free(bed.layers);
	free(bed.spans);
	free(bed.ids);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "DeepSeek-V4-Flash decode of 256 rows assembled, beside memcpy",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = assemble_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2,
	 .size = 256},
	{.name = "Kimi-K3 prefill of 8192 rows assembled, beside memcpy",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = assemble_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2,
	 .size = 8192},
};

const struct bench_group bench_assemble = {"assemble", rows, sizeof(rows) / sizeof(*rows)};
