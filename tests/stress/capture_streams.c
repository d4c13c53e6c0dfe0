/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two streams capture parts of the same layers while a third party, in the
 * daemon's place, reads each layer as soon as its bell has rung.
 *
 * usage: capture_streams [STEPS [SEED]]; exits 0 only if every bell told the
 * truth: a complete layer's ids were all there, and what was left out was said.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/host_stream.h>
#include <r3ring/producer.h>

#include "device/device.h"

#define LAYERS 4u
#define ROWS 48u
#define TOP_K 4u
#define EXPERTS 4096u
#define SLOTS 2u /* steps in flight */
#define ROWS_PER_RECORD 20u
#define DEADLINE_S 60

/* What one step captures of one layer: rows [0, cut) on one stream, then
 * [cut, rows) on the other; fewer than all rows where it leaves some out. */
struct plan {
	uint32_t cut[LAYERS];
	uint32_t rows[LAYERS];
	uint32_t interval;
};

struct stress {
	const struct device_ops *ops;
	struct device *device;
	struct device_buffer buffer;
	struct extent_control *control;
	struct extent_geometry geometry;
	uint8_t *bells;
	struct r3ring_host_stream *streams[2];
	struct r3ring_host_event *armed, *captured;
	uint32_t ids[SLOTS][LAYERS][ROWS * TOP_K];
	uint64_t extent_bytes;
	uint64_t random;
	time_t until;
};

static void fail(const char *what, uint64_t step, uint32_t layer)
{
	fprintf(stderr, "step %" PRIu64 ", layer %u: %s\n", step, layer, what);
	exit(1);
}

static uint32_t random_below(struct stress *stress, uint32_t limit)
{
	stress->random ^= stress->random << 13;
	stress->random ^= stress->random >> 7;
	stress->random ^= stress->random << 17;
	return (uint32_t)(stress->random % limit);
}

static uint16_t id_at(uint64_t step, uint32_t layer, uint32_t index)
{
	return (uint16_t)((step * 7919 + layer * 104729 + index * 31) % EXPERTS);
}

/* ---- the model -------------------------------------------------------- */

static void capture(struct stress *stress, unsigned int stream, uint64_t step, uint32_t layer,
		    uint32_t from, uint32_t to)
{
	const struct kernel_capture_args args = {.control = stress->control,
						 .buffer = stress->buffer.base,
						 .bells = stress->bells,
						 .geometry = stress->geometry,
						 .ids = stress->ids[step % SLOTS][layer] +
							(size_t)from * TOP_K,
						 .row_stride = TOP_K,
						 .type = R3RING_UINT32,
						 .rows = to - from,
						 .row_offset = from,
						 .layer = layer};

	if (stress->ops->launch_capture(stress->device, stress->streams[stream], &args))
		fail("launch refused", step, layer);
}

static void begin(struct stress *stress, uint64_t step, uint32_t interval)
{
	const struct kernel_begin_args args = {
		.control = stress->control,
		.buffer = stress->buffer.base,
		.bells = stress->bells,
		.geometry = stress->geometry,
		.next = {.step = step,
			 .offset = step % SLOTS * stress->extent_bytes,
			 .slot = (uint32_t)(step % SLOTS),
			 .row_end = ROWS,
			 .valid_end = ROWS,
			 .doorbell_layers = interval}};

	stress->ops->launch_begin(stress->device, stress->streams[0], &args);
	r3ring_host_event_record(stress->armed, stress->streams[0]);
	r3ring_host_event_wait(stress->armed, stress->streams[1]);
}

static void end(struct stress *stress)
{
	const struct kernel_end_args args = {.control = stress->control,
					     .buffer = stress->buffer.base,
					     .bells = stress->bells,
					     .geometry = stress->geometry};

	r3ring_host_event_record(stress->captured, stress->streams[1]);
	r3ring_host_event_wait(stress->captured, stress->streams[0]);
	stress->ops->launch_end(stress->device, stress->streams[0], &args);
}

static void run_step(struct stress *stress, uint64_t step, struct plan *plan)
{
	plan->interval = random_below(stress, LAYERS + 1);
	begin(stress, step, plan->interval);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		for (uint32_t i = 0; i < ROWS * TOP_K; i++)
			stress->ids[step % SLOTS][layer][i] = id_at(step, layer, i);
		plan->rows[layer] = ROWS;
		if (random_below(stress, 8) == 0)
			plan->rows[layer] = random_below(stress, ROWS);
		plan->cut[layer] = random_below(stress, plan->rows[layer] + 1);
		capture(stress, layer % 2, step, layer, 0, plan->cut[layer]);
		capture(stress, 1 - layer % 2, step, layer, plan->cut[layer], plan->rows[layer]);
	}
	end(stress);
}

/* ---- in the daemon's place -------------------------------------------- */

static struct extent_slot *slot_of(struct stress *stress, uint64_t step)
{
	return (struct extent_slot *)(void *)(stress->bells +
					      step % SLOTS * extent_slot_bytes(LAYERS));
}

static void check_ids(struct stress *stress, uint64_t step, uint32_t layer)
{
	const uint8_t *extent = stress->buffer.base + step % SLOTS * stress->extent_bytes;

	for (uint32_t i = 0; i < ROWS * TOP_K; i++) {
		uint32_t row = i / TOP_K, part = row / ROWS_PER_RECORD;
		const uint16_t *ids =
			(const uint16_t *)(const void *)(extent + EXTENT_HEAD +
							 extent_part_offset(&stress->geometry, ROWS,
									    layer, part));

		if (ids[i - part * ROWS_PER_RECORD * TOP_K] != id_at(step, layer, i))
			fail("the bell rang, an id is wrong", step, layer);
	}
}

/* Looks at one layer's bell; true once it rang for this step. */
static bool look(struct stress *stress, uint64_t step, uint32_t layer, const struct plan *plan,
		 bool ended)
{
	struct extent_bell *bell =
		(struct extent_bell *)(void *)(slot_of(stress, step) + 1) + layer;
	uint32_t rows;

	/* Acquire: pairs with the release of the bell's step by capture or end. */
	if (r3ring_load_acquire_u64(&bell->step) != step) {
		if (ended)
			fail("the step ended without this bell", step, layer);
		return false;
	}
	rows = r3ring_load_relaxed_u32(&bell->rows);
	if (rows != plan->rows[layer])
		fail("the bell tells another number of rows", step, layer);
	if (rows == ROWS)
		check_ids(stress, step, layer);
	return true;
}

static void follow_step(struct stress *stress, uint64_t step, const struct plan *plan)
{
	struct extent_slot *slot = slot_of(stress, step);
	bool seen[LAYERS] = {false}, ended = false;

	while (!ended) {
		/* Acquire: pairs with the release of end_step by end. */
		ended = r3ring_load_acquire_u64(&slot->end_step) == step;
		for (uint32_t layer = 0; layer < LAYERS; layer++)
			seen[layer] = seen[layer] || look(stress, step, layer, plan, ended);
		if (time(NULL) > stress->until)
			fail("no end within the deadline", step, 0);
		sched_yield();
	}
}

/* ---- set-up ----------------------------------------------------------- */

static void set_up(struct stress *stress)
{
	stress->ops = &device_host_ops;
	stress->geometry = (struct extent_geometry){.layers = LAYERS,
						    .top_k = TOP_K,
						    .experts = EXPERTS,
						    .rows_per_record = ROWS_PER_RECORD};
	stress->extent_bytes = extent_bytes(&stress->geometry, ROWS);
	stress->bells = calloc(SLOTS, extent_slot_bytes(LAYERS));
	stress->until = time(NULL) + DEADLINE_S;
	if (!stress->bells ||
	    stress->ops->open(&stress->device, &(struct device_options){0}, NULL) ||
	    stress->ops->buffer_alloc(stress->device, R3RING_BUFFER_HOST,
				      SLOTS * stress->extent_bytes, &stress->buffer, NULL) ||
	    stress->ops->control_alloc(stress->device, &stress->control, NULL) ||
	    r3ring_host_stream_create(&stress->streams[0]) ||
	    r3ring_host_stream_create(&stress->streams[1]) ||
	    r3ring_host_event_create(&stress->armed) ||
	    r3ring_host_event_create(&stress->captured)) {
		fprintf(stderr, "set-up failed\n");
		exit(1);
	}
}

static void tear_down(struct stress *stress)
{
	r3ring_host_stream_destroy(stress->streams[0]);
	r3ring_host_stream_destroy(stress->streams[1]);
	r3ring_host_event_destroy(stress->armed);
	r3ring_host_event_destroy(stress->captured);
	stress->ops->buffer_free(stress->device, &stress->buffer);
	stress->ops->close(stress->device);
	free(stress->bells);
}

int main(int argc, char **argv)
{
	uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000;
	static struct stress stress;
	struct plan plans[SLOTS];

	stress.random = argc > 2 ? strtoull(argv[2], NULL, 10) : 20260101;
	printf("%" PRIu64 " steps, seed %" PRIu64 "\n", steps, stress.random);
	set_up(&stress);
	for (uint64_t step = 1; step <= steps; step++) {
		run_step(&stress, step, &plans[step % SLOTS]);
		if (step > 1) /* while this one runs */
			follow_step(&stress, step - 1, &plans[(step - 1) % SLOTS]);
	}
	follow_step(&stress, steps, &plans[steps % SLOTS]);
	tear_down(&stress);
	return 0;
}
