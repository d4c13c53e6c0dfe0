/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small engine for system tests: real producer library, host device, ids by a
 * rule that a reader can work out again; and a listener that reads a channel and
 * checks every id against that rule.
 */
#ifndef TESTS_SUPPORT_ENGINE_H
#define TESTS_SUPPORT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/producer.h>
#include <r3ring/reader.h>

#define ENGINE_LAYERS 5u
#define ENGINE_TOP_K 6u
#define ENGINE_EXPERTS 256u
#define ENGINE_FIRST_LAYER 3 /* model layer number of the first one */

struct engine {
	struct r3ring_producer *producer;
	int32_t *ids; /* [max_rows][top_k] */
	uint32_t max_rows;
	uint32_t doorbell_layers; /* of the steps; 0: their layers come at their end */
	uint64_t eplb_epoch;      /* of the steps */
};

/* The id that layer @layer (index) of step @step has for a row. */
uint16_t engine_id(uint64_t step, uint32_t layer, uint32_t row, uint32_t k);

/*
 * The instance that tests of one runtime directory call @base, and its channel of
 * rank 0: made unique by that directory's name, because segments of all
 * directories share /dev/shm. Static texts.
 */
const char *engine_instance(const char *dir, const char *base);
const char *engine_channel(const char *dir, const char *base);

/* Opens a channel INSTANCE/0. Returns as r3ring_producer_open(). */
int engine_open(struct engine *engine, const char *dir, const char *instance, uint32_t max_rows,
		struct r3ring_error *err);
void engine_close(struct engine *engine);

/* The same of another channel of the instance. */
struct engine_rank {
	uint32_t rank;
	bool draft;
	const char *model; /* NULL: "engine" */
};
int engine_open_rank(struct engine *engine, const char *dir, const char *instance,
		     struct engine_rank rank, uint32_t max_rows, struct r3ring_error *err);

/* One whole step of @rows rows, of request @handle. Returns its number. */
int64_t engine_step(struct engine *engine, int64_t handle, uint32_t rows);

/* Its parts: a step with no layer captured, one layer, the end. */
int64_t engine_begin(struct engine *engine, int64_t handle, uint32_t rows);
void engine_capture(struct engine *engine, int64_t step, uint32_t layer, uint32_t rows);
void engine_end(struct engine *engine);

/* ---- listening ---------------------------------------------------------- */

struct listener {
	struct r3ring_reader *reader;
	bool polls; /* the caller's: waits by the reader's descriptor alone, without end */
	uint64_t records[R3RING_RECORD_TYPES];
	uint64_t ids_checked;
	uint64_t wrong; /* ids that differ from the rule */
	uint64_t overruns;
	uint64_t complete, partial;
	uint64_t aborted, ends_unknown; /* REQUEST END for that reason */
	uint64_t first_handle;          /* that the newest BEGIN told, 0: none */
	uint64_t lost_steps[R3RING_CAUSE_COUNT];
	uint64_t lost_rows[R3RING_CAUSE_COUNT];
	uint64_t missing_layers[R3RING_CAUSE_COUNT];
	uint64_t newest_step_end;
	uint64_t newest_generation;
	uint32_t continues;               /* of the newest SCHEMA */
	uint32_t closed_reason;           /* of the newest CLOSED, 0 when none */
	uint32_t engine_lived;            /* likewise */
	struct r3ring_reader_stats stats; /* as of the newest record or loss */
};

/* Attaches from the oldest record; ends the process when it cannot. */
void listener_open(struct listener *listener, const char *dir, const char *channel);
/* The same, reading as @options say. */
void listener_open_as(struct listener *listener, const struct r3ring_reader_options *options);
void listener_close(struct listener *listener);

/* Reads until @done says so, for at most twenty seconds; returns whether it did. */
bool listener_read_until(struct listener *listener,
			 bool (*done)(const struct listener *listener, uint64_t argument),
			 uint64_t argument);

/* Steps that came or were told lost, whatever the cause. */
uint64_t listener_accounted(const struct listener *listener);

/* For listener_read_until(). */
bool listener_has_step(const struct listener *listener, uint64_t step);
bool listener_has_lost(const struct listener *listener, uint64_t cause);
bool listener_has_closed(const struct listener *listener, uint64_t reason);
bool listener_has_generation(const struct listener *listener, uint64_t generation);

#endif
