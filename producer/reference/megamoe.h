/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's MoE layers as an engine runs them on a stream: for each layer the
 * router selects logical experts, the layer's capture source (if bound) is
 * called with them, and only then EPLB maps them to physical replicas, in place,
 * with padding rows masked to -1. With keeps_ids it maps a copy.
 *
 * The call returns when the work is enqueued; the host prepares the next step
 * meanwhile. Two forwards may be in flight, a third call waits for the first.
 * A forward allocates nothing; with no source bound it calls nothing of
 * capture's.
 *
 * Where the ids come from is the caller's: forward.h computes them, trace.h has
 * them from a recording.
 */
#ifndef PRODUCER_REFERENCE_MEGAMOE_H
#define PRODUCER_REFERENCE_MEGAMOE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/bind.h>
#include <r3ring/error.h>
#include <r3ring/host_stream.h>
#include <r3ring/record.h>

#include "producer/reference/eplb.h"
#include "producer/reference/models.h"

struct megamoe;

/* Selects experts; called on the stream. */
struct megamoe_router {
	/* Once a step, before its layers; may be NULL. */
	void (*embed)(void *ctx, const int32_t *token_ids, const int32_t *positions, uint32_t rows);
	/* Fills ids[rows][top_k] of layer @layer, R3RING_MISSING where none is known. */
	void (*layer)(void *ctx, uint32_t layer, const int32_t *token_ids, uint32_t rows,
		      uint16_t *ids);
	void *ctx;
};

/* Maps a layer's ids in place; called on the stream. Returns 0, or a negative
 * errno that stops this and later forwards. */
typedef int (*megamoe_map_fn)(void *ctx, uint32_t layer, const struct eplb_ids *ids);

/* Where the forward runs. */
struct megamoe_place {
	int (*enqueue)(r3ring_stream stream, r3ring_host_work_fn fn, const void *args, size_t size);
	void *(*alloc)(size_t bytes); /* of the ids, which captures read; zeroed, or NULL */
	void (*free)(void *memory);   /* NULL is fine */
};

/* On a host stream, with ordinary memory. */
extern const struct megamoe_place megamoe_on_host;

struct megamoe_options {
	struct megamoe_router router;
	const struct megamoe_place *place; /* NULL: megamoe_on_host; must outlive it */
	megamoe_map_fn map;
	void *map_ctx;
	const struct r3ring_layer_entry *layers; /* [layer_count], copied */
	uint32_t layer_count;
	uint32_t dense_layers; /* layers [0, dense_layers) of the model are not MoE */
	uint32_t top_k;
	uint32_t max_rows;
	enum r3ring_id_type id_type; /* R3RING_INT32 or R3RING_INT64 */
	bool keeps_ids; /* each layer's ids stay until the next forward: captures are late */
	const struct moe_module *module; /* must outlive it */
};

/* One step's input; read before the call returns. */
struct megamoe_input {
	const int32_t *token_ids; /* [total_rows] */
	const int32_t *positions; /* [total_rows] */
	uint32_t rows;            /* tokens */
	uint32_t total_rows;      /* with padding, at most max_rows */
};

/* Returns 0 or -ENOMEM. Pairs with megamoe_free(), which takes NULL and wants no
 * forward in flight. */
int megamoe_create(struct megamoe **megamoe, const struct megamoe_options *options,
		   struct r3ring_error *err);
void megamoe_free(struct megamoe *megamoe);

/* The model's modules, dense layers too, for r3ring_bind(). */
const struct r3ring_module *megamoe_modules(const struct megamoe *megamoe, size_t *count);

/* Capture source of layer @index. */
struct r3ring_capture_source *megamoe_source(struct megamoe *megamoe, uint32_t index);

/* Enqueues the forward of one step. One thread at a time. Returns 0, -EINVAL
 * (more rows than max_rows), or the error of an earlier mapping or of the stream. */
int megamoe_forward(struct megamoe *megamoe, const struct megamoe_input *input,
		    r3ring_stream stream);

/* Waits for the forwards in flight. Returns 0 or the error of a mapping. */
int megamoe_wait(struct megamoe *megamoe);

#endif
