/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds an assembler, a load or signatures records of a small model, as a channel would have them.
 * The ids of a cell are a function of step, row and layer, so a test says what it expects
 * as the step and row that a position's routes must come from.
 */
#ifndef TESTS_RECORD_FEED_H
#define TESTS_RECORD_FEED_H

#include <criterion/criterion.h>

#include <r3ring/assembler.h>
#include <r3ring/load.h>
#include <r3ring/signature.h>

#define FEED_LAYERS 3u
#define FEED_TOP_K 2u
#define FEED_EXPERTS 60000u

struct feed {
	struct r3ring_assembler *assembler; /* NULL: not fed */
	struct r3ring_load *load;           /* likewise */
	struct r3ring_signatures *signatures;
	uint32_t channel;
	uint64_t seq;
	uint64_t units; /* rows of layers so far */
	uint16_t (*id)(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
		       uint32_t k);  /* NULL: feed_id() */
	uint64_t epoch;              /* of the next step's EPLB map */
	uint64_t ns;                 /* when its end is published */
	uint64_t lost_cells;         /* that the next LOST tells of */
	uint64_t lost_rows;          /* likewise */
	struct r3ring_totals totals; /* of the next keyframe */
	uint32_t padding;            /* rows behind those of the next step */
	uint64_t generation;
	uint64_t weight_version;
	int32_t first_layer; /* model layer numbers from it on */
	uint32_t salt;       /* other ids for the same step and row */
	struct r3ring_coordinates rank;
	uint16_t replica;
	uint64_t bound_since_ns;
	uint64_t host_ns;            /* of the next step */
	uint16_t continues;          /* of the schema */
	uint32_t flags;              /* of the next step */
	bool engine_lives, crashed;  /* says CLOSED */
	uint32_t row_begin, row_end; /* of the next step; 0, 0: all its rows */
	uint32_t key_kind, tokens_per_key;
	uint32_t experts;     /* 0: FEED_EXPERTS; ids are taken modulo it */
	const uint8_t *kinds; /* [FEED_LAYERS] enum r3ring_layer_kind; NULL: all moe */
	const char *session;  /* of requests that begin; NULL: none */
	uint32_t since_first; /* of the next that begins */
	/* Is given the records too; NULL: none. */
	void (*record)(void *ctx, const struct r3ring_view *view);
	void *ctx;
};

void feed_create(struct feed *feed, const struct r3ring_assembler_options *options);
/* Another channel of the same assembler. */
struct feed feed_channel(const struct feed *feed, const char *name);
void feed_destroy(struct feed *feed);
/* A load's, or signatures', channel "test/0". */
void feed_create_load(struct feed *feed, const struct r3ring_load_options *options);
void feed_create_signatures(struct feed *feed, const struct r3ring_signatures_options *options);
/* Another channel of the same signatures; then of the same load. */
struct feed feed_signatures_channel(const struct feed *feed, const char *name);
struct feed feed_load_channel(const struct feed *feed, const char *name);

void feed_schema(struct feed *feed);
void feed_begin(struct feed *feed, uint64_t handle, const char *id, uint32_t prompt,
		uint16_t attempt);
void feed_end(struct feed *feed, uint64_t handle, enum r3ring_end_reason reason, uint16_t attempt,
	      uint32_t accepted);
void feed_keyframe(struct feed *feed, uint32_t requests); /* SCHEMA and so many begins follow */
/* One that leaves out others that live. */
void feed_abridged_keyframe(struct feed *feed, uint32_t requests);
void feed_repeated_begin(struct feed *feed, uint64_t handle, const char *id, uint32_t prompt);
void feed_repeated_attempt(struct feed *feed, uint64_t handle, const char *id, uint32_t prompt,
			   uint16_t attempt);
void feed_lost(struct feed *feed, uint64_t from, uint64_t to, enum r3ring_cause cause,
	       uint32_t spans_unknown);

/* STEP alone; then layers [first, end) of it, SPANS, ROWS, STEP_END. */
void feed_step(struct feed *feed, uint64_t step, uint32_t rows, const struct r3ring_span *spans,
	       uint32_t count, const uint64_t *keys, uint32_t key_count);
void feed_layers(struct feed *feed, uint64_t step, uint32_t rows, uint32_t first, uint32_t end);
void feed_spans(struct feed *feed, uint64_t step, const struct r3ring_span *spans, uint32_t count);
/* With these flags (enum r3ring_spans_flags), and keys. */
void feed_spans_as(struct feed *feed, uint32_t flags, uint64_t step,
		   const struct r3ring_span *spans, uint32_t count, const uint64_t *keys,
		   uint32_t key_count);
void feed_rows(struct feed *feed, uint64_t step, const int32_t *positions, uint32_t rows);
void feed_step_end(struct feed *feed, uint64_t step, int32_t missing_layer,
		   enum r3ring_cause cause);
/* A map of all layers: expert e's replicas are at map[e], MISSING padded. */
void feed_map(struct feed *feed, uint64_t epoch, uint32_t replicas, uint32_t physical,
	      uint32_t gpus, const uint16_t *map);
void feed_closed(struct feed *feed);
void feed_key_copy(struct feed *feed, uint64_t from, uint64_t to);

/* A whole step: all layers and the end. */
void feed_whole(struct feed *feed, uint64_t step, uint32_t rows, const struct r3ring_span *spans,
		uint32_t count);
void feed_whole_keys(struct feed *feed, uint64_t step, uint32_t rows,
		     const struct r3ring_span *spans, uint32_t count, const uint64_t *keys,
		     uint32_t key_count);

/* The id that a captured cell holds at place @k. */
uint16_t feed_id(uint32_t salt, uint64_t step, uint32_t row, uint32_t layer, uint32_t k);

/* The next assembled request, which must be of this id. */
struct r3ring_assembled *take(struct feed *feed, const char *id);

/* The cell's cause; 0 only when the ids are those of @step and @row. */
uint8_t cell_of(const struct r3ring_assembled *assembled, uint32_t position, uint32_t layer,
		uint32_t salt, uint64_t step, uint32_t row);

#define assert_row(assembled, position, step, row)                                                 \
	do {                                                                                       \
		for (uint32_t layer_ = 0; layer_ < FEED_LAYERS; layer_++)                          \
			cr_assert_eq(cell_of(assembled, position, layer_, 0, step, row), 0,        \
				     "position %u, layer %u", (unsigned int)(position), layer_);   \
	} while (0)

#define assert_missing(assembled, position, cause)                                                 \
	do {                                                                                       \
		for (uint32_t layer_ = 0; layer_ < FEED_LAYERS; layer_++)                          \
			cr_assert_eq(cell_of(assembled, position, layer_, 0, 0, 0), (cause),       \
				     "position %u, layer %u: %s", (unsigned int)(position),        \
				     layer_,                                                       \
				     r3ring_missing_cause_name(                                    \
					     cell_of(assembled, position, layer_, 0, 0, 0)));      \
	} while (0)

#endif
