/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture buffer with its bells on a bench, and what must be in it: every
 * launch is also applied, id by id and by the rules as they are written, to an
 * image of the whole buffer, so that a comparison finds each byte that is wrong
 * or should not have been touched.
 */
#ifndef TESTS_SUPPORT_CAPTURE_RIG_H
#define TESTS_SUPPORT_CAPTURE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define RIG_SLOTS 3u
#define RIG_GUARD 4096u /* untouched bytes before and behind the extent */

struct rig {
	struct extent_geometry geometry;
	struct extent_control control;
	struct extent_control next; /* the step to begin */
	uint8_t *buffer, *image;
	size_t bytes;
	uint8_t *bells;
	uint32_t *came; /* [layers]: rows as the image counts them */
	uint64_t random;
	bool by_threads; /* run the bodies as a GPU would: teams of workers */
	uint32_t shift;  /* ids before the first one, so that it is not aligned to more than one */
};

/* One launch: ids as numbers, to be written in the launch's own type. */
struct rig_launch {
	uint32_t layer;
	uint32_t type;
	uint32_t rows;
	uint32_t row_offset;
	uint32_t row_stride;
	const int64_t *ids; /* [rows][top_k] */
};

/* A rig whose next step has rows [0, rows), all valid. Exits on no memory. */
struct rig *rig_create(uint32_t layers, uint32_t top_k, uint32_t experts, uint32_t rows_per_record,
		       uint32_t rows);
void rig_free(struct rig *rig);

void rig_begin(struct rig *rig);
void rig_capture(struct rig *rig, const struct rig_launch *launch);
void rig_end(struct rig *rig);

/* Captures all rows of a layer in one launch of random experts. */
void rig_capture_layer(struct rig *rig, uint32_t layer);

/* Random ids: experts, and one in @odd of them something else (0: never). */
int64_t *rig_random_ids(struct rig *rig, uint32_t type, size_t count, uint32_t odd);
uint64_t rig_random(struct rig *rig);

/* Offset of the first byte that differs from the image, or -1. */
long rig_difference(const struct rig *rig);

struct extent_slot *rig_slot(const struct rig *rig);
struct extent_bell *rig_bell(const struct rig *rig, uint32_t layer);

#endif
