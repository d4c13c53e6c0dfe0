/* SPDX-License-Identifier: Apache-2.0 */
/* A small engine on the real producer library, and its listener. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/engine.h"

#define DEADLINE_MS 20000

uint16_t engine_id(uint64_t step, uint32_t layer, uint32_t row, uint32_t k)
{
	return (uint16_t)((step * 31 + layer * 17 + row * 7 + k * 41) % ENGINE_EXPERTS);
}

const char *engine_instance(const char *dir, const char *base)
{
	const char *unique = strchr(dir, '.');
	static char instance[R3RING_INSTANCE_MAX + 1];

	snprintf(instance, sizeof(instance), "%s%s", base, unique ? unique : "");
	return instance;
}

const char *engine_channel(const char *dir, const char *base)
{
	static char channel[R3RING_INSTANCE_MAX + 3];

	snprintf(channel, sizeof(channel), "%s/0", engine_instance(dir, base));
	return channel;
}

int engine_open(struct engine *engine, const char *dir, const char *instance, uint32_t max_rows,
		struct r3ring_error *err)
{
	return engine_open_rank(engine, dir, instance, (struct engine_rank){0}, max_rows, err);
}

int engine_open_rank(struct engine *engine, const char *dir, const char *instance,
		     struct engine_rank rank, uint32_t max_rows, struct r3ring_error *err)
{
	struct r3ring_layer_entry layers[ENGINE_LAYERS] = {0};
	struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.instance = instance,
		.rank = rank.rank,
		.draft = rank.draft,
		.device = "host",
		.model = rank.model ? rank.model : "engine",
		.experts = ENGINE_EXPERTS,
		.top_k = ENGINE_TOP_K,
		.max_rows = max_rows,
		.layer_count = ENGINE_LAYERS,
		.layers = layers,
	};
	int r;

	for (uint32_t i = 0; i < ENGINE_LAYERS; i++)
		layers[i].layer_id = ENGINE_FIRST_LAYER + (int32_t)i;
	engine->max_rows = max_rows;
	engine->ids = calloc((size_t)max_rows * ENGINE_TOP_K, sizeof(*engine->ids));
	engine->producer = NULL;
	engine->doorbell_layers = 0;
	r = r3ring_producer_open(&engine->producer, &options, err);
	if (r < 0) {
		free(engine->ids);
		engine->ids = NULL;
	}
	return r;
}

void engine_close(struct engine *engine)
{
	r3ring_producer_close(engine->producer);
	free(engine->ids);
	*engine = (struct engine){0};
}

int64_t engine_begin(struct engine *engine, int64_t handle, uint32_t rows)
{
	const uint64_t request = (uint64_t)handle;
	const uint32_t zero = 0;
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
		.doorbell_layers = engine->doorbell_layers,
		.eplb_epoch = engine->eplb_epoch,
		.spans = handle ? 1 : 0,
		.span_request = &request,
		.span_position = &zero,
		.span_rows = &rows,
	};

	return r3ring_step_begin(engine->producer, &step, NULL);
}

void engine_capture(struct engine *engine, int64_t step, uint32_t layer, uint32_t rows)
{
	const struct r3ring_topk topk = {
		.ids = engine->ids,
		.type = R3RING_INT32,
		.rows = rows,
		.columns = ENGINE_TOP_K,
		.row_stride = ENGINE_TOP_K,
	};

	for (uint32_t row = 0; row < rows; row++) {
		for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
			engine->ids[row * ENGINE_TOP_K + k] =
				engine_id((uint64_t)step, layer, row, k);
	}
	r3ring_capture(engine->producer, ENGINE_FIRST_LAYER + (int32_t)layer, &topk, NULL);
}

void engine_end(struct engine *engine)
{
	r3ring_step_end(engine->producer, NULL);
}

int64_t engine_step(struct engine *engine, int64_t handle, uint32_t rows)
{
	int64_t step = engine_begin(engine, handle, rows);

	if (step < 0)
		return step;
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(engine, step, layer, rows);
	engine_end(engine);
	return step;
}

/* ---- listening ---------------------------------------------------------- */

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void listener_open(struct listener *listener, const char *dir, const char *channel)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.channel = channel,
	};

	listener_open_as(listener, &options);
}

void listener_open_as(struct listener *listener, const struct r3ring_reader_options *options)
{
	struct r3ring_error err;

	memset(listener, 0, sizeof(*listener));
	if (r3ring_reader_open(&listener->reader, options, &err) == 0)
		return;
	fprintf(stderr, "listener: %s\n", err.text);
	exit(1);
}

void listener_close(struct listener *listener)
{
	r3ring_reader_close(listener->reader);
	listener->reader = NULL;
}

static void check_layer(struct listener *listener, const struct r3ring_layer_record *head,
			const uint16_t *ids)
{
	for (uint32_t row = 0; row < head->rows; row++) {
		for (uint32_t k = 0; k < head->top_k; k++) {
			uint16_t id = ids[row * head->top_k + k];

			listener->ids_checked++;
			listener->wrong +=
				head->row + row >= head->total_rows ||
				id != engine_id(head->step, head->layer_index, head->row + row, k);
		}
	}
}

static void note_end(struct listener *listener, const struct r3ring_record *record)
{
	const struct r3ring_step_end_record *head = &record->u.step_end.head;

	listener->complete += head->status == R3RING_STEP_COMPLETE;
	listener->partial += head->status == R3RING_STEP_PARTIAL;
	listener->newest_step_end = head->step;
	for (uint32_t i = 0; i < head->missing; i++)
		listener->missing_layers[record->u.step_end.missing[i].cause]++;
}

static void note(struct listener *listener, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_LAYER:
		check_layer(listener, &record->u.layer.head, record->u.layer.ids);
		break;
	case R3RING_STEP_END:
		note_end(listener, record);
		break;
	case R3RING_LOST:
		listener->lost_steps[record->u.lost.cause] += record->u.lost.steps;
		listener->lost_rows[record->u.lost.cause] += record->u.lost.rows;
		break;
	case R3RING_REQUEST:
		if (record->u.request.head.event == R3RING_REQUEST_BEGIN)
			listener->first_handle = r3ring_request_first(&record->u.request.head);
		listener->aborted += record->u.request.head.reason == R3RING_END_ABORTED;
		listener->ends_unknown += record->u.request.head.reason == R3RING_END_UNKNOWN;
		break;
	case R3RING_SCHEMA:
		listener->newest_generation = record->u.schema.head.generation;
		listener->continues = record->u.schema.head.continues;
		break;
	case R3RING_CLOSED:
		listener->closed_reason = record->u.closed.reason;
		listener->engine_lived = record->u.closed.engine_lives;
		break;
	default:
		break;
	}
}

/* What a view says counts only once it was found intact. */
static void take(struct listener *listener, const struct r3ring_view *view)
{
	struct listener before = *listener;
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) == 0)
		note(listener, &record);
	else
		listener->wrong++;
	if (r3ring_reader_check(listener->reader) < 0)
		*listener = before;
	else
		listener->records[view->type]++;
}

static void await_more(const struct listener *listener)
{
	struct pollfd ready = {.events = POLLIN};

	if (!listener->polls) {
		r3ring_reader_wait(listener->reader, 100);
		return;
	}
	ready.fd = r3ring_reader_fd(listener->reader);
	if (r3ring_reader_arm(listener->reader) == 0)
		poll(&ready, 1, -1);
}

bool listener_read_until(struct listener *listener,
			 bool (*done)(const struct listener *listener, uint64_t argument),
			 uint64_t argument)
{
	long long deadline = now_ms() + DEADLINE_MS;
	struct r3ring_view view;
	int r;

	while (!done(listener, argument)) {
		if (now_ms() > deadline)
			return false;
		r = r3ring_reader_next(listener->reader, &view);
		if (r == 1)
			take(listener, &view);
		else if (r == -EOVERFLOW)
			listener->overruns++;
		else if (r == -EBADMSG)
			listener->wrong++;
		else
			await_more(listener);
		r3ring_reader_get_stats(listener->reader, &listener->stats);
	}
	return true;
}

uint64_t listener_accounted(const struct listener *listener)
{
	uint64_t steps = listener->complete + listener->partial;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		steps += listener->lost_steps[cause];
	return steps;
}

bool listener_has_step(const struct listener *listener, uint64_t step)
{
	return listener->newest_step_end >= step;
}

bool listener_has_lost(const struct listener *listener, uint64_t cause)
{
	return listener->lost_steps[cause] > 0;
}

bool listener_has_closed(const struct listener *listener, uint64_t reason)
{
	return listener->closed_reason == reason;
}

bool listener_has_generation(const struct listener *listener, uint64_t generation)
{
	return listener->newest_generation >= generation;
}
