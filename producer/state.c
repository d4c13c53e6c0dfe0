/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer tells of itself: counts, layers, errors in words, log lines. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "producer/producer.h"

static uint32_t rows_of(const uint8_t *lane_step)
{
	struct r3ring_step_record step;

	memcpy(&step, lane_step + sizeof(struct lane_step), sizeof(step));
	return r3ring_step_valid_rows(&step);
}

/* The queue is shared with a daemon that may have spoilt it: then what is left
 * of it is not counted, and nothing outside of it is read. */
static void count_undelivered(const struct r3ring_producer *producer,
			      struct r3ring_producer_stats *stats)
{
	struct lane_reader reader;
	struct lane_entry entry;
	struct lane_step step;
	const uint8_t *payload;
	uint64_t tail;
	int error = 0;

	if (lane_review(&producer->steps, &reader, &tail))
		return;
	while ((payload = lane_peek(&reader, &entry, &error))) {
		memcpy(&step, payload, sizeof(step));
		if (!step.cause &&
		    entry.payload_bytes >= sizeof(step) + sizeof(struct r3ring_step_record)) {
			stats->undelivered_steps++;
			stats->undelivered_rows += rows_of(payload);
		}
		lane_consume(&reader, &entry);
	}
}

void r3ring_producer_get_stats(const struct r3ring_producer *producer,
			       struct r3ring_producer_stats *stats)
{
	*stats = (struct r3ring_producer_stats){
		.steps = r3ring_load_relaxed_u64(&producer->step),
		.rows = r3ring_load_relaxed_u64(&producer->rows),
		.dropped_records = r3ring_load_relaxed_u64(&producer->dropped_records),
		.generation = r3ring_load_relaxed_u64(&producer->generation),
		.connected = r3ring_load_relaxed_u32(&producer->connected),
		.bound_layers = r3ring_load_relaxed_u32(&producer->bound_layers),
	};
	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		stats->dropped_steps[cause] =
			r3ring_load_relaxed_u64(&producer->dropped_steps[cause]);
		stats->dropped_rows[cause] =
			r3ring_load_relaxed_u64(&producer->dropped_rows[cause]);
	}
	if (!stats->connected)
		count_undelivered(producer, stats);
}

int32_t r3ring_layer_index(const struct r3ring_producer *producer, int32_t layer_id, uint8_t kind)
{
	for (uint32_t i = 0; i < producer->geometry.layers; i++) {
		if (producer->layers[i].layer_id == layer_id && producer->layers[i].kind == kind)
			return (int32_t)i;
	}
	return -ENOENT;
}

/* ---- errors ----------------------------------------------------------- */

static int __attribute__((format(printf, 4, 0)))
failed(struct r3ring_producer *producer, struct producer_failure *failure, int code,
       const char *format, va_list args)
{
	vsnprintf(failure->error.text, sizeof(failure->error.text), format, args);
	failure->error.code = code;
	failure->thread = pthread_self();
	failure->order = r3ring_fetch_add_u64(&producer->failures, 1) + 1;
	return code;
}

int producer_step_failed(struct r3ring_producer *producer, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	code = failed(producer, &producer->step_failure, code, format, args);
	va_end(args);
	return code;
}

int producer_side_failed(struct r3ring_producer *producer, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	code = failed(producer, &producer->side_failure, code, format, args);
	va_end(args);
	return code;
}

static bool is_mine(const struct producer_failure *failure)
{
	return failure->order && pthread_equal(failure->thread, pthread_self());
}

/* A failure of another thread's is looked at only when this one has none. */
const char *r3ring_producer_error(const struct r3ring_producer *producer)
{
	const struct producer_failure *step = &producer->step_failure;
	const struct producer_failure *side = &producer->side_failure;

	if (!producer_is_own(producer))
		return "this producer belongs to the process that this one was forked from";
	if (is_mine(step) && is_mine(side))
		return step->order > side->order ? step->error.text : side->error.text;
	if (is_mine(step))
		return step->error.text;
	if (is_mine(side))
		return side->error.text;
	return "";
}

/* ---- log -------------------------------------------------------------- */

void producer_log(const struct r3ring_producer *producer, enum r3ring_log_level level,
		  const char *format, ...)
{
	char line[R3RING_ERROR_TEXT + 128];
	va_list args;

	if (!producer->log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	producer->log(producer->log_ctx, level, line);
}
