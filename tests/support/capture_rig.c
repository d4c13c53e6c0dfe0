/* SPDX-License-Identifier: Apache-2.0 */
/* A capture buffer on a bench, and an image of what must be in it. */
#include <stdlib.h>
#include <string.h>

#include <r3ring/producer.h>
#include <r3ring/record.h>

#include "kernels/body.h"
#include "tests/support/capture_rig.h"

#define UNTOUCHED 0xA5
#define TEAMS 3u
#define WORKERS 5u

static void *allocate(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (!memory)
		abort();
	memset(memory, UNTOUCHED, (bytes + 63) / 64 * 64);
	return memory;
}

/* ---- where things lie, walked instead of computed --------------------- */

static size_t padded(size_t bytes)
{
	while (bytes % 64)
		bytes++;
	return bytes;
}

/* Calls back with each row of the extent in turn: its place is where the walk
 * through all layers and records before it has come to. */
static size_t walk(const struct extent_geometry *g, uint32_t rows, uint32_t to_layer,
		   uint32_t to_row)
{
	size_t place = padded(16u * (size_t)g->layers);

	for (uint32_t layer = 0; layer < g->layers; layer++) {
		uint32_t row = 0;

		do {
			uint32_t in_record = rows - row < g->rows_per_record ? rows - row
									     : g->rows_per_record;

			if (layer == to_layer && to_row >= row && to_row < row + in_record)
				return place + 64 + (size_t)(to_row - row) * g->top_k * 2;
			place += padded(64 + (size_t)in_record * g->top_k * 2);
			row += in_record;
		} while (row < rows);
	}
	return place;
}

struct rig *rig_create(uint32_t layers, uint32_t top_k, uint32_t experts, uint32_t rows_per_record,
		       uint32_t rows)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (!rig)
		abort();
	rig->geometry = (struct extent_geometry){.layers = layers,
						 .top_k = top_k,
						 .experts = experts,
						 .rows_per_record = rows_per_record};
	rig->control.offset = EXTENT_NONE;
	rig->next = (struct extent_control){
		.step = 1, .offset = RIG_GUARD, .slot = 1, .row_end = rows, .valid_end = rows};
	rig->bytes = 2 * RIG_GUARD + walk(&rig->geometry, rows, layers, 0);
	rig->buffer = allocate(rig->bytes);
	rig->image = allocate(rig->bytes);
	rig->bells = allocate(RIG_SLOTS * (64 + 32 * (size_t)layers));
	rig->came = calloc(layers, sizeof(*rig->came));
	rig->random = 88172645463325252u;
	return rig;
}

void rig_free(struct rig *rig)
{
	free(rig->buffer);
	free(rig->image);
	free(rig->bells);
	free(rig->came);
	free(rig);
}

/* ---- the image -------------------------------------------------------- */

static uint32_t *image_counter(struct rig *rig, uint32_t layer)
{
	return (uint32_t *)(void *)(rig->image + rig->control.offset + 16u * (size_t)layer);
}

static uint16_t image_id(const struct rig *rig, uint32_t *counter, int64_t id)
{
	if (id >= 0 && id < (int64_t)rig->geometry.experts)
		return (uint16_t)id;
	counter[id == -1 ? 1 : 2]++;
	return 0xFFFF;
}

static void image_capture(struct rig *rig, const struct rig_launch *launch)
{
	const struct extent_control *control = &rig->control;
	const uint32_t top_k = rig->geometry.top_k;

	for (uint32_t row = 0; row < launch->rows && control->offset != EXTENT_NONE; row++) {
		uint64_t step_row = (uint64_t)control->first_source_row + launch->row_offset + row;
		uint32_t *counter = image_counter(rig, launch->layer);
		size_t place;

		if (step_row < control->row_begin || step_row >= control->row_end)
			continue;
		counter[0]++;
		rig->came[launch->layer]++;
		place = control->offset + walk(&rig->geometry,
					       control->row_end - control->row_begin, launch->layer,
					       (uint32_t)step_row - control->row_begin);
		for (uint32_t k = 0; k < top_k; k++) {
			uint16_t id = 0xFFFF;

			if (step_row < control->valid_end)
				id = image_id(rig, counter, launch->ids[(size_t)row * top_k + k]);
			memcpy(rig->image + place + 2u * k, &id, 2);
		}
	}
}

long rig_difference(const struct rig *rig)
{
	size_t counters = RIG_GUARD + 16u * (size_t)rig->geometry.layers;

	for (size_t i = 0; i < rig->bytes; i++) {
		bool coverage = i >= RIG_GUARD && i < counters && i % 16 >= 12;

		if (!coverage && rig->buffer[i] != rig->image[i])
			return (long)i;
	}
	return -1;
}

/* ---- launches --------------------------------------------------------- */

void rig_begin(struct rig *rig)
{
	struct kernel_begin_args args = {.control = &rig->control,
					 .buffer = rig->buffer,
					 .bells = rig->bells,
					 .geometry = rig->geometry,
					 .next = rig->next};

	if (rig->by_threads) {
		for (uint32_t worker = 0; worker < WORKERS; worker++)
			kernel_begin_clear(&args, worker, WORKERS);
		kernel_begin_arm(&args);
	} else {
		kernel_begin_host(&args);
	}
	if (rig->next.offset != EXTENT_NONE)
		memset(rig->image + rig->next.offset, 0, 16u * (size_t)rig->geometry.layers);
	memset(rig->came, 0, rig->geometry.layers * sizeof(*rig->came));
}

void rig_end(struct rig *rig)
{
	struct kernel_end_args args = {.control = &rig->control,
				       .buffer = rig->buffer,
				       .bells = rig->bells,
				       .geometry = rig->geometry};

	if (rig->by_threads) {
		for (uint32_t worker = 0; worker < WORKERS; worker++)
			kernel_end_report(&args, worker, WORKERS);
		kernel_end_disarm(&args);
	} else {
		kernel_end_host(&args);
	}
}

static void capture_by_threads(const struct kernel_capture_args *args)
{
	struct kernel_launch launch;

	if (!kernel_capture_plan(args, &launch))
		return;
	for (uint32_t team = 0; team < TEAMS; team++) {
		struct kernel_tally tally = {0};
		uint32_t from, to;

		kernel_capture_share(&launch, team, TEAMS, &from, &to);
		for (uint32_t worker = 0; worker < WORKERS; worker++)
			kernel_capture_copy(&launch, from, to, worker, WORKERS, &tally);
		if (!kernel_capture_report(&launch, from, to, &tally))
			continue;
		for (uint32_t worker = 0; worker < WORKERS; worker++)
			kernel_capture_ring(&launch, worker, WORKERS);
	}
}

static const uint8_t id_bytes[] = {[R3RING_INT16] = 2,
				   [R3RING_UINT16] = 2,
				   [R3RING_INT32] = 4,
				   [R3RING_UINT32] = 4,
				   [R3RING_INT64] = 8};

static void put_id(uint8_t *ids, uint32_t type, size_t element, int64_t id)
{
	memcpy(ids + element * id_bytes[type], &id, id_bytes[type]); /* little-endian */
}

void rig_capture(struct rig *rig, const struct rig_launch *launch)
{
	const uint32_t top_k = rig->geometry.top_k;
	uint8_t *memory =
		allocate(((size_t)launch->rows * launch->row_stride + rig->shift + 1) * 8);
	uint8_t *ids = memory + rig->shift * id_bytes[launch->type];
	struct kernel_capture_args args = {.control = &rig->control,
					   .buffer = rig->buffer,
					   .bells = rig->bells,
					   .geometry = rig->geometry,
					   .ids = ids,
					   .row_stride = launch->row_stride,
					   .type = launch->type,
					   .rows = launch->rows,
					   .row_offset = launch->row_offset,
					   .layer = launch->layer};

	for (uint32_t row = 0; row < launch->rows; row++)
		for (uint32_t k = 0; k < top_k; k++)
			put_id(ids, launch->type, (size_t)row * launch->row_stride + k,
			       launch->ids[(size_t)row * top_k + k]);
	image_capture(rig, launch);
	if (rig->by_threads)
		capture_by_threads(&args);
	else
		kernel_capture_host(&args);
	free(memory);
}

void rig_capture_layer(struct rig *rig, uint32_t layer)
{
	const uint32_t rows = rig->next.row_end - rig->next.row_begin;
	int64_t *ids = rig_random_ids(rig, R3RING_INT64, (size_t)rows * rig->geometry.top_k, 0);
	struct rig_launch launch = {.layer = layer,
				    .type = R3RING_INT64,
				    .rows = rows,
				    .row_offset = rig->next.row_begin - rig->next.first_source_row,
				    .row_stride = rig->geometry.top_k,
				    .ids = ids};

	rig_capture(rig, &launch);
	free(ids);
}

/* ---- ids -------------------------------------------------------------- */

uint64_t rig_random(struct rig *rig)
{
	rig->random ^= rig->random << 13;
	rig->random ^= rig->random >> 7;
	rig->random ^= rig->random << 17;
	return rig->random;
}

/* What no router should give, within what the type can hold. */
static int64_t odd_id(struct rig *rig, uint32_t type)
{
	const int64_t experts = rig->geometry.experts;
	const int64_t any[] = {-1, experts, experts + 1, 65534,     65536,     65536 + 3,
			       -2, -65536,  INT32_MIN,   INT64_MIN, INT64_MAX, (1ll << 32) + 1};
	static const size_t usable[] = {[R3RING_INT16] = 3,
					[R3RING_UINT16] = 4,
					[R3RING_INT32] = 9,
					[R3RING_UINT32] = 6,
					[R3RING_INT64] = 12};
	int64_t id = any[rig_random(rig) % usable[type]];

	if (type == R3RING_INT16 && id > INT16_MAX)
		return -2;
	if (type == R3RING_UINT16 && id > 65534)
		return 65534;
	return id;
}

int64_t *rig_random_ids(struct rig *rig, uint32_t type, size_t count, uint32_t odd)
{
	int64_t *ids = malloc((count + 1) * sizeof(*ids));
	uint32_t experts = rig->geometry.experts;

	if (!ids)
		abort();
	if (type == R3RING_INT16 && experts > 32768)
		experts = 32768;
	for (size_t i = 0; i < count; i++) {
		ids[i] = (int64_t)(rig_random(rig) % experts);
		if (odd && rig_random(rig) % odd == 0)
			ids[i] = odd_id(rig, type);
	}
	return ids;
}

/* ---- bells ------------------------------------------------------------ */

struct extent_slot *rig_slot(const struct rig *rig)
{
	return (struct extent_slot *)(void *)(rig->bells +
					      rig->next.slot *
						      (64 + 32 * (size_t)rig->geometry.layers));
}

struct extent_bell *rig_bell(const struct rig *rig, uint32_t layer)
{
	return (struct extent_bell *)(void *)(rig_slot(rig) + 1) + layer;
}
