/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a safetensors file that is being written. */
#ifndef ARCHIVE_EXPORT_SAFETENSORS_H
#define ARCHIVE_EXPORT_SAFETENSORS_H

#include "archive/export/file.h"
#include "archive/export/format.h"
#include "archive/export/runs.h"

#define ROOM 65536u /* for the header and its length; where the routes begin */

enum part { ROUTES, CU_SEQLENS, PROMPTS, LAYER_IDS, IDS, PATCHES, PARTS };
enum run { POSITIONS, VERSIONS, VALID, RUNS };

struct export_writer {
	const struct export_plan *plan;
	struct export_file part[PARTS];
	struct export_runs run[RUNS];
	uint64_t begin[RUNS];     /* where they are in the output */
	uint8_t *all;             /* [layers] the mask of a row that has all */
	struct export_file moved; /* the output, where the room did not do */
	uint64_t rows, requests;
};

/* Of the routes alone. */
static inline uint64_t safetensors_routes_bytes(const struct export_writer *writer)
{
	return writer->part[ROUTES].size - ROOM;
}

/* The header's two ends; the request ids, of which there may be many, stand between. */
struct safetensors_header {
	char *head, *tail;
	size_t head_bytes, tail_bytes;
};

/* Returns 0 or -ENOMEM. Pairs with safetensors_header_free(), also where it failed. */
int safetensors_header_make(struct safetensors_header *header, const struct export_writer *writer,
			    struct r3ring_error *err);
void safetensors_header_free(struct safetensors_header *header);

#endif
