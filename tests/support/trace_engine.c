/* SPDX-License-Identifier: Apache-2.0 */
/* The recording, replayed step by step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/trace_engine.h"

#define PADDING 8u /* steps have a multiple of so many rows */
#define ROWS_AT_ONCE 7u
#define RUNNING 16u /* requests at a time */

static void die(const char *what)
{
	fprintf(stderr, "trace engine: %s\n", what);
	exit(1);
}

void trace_engine_open(struct trace_engine *engine, const char *dir, const char *instance,
		       const struct recording *recording)
{
	struct r3ring_layer_entry layers[R3RING_LAYERS_MAX] = {0};
	struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.instance = instance,
		.device = "host",
		.model = "recording",
		.experts = recording->experts,
		.top_k = recording->top_k,
		.max_rows = TRACE_ENGINE_ROWS,
		.layer_count = recording->layers,
		.layers = layers,
	};
	struct r3ring_error err;

	for (uint32_t i = 0; i < recording->layers; i++)
		layers[i].layer_id = (int32_t)i;
	memset(engine, 0, sizeof(*engine));
	engine->recording = recording;
	engine->handles = calloc(recording->request_count, sizeof(*engine->handles));
	engine->next = calloc(recording->request_count, sizeof(*engine->next));
	engine->ids = calloc((size_t)TRACE_ENGINE_ROWS * recording->top_k, sizeof(*engine->ids));
	engine->step_of_row = calloc(recording->rows, sizeof(*engine->step_of_row));
	if (!engine->handles || !engine->next || !engine->ids || !engine->step_of_row)
		die("out of memory");
	if (r3ring_producer_open(&engine->producer, &options, &err) < 0)
		die(err.text);
}

void trace_engine_end(struct trace_engine *engine)
{
	r3ring_producer_close(engine->producer);
	engine->producer = NULL;
}

void trace_engine_close(struct trace_engine *engine)
{
	trace_engine_end(engine);
	free(engine->handles);
	free(engine->next);
	free(engine->ids);
	free(engine->step_of_row);
	memset(engine, 0, sizeof(*engine));
}

/* ---- making a step ----------------------------------------------------- */

static void add_span(struct trace_engine *engine, uint32_t request, uint32_t position,
		     uint32_t rows, enum r3ring_span_kind kind)
{
	uint32_t i = engine->spans++;

	engine->span_request[i] = (uint64_t)engine->handles[request];
	engine->span_position[i] = position;
	engine->span_row[i] = kind == R3RING_SPAN_COMPUTED ? engine->step_rows : 0;
	engine->span_rows[i] = rows;
	engine->span_kind[i] = (uint8_t)kind;
}

static void begin_request(struct trace_engine *engine, uint32_t request)
{
	const struct recording_request *from = &engine->recording->requests[request];
	const struct r3ring_request announced = {
		.size = sizeof(announced),
		.id = from->id,
		.prompt_tokens = from->prompt_tokens,
	};

	engine->handles[request] = r3ring_request_begin(engine->producer, &announced);
	if (engine->handles[request] <= 0)
		die("a request cannot begin");
	add_span(engine, request, 0, from->prompt_tokens, R3RING_SPAN_EXTERNAL);
}

static void add_rows(struct trace_engine *engine, uint32_t request, uint32_t wanted)
{
	const struct recording_request *from = &engine->recording->requests[request];
	uint32_t left = from->rows - engine->next[request];
	uint32_t room = TRACE_ENGINE_ROWS - engine->step_rows;
	uint32_t rows = wanted < left ? wanted : left;

	if (rows > room)
		rows = room;
	if (!rows)
		return;
	if (!engine->handles[request])
		begin_request(engine, request);
	add_span(engine, request, from->prompt_tokens + engine->next[request], rows,
		 R3RING_SPAN_COMPUTED);
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t row = from->first_row + engine->next[request]++;

		engine->source_row[engine->step_rows++] = row;
		engine->step_of_row[row] = engine->steps + 1;
	}
}

/* The first requests that have rows left, so that some begin and end all along. */
static uint32_t choose_requests(const struct trace_engine *engine, uint32_t running[RUNNING])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < engine->recording->request_count && count < RUNNING; i++) {
		if (engine->next[i] < engine->recording->requests[i].rows)
			running[count++] = i;
	}
	return count;
}

static void choose_rows(struct trace_engine *engine)
{
	uint32_t running[RUNNING];
	uint32_t count = choose_requests(engine, running);

	engine->step_rows = 0;
	engine->spans = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t request = running[(engine->steps * 7 + i) % count];

		/* Some are fast and some slow: they begin and end at different times. */
		add_rows(engine, request, 1 + request * 5 % ROWS_AT_ONCE);
	}
}

static uint32_t padded(uint32_t rows)
{
	return (rows + PADDING - 1) / PADDING * PADDING;
}

static void announce(struct trace_engine *engine)
{
	uint32_t total = padded(engine->step_rows);
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = total,
		.row_end = total,
		.valid_end = engine->step_rows,
		.doorbell_layers = 1,
		.spans = engine->spans,
		.span_request = engine->span_request,
		.span_position = engine->span_position,
		.span_row = engine->span_row,
		.span_rows = engine->span_rows,
		.span_kind = engine->span_kind,
	};

	if (r3ring_step_begin(engine->producer, &step, NULL) != (int64_t)engine->steps + 1)
		die(r3ring_producer_error(engine->producer));
}

/* ---- running it -------------------------------------------------------- */

static void capture(struct trace_engine *engine, uint32_t layer)
{
	uint32_t top_k = engine->recording->top_k;
	const struct r3ring_topk topk = {
		.ids = engine->ids,
		.type = R3RING_INT64,
		.rows = padded(engine->step_rows),
		.columns = top_k,
		.row_stride = top_k,
	};

	for (uint32_t row = 0; row < engine->step_rows; row++) {
		const uint16_t *from =
			recording_ids(engine->recording, engine->source_row[row], layer);

		for (uint32_t k = 0; k < top_k; k++)
			engine->ids[row * top_k + k] = from[k];
	}
	if (r3ring_capture(engine->producer, (int32_t)layer, &topk, NULL) < 0)
		die(r3ring_producer_error(engine->producer));
}

static void end_requests(struct trace_engine *engine)
{
	for (uint32_t i = 0; i < engine->spans; i++) {
		for (uint32_t r = 0; r < engine->recording->request_count; r++) {
			const struct recording_request *from = &engine->recording->requests[r];

			if (engine->span_kind[i] != R3RING_SPAN_COMPUTED ||
			    engine->span_request[i] != (uint64_t)engine->handles[r] ||
			    engine->next[r] != from->rows)
				continue;
			r3ring_request_end(engine->producer, engine->handles[r],
					   R3RING_END_FINISHED, 0,
					   from->prompt_tokens + from->rows + 1);
		}
	}
}

bool trace_engine_begin(struct trace_engine *engine, uint32_t layers)
{
	choose_rows(engine);
	if (!engine->step_rows)
		return false;
	announce(engine);
	engine->steps++;
	engine->rows += engine->step_rows;
	for (uint32_t layer = 0; layer < layers; layer++)
		capture(engine, layer);
	return true;
}

void trace_engine_finish(struct trace_engine *engine, uint32_t layers)
{
	for (uint32_t layer = layers; layer < engine->recording->layers; layer++)
		capture(engine, layer);
	if (r3ring_step_end(engine->producer, NULL) < 0)
		die(r3ring_producer_error(engine->producer));
	end_requests(engine);
}

bool trace_engine_step(struct trace_engine *engine)
{
	if (!trace_engine_begin(engine, 0))
		return false;
	trace_engine_finish(engine, 0);
	return true;
}
