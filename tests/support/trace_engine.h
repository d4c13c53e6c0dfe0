/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays the recording through the real producer library, step by step as the
 * test asks for it. Steps mix requests in an order that changes, some rows of
 * each at a time, with padding behind them, so that rows do not come in the
 * order of the file.
 */
#ifndef TESTS_SUPPORT_TRACE_ENGINE_H
#define TESTS_SUPPORT_TRACE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/producer.h>

#include "tests/support/recording.h"

#define TRACE_ENGINE_ROWS 64u /* of the largest step */

struct trace_engine {
	const struct recording *recording;
	struct r3ring_producer *producer;
	int64_t *handles; /* [requests], 0 before its beginning */
	uint32_t *next;   /* [requests] row that runs next */
	uint64_t steps, rows;
	uint64_t *step_of_row; /* [rows of the file] in which step it ran */

	/* The step being made. */
	uint32_t step_rows, spans;
	uint32_t source_row[TRACE_ENGINE_ROWS]; /* row of the file */
	uint64_t span_request[2 * TRACE_ENGINE_ROWS];
	uint32_t span_position[2 * TRACE_ENGINE_ROWS];
	uint32_t span_row[2 * TRACE_ENGINE_ROWS];
	uint32_t span_rows[2 * TRACE_ENGINE_ROWS];
	uint8_t span_kind[2 * TRACE_ENGINE_ROWS];
	int64_t *ids; /* [TRACE_ENGINE_ROWS][top_k] */
};

/* Opens the channel INSTANCE/0; ends the process when it cannot. */
void trace_engine_open(struct trace_engine *engine, const char *dir, const char *instance,
		       const struct recording *recording);

/* Closes the channel; what was run can still be asked for. */
void trace_engine_end(struct trace_engine *engine);
/* The same, and frees all. */
void trace_engine_close(struct trace_engine *engine);

/* Runs one step; false when all was run. */
bool trace_engine_step(struct trace_engine *engine);

/* The same in two parts: begins it and captures layers [0, layers), which are
 * told at once; then the others and the end. */
bool trace_engine_begin(struct trace_engine *engine, uint32_t layers);
void trace_engine_finish(struct trace_engine *engine, uint32_t layers);

#endif
