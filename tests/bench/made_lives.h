/* SPDX-License-Identifier: Apache-2.0 */
/* Records of requests that live a while, all at once, and end: for what assembles them. */
#ifndef TESTS_BENCH_MADE_LIVES_H
#define TESTS_BENCH_MADE_LIVES_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

struct lives_shape {
	const char *model;
	uint32_t rows, layers, experts;
	uint16_t top_k;
	uint32_t requests; /* of a step */
	uint32_t steps;    /* that a request lives */
};

extern const struct lives_shape lives_flash_decode, lives_k3_prefill;

/* Takes a record; @view has all but the payload. Returns 0 or a negative errno. */
typedef int (*lives_take_fn)(void *ctx, const struct r3ring_view *view,
			     const struct r3ring_record *record);

struct lives {
	const struct lives_shape *shape;
	lives_take_fn take;
	void *ctx;
	struct r3ring_layer_entry *layers;
	struct r3ring_span *spans;
	uint16_t *ids; /* [layers][rows][top_k]: distinct experts by chance */
	uint64_t seq, step;
};

/* Bytes of a layer's ids in a step. */
size_t lives_layer_bytes(const struct lives_shape *shape);

/* Makes them and gives the schema. What it made on failure is freed by lives_free(). */
int lives_make(struct lives *lives, const struct lives_shape *shape, lives_take_fn take, void *ctx);
void lives_free(struct lives *lives);

/* All requests begin, run their @index-th step, end. Return what @take returned. */
int lives_begin(struct lives *lives);
int lives_step(struct lives *lives, uint32_t index);
int lives_end(struct lives *lives);

#endif
