/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work that a step enqueues on its stream, as plain argument structs. The
 * bodies are one source (kernels/body.h), compiled for the CPU (host.c) and for
 * the GPU (capture.cu).
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdint.h>

#include "channel/extent.h"

/* Arms the captures: zeroes the extent's counters, writes the control block. */
struct kernel_begin_args {
	struct extent_control *control;
	uint8_t *buffer;
	uint8_t *bells; /* of all slots, as the device sees them */
	struct extent_geometry geometry;
	struct extent_control next; /* what to write; offset EXTENT_NONE for a dropped step */
};

/* Copies one launch's rows of one layer. */
struct kernel_capture_args {
	const struct extent_control *control;
	uint8_t *buffer;
	uint8_t *bells;
	struct extent_geometry geometry;
	const void *ids;
	uint64_t row_stride; /* elements */
	uint32_t type;       /* enum r3ring_id_type */
	uint32_t rows;
	uint32_t row_offset;
	uint32_t layer;
};

/* Copies positions and token ids of the rank's rows; the slot then says which. */
struct kernel_rows_args {
	const struct extent_control *control;
	uint8_t *buffer;
	uint8_t *bells;
	struct extent_geometry geometry;
	const int32_t *positions;
	const int32_t *token_ids;
};

/* Reports all counts, rings what has not been rung, disarms. */
struct kernel_end_args {
	struct extent_control *control;
	uint8_t *buffer;
	uint8_t *bells;
	struct extent_geometry geometry;
};

/* CPU twins; each runs to its end in the calling thread. Two threads may run
 * captures of one layer at a time (micro-batches). */
void kernel_begin_host(const struct kernel_begin_args *args);
void kernel_capture_host(const struct kernel_capture_args *args);
void kernel_rows_host(const struct kernel_rows_args *args);
void kernel_end_host(const struct kernel_end_args *args);

#endif
