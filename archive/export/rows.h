/* SPDX-License-Identifier: Apache-2.0 */
/* A request's rows as the output has them: its layers, dtype and fills. */
#ifndef ARCHIVE_EXPORT_ROWS_H
#define ARCHIVE_EXPORT_ROWS_H

#include "archive/export/plan.h"

/* Layers that lie beside each other in the request and in the output. */
struct export_run {
	uint16_t from, to, layers;
};

struct export_reader {
	const struct export_plan *plan;
	const struct r3ring_assembled *assembled; /* that is read */
	uint32_t rows;                            /* that the buffers take */
	uint16_t *from;                           /* [plan->layers] where a request's layers lie */
	struct export_run *run;
	uint32_t runs;
	uint16_t *run_ids;
	uint8_t *valid, *cause, *run_valid, *run_cause;
	uint64_t *weight_version;
	void *own;     /* routes, where the chunk has no room for them */
	uint16_t *raw; /* before their conversion; NULL: ids are of the output's width */
	uint16_t *ids; /* of the rows at work */
	void *out;
	struct export_layer_cache {
		struct r3ring_layer_entry *layer; /* [layers] of the request before this one */
		uint32_t layers;
	} cache;
};

/* Returns 0 or -ENOMEM. Pairs with export_reader_close(). */
int export_reader_open(struct export_reader *reader, const struct export_plan *plan);
void export_reader_close(struct export_reader *reader);

/* The request whose rows are read next. Returns as export_plan_map(). */
int export_reader_begin(struct export_reader *reader, const struct export_known_layers *known,
			const struct r3ring_assembled_info *info, struct r3ring_error *err);

/*
 * Reads rows from chunk->position on, chunk->rows of them, at most reader->rows, the routes to
 * chunk->room where there is one; fills the rest of @chunk with what lies in the reader's
 * buffers until the next call.
 *
 * Returns 0, or -ENODATA: a cell is missing that must not be.
 */
int export_reader_read(struct export_reader *reader, const struct r3ring_assembled *assembled,
		       struct export_chunk *chunk, struct export_summary *summary,
		       struct r3ring_error *err);

#endif
