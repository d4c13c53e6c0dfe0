/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents: how one step's routing lies in the capture buffer.
 *
 * The buffer is a ring of bytes; a step gets one contiguous piece of it, sized
 * to the step's rows. Inside, layers lie as records lie in the ring's arena
 * (64 bytes for the LAYER head, then the ids, 64-byte aligned, split after
 * rows_per_record rows), so that one copy moves any run of layers.
 *
 *	counters[layers]  (16 bytes each, padded to 64)
 *	layer 0: { head 64 | ids u16[rows][top_k] | pad } x parts
 *	layer 1 ...
 *	positions i32[rows], token_ids i32[rows]   (only if the channel captures rows)
 *
 * Shared by producer, kernels, device and daemon; C, C++ and nvcc accept it.
 */
#ifndef CHANNEL_EXTENT_H
#define CHANNEL_EXTENT_H

#include <stdint.h>

#include <r3ring/abi.h>

#ifdef __CUDACC__
#define EXTENT_INLINE static __host__ __device__ inline
#else
#define EXTENT_INLINE static inline
#endif

#define EXTENT_ALIGN 64u
#define EXTENT_HEAD 64u /* sizeof(struct r3ring_layer_record) */
#define EXTENT_NONE UINT64_MAX

struct extent_geometry {
	uint32_t layers;
	uint32_t top_k;
	uint32_t experts;
	uint32_t rows_per_record;
	uint32_t captures_rows;
	uint32_t reserved;
};

/* Kept in the extent, in device memory; zeroed by begin, added to by captures. */
struct extent_counter {
	uint32_t rows;         /* rows written, padding included */
	uint32_t missing;      /* ids of valid rows that were -1 */
	uint32_t out_of_range; /* ids of valid rows that were no expert */
	uint32_t coverage;     /* sum of extent_mark(last) - extent_mark(first) of the row ranges */
};

/*
 * The control block: one per producer, in device memory, alive as long as the
 * process. Written by begin, read by every capture, so that a recorded graph
 * captures another step at each replay.
 */
struct extent_control {
	uint64_t step;
	uint64_t offset; /* of the extent in the buffer; EXTENT_NONE: capture nothing */
	uint32_t slot;   /* which bells */
	uint32_t row_begin;
	uint32_t row_end;
	uint32_t valid_end;
	uint32_t first_source_row;
	uint32_t doorbell_layers;
	uint64_t reserved[3];
};

/* In a bell's `rows`: as many rows came as were run, but some came twice and
 * others never. More than any step has, so it reads as an overlap. */
#define EXTENT_ROWS_MIXED UINT32_MAX

/* One layer's doorbell, in host memory: `step` is stored last, with release at
 * system scope, and compared for equality; the counts are those of that step.
 * `end` stores it again, with the final counts. */
struct extent_bell {
	uint64_t step;
	uint32_t rows; /* rows that came, or EXTENT_ROWS_MIXED */
	uint32_t missing;
	uint32_t out_of_range;
	uint32_t reserved[3];
};

/* The bells of one extent slot; layers' bells follow. */
struct extent_slot {
	uint64_t begin_step; /* stored by begin, after begin_ns */
	uint64_t begin_ns;   /* CLOCK_MONOTONIC, 0 where the device has no such clock */
	uint64_t end_step;   /* stored by end with release, after everything else */
	uint64_t end_ns;
	uint64_t rows_step;    /* the step whose positions or token ids were captured */
	uint64_t rows_content; /* which: enum r3ring_rows_content; stored before rows_step */
	uint64_t reserved[2];
	/* struct extent_bell[layers] */
};

R3RING_STATIC_ASSERT(sizeof(struct extent_counter) == 16, "counter layout");
R3RING_STATIC_ASSERT(sizeof(struct extent_control) == 64, "control layout");
R3RING_STATIC_ASSERT(sizeof(struct extent_bell) == 32, "bell layout");
R3RING_STATIC_ASSERT(sizeof(struct extent_slot) == 64, "slot layout");

EXTENT_INLINE uint64_t extent_align(uint64_t bytes)
{
	return (bytes + EXTENT_ALIGN - 1) & ~(uint64_t)(EXTENT_ALIGN - 1);
}

/* Bytes of one part (one LAYER record) with @rows rows. */
EXTENT_INLINE uint64_t extent_part_bytes(const struct extent_geometry *g, uint32_t rows)
{
	return extent_align(EXTENT_HEAD + (uint64_t)rows * g->top_k * sizeof(uint16_t));
}

/* How many records one layer of @rows rows takes; a step without rows takes one. */
EXTENT_INLINE uint32_t extent_parts(const struct extent_geometry *g, uint32_t rows)
{
	return rows ? (rows - 1) / g->rows_per_record + 1 : 1;
}

/* Rows of part @part of a layer of @rows rows. */
EXTENT_INLINE uint32_t extent_part_rows(const struct extent_geometry *g, uint32_t rows,
					uint32_t part)
{
	uint32_t first = part * g->rows_per_record;
	uint32_t rest = rows - first;

	return rest < g->rows_per_record ? rest : g->rows_per_record;
}

EXTENT_INLINE uint64_t extent_layer_bytes(const struct extent_geometry *g, uint32_t rows)
{
	uint32_t last = extent_parts(g, rows) - 1;

	return last * extent_part_bytes(g, g->rows_per_record) +
	       extent_part_bytes(g, extent_part_rows(g, rows, last));
}

EXTENT_INLINE uint64_t extent_counters_bytes(const struct extent_geometry *g)
{
	return extent_align((uint64_t)g->layers * sizeof(struct extent_counter));
}

/* Offset of part @part of layer @layer within the extent. */
EXTENT_INLINE uint64_t extent_part_offset(const struct extent_geometry *g, uint32_t rows,
					  uint32_t layer, uint32_t part)
{
	return extent_counters_bytes(g) + layer * extent_layer_bytes(g, rows) +
	       part * extent_part_bytes(g, g->rows_per_record);
}

/* Offset of positions[rows] within the extent; token_ids[rows] follow, aligned. */
EXTENT_INLINE uint64_t extent_positions_offset(const struct extent_geometry *g, uint32_t rows)
{
	return extent_counters_bytes(g) + g->layers * extent_layer_bytes(g, rows);
}

EXTENT_INLINE uint64_t extent_token_ids_offset(const struct extent_geometry *g, uint32_t rows)
{
	return extent_positions_offset(g, rows) + extent_align((uint64_t)rows * sizeof(int32_t));
}

/* Bytes of the whole extent for @rows rows of this rank. */
EXTENT_INLINE uint64_t extent_bytes(const struct extent_geometry *g, uint32_t rows)
{
	uint64_t bytes = extent_positions_offset(g, rows);

	if (g->captures_rows)
		bytes += 2 * extent_align((uint64_t)rows * sizeof(int32_t));
	return bytes;
}

/*
 * A number that stands for a row boundary (a permutation of 32 bits). Row ranges
 * cover [begin, end) exactly once when and, but for one chance in 2^32, only when
 * the sum of mark(last) - mark(first) over them is mark(end) - mark(begin): so a
 * range that came twice cannot stand in for one that never came.
 *
 * Source: the finalizer of MurmurHash3 (Austin Appleby, public domain).
 */
EXTENT_INLINE uint32_t extent_mark(uint32_t row)
{
	row = (row ^ (row >> 16)) * 0x85ebca6bu;
	row = (row ^ (row >> 13)) * 0xc2b2ae35u;
	return row ^ (row >> 16);
}

/* Bytes of one slot's bells. */
EXTENT_INLINE uint64_t extent_slot_bytes(uint32_t layers)
{
	return sizeof(struct extent_slot) + (uint64_t)layers * sizeof(struct extent_bell);
}

#endif
