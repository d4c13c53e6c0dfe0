/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats: how an output is laid out, one file each. A format of a trainer's is a name,
 * defaults and a container that several may share.
 */
#ifndef ARCHIVE_EXPORT_FORMAT_H
#define ARCHIVE_EXPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/export/export.h"

/* What all requests of an output have in common; known before the first is written. */
struct export_plan {
	const struct export_format *format;
	const struct export_options *options;
	struct r3ring_layer_entry *layer; /* [layers] of the output; bound: it routes */
	uint32_t layers, top_k, experts;
	enum export_dtype dtype;
	enum export_fill missing, pad;
	enum export_rows rows;
	enum export_layers all;
	size_t row_bytes;                     /* of routes */
	const struct export_summary *summary; /* what was written so far */
	char model[R3RING_MODEL_NAME_MAX + 1];
};

struct export_request {
	const struct r3ring_assembled_info *info;
	const char *id;          /* no other request of the output has it */
	uint32_t position, rows; /* [position, position + rows) of it are written */
};

/* Some rows of a request, converted and filled. */
struct export_chunk {
	const struct export_request *request;
	uint32_t position, rows;
	bool whole;                     /* none is missing or padded */
	void *room;                     /* where the routes are to be; NULL: anywhere */
	const void *routes;             /* [rows][layers][top_k] of the plan's dtype */
	const uint8_t *valid;           /* [rows][layers] */
	const uint8_t *cause;           /* [rows][layers] of missing cells, before filling */
	const uint64_t *weight_version; /* [rows] */
};

struct export_writer; /* a container at work */

/* Each returns 0, -ENOSPC, -EIO, -EFBIG, -ENOMEM with the reason in @err. */
struct export_container {
	/* Makes the output's file, under no name; @out is borrowed. */
	int (*open)(struct export_writer **writer, const char *out, struct r3ring_error *err);
	int (*begin)(struct export_writer *writer, const struct export_plan *plan,
		     struct r3ring_error *err);
	int (*request)(struct export_writer *writer, const struct export_request *request,
		       struct r3ring_error *err);
	/* Where the routes of the next rows, @bytes, may be put instead of handing them over to
	 * be copied; or NULL. The operation may be absent. */
	void *(*room)(struct export_writer *writer, size_t bytes);
	int (*rows)(struct export_writer *writer, const struct export_chunk *chunk,
		    struct r3ring_error *err);
	int (*request_end)(struct export_writer *writer, struct r3ring_error *err);
	/* Rewrites the row that was the @number-th to be written; NULL: it cannot. */
	int (*patch)(struct export_writer *writer, uint64_t number,
		     const struct export_chunk *chunk, struct r3ring_error *err);
	/* The last: the output gets its name. @bytes: its size. */
	int (*finish)(struct export_writer *writer, uint64_t *bytes, struct r3ring_error *err);
	void (*close)(struct export_writer *writer); /* NULL is fine */
};

/* What a trainer makes of a fill. */
struct export_fill_rule {
	bool refused;
	const char *why; /* with the remedy; NULL: nothing is to be said */
};

struct export_format {
	const char *name;
	const char *summary;
	const char *tensor; /* what its trainer calls the routes */
	enum export_dtype dtype;
	bool signed_by_experts; /* dtype: the narrowest signed one that has room */
	bool fixed;             /* other dtypes and rows are refused */
	bool whole;             /* all layers and positions: its trainer goes by their places */
	bool few_holes;         /* of zeros for what is missing it takes few, see holes.h */
	enum export_rows rows;
	enum export_layers layers;
	enum export_fill pad;
	struct export_fill_rule missing[EXPORT_FILLS];
	bool one_request;
	const struct export_container *container;
};

extern const struct export_container export_safetensors_container, export_npy_container;
extern const struct export_container export_jsonl_container, export_base64_container;
extern const struct export_container export_msgpack_container;

extern const struct export_format export_safetensors, export_npy, export_jsonl;
extern const struct export_format export_verl, export_nemo_rl, export_skyrl;
extern const struct export_format export_prime_rl, export_slime, export_miles;

/* NULL when there is none of that name. */
const struct export_format *export_format_find(const char *name);

size_t export_dtype_bytes(enum export_dtype dtype);
/* Highest value; signed ones have -1 as well. */
uint64_t export_dtype_most(enum export_dtype dtype);
bool export_dtype_signed(enum export_dtype dtype);

#endif
