/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing on the host device, beside memcpy of the ids that it reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/producer.h>

#include "device/device.h"
#include "tests/bench/bench.h"

#define MEASURE_NS 100000000ull
#define BENCH_CPU 0

struct shape {
	uint32_t rows, layers, experts, top_k;
};

static const struct shape flash_decode = {256, 43, 256, 6};
static const struct shape k3_prefill = {8192, 8, 896, 16}; /* as many layers as fit a cache */

static const struct shape *shape_of(const struct bench_row *row)
{
	return row->size == flash_decode.rows ? &flash_decode : &k3_prefill;
}

/* The router's ids, as it leaves them for the layer at hand. */
static int64_t *ids_create(const struct shape *shape)
{
	const size_t count = (size_t)shape->rows * shape->top_k;
	int64_t *ids = aligned_alloc(64, count * sizeof(*ids));

	for (size_t i = 0; ids && i < count; i++)
		ids[i] = (int64_t)(i * 2654435761u % shape->experts);
	return ids;
}

/* ---- floor ------------------------------------------------------------ */

static int copy_ids(const struct bench_row *row, double *value)
{
	const struct shape *shape = shape_of(row);
	const size_t bytes = (size_t)shape->rows * shape->top_k * sizeof(int64_t);
	int64_t *ids = ids_create(shape);
	uint8_t *to = aligned_alloc(64, bytes * shape->layers);
	uint64_t start, passed, passes = 0;
	int rc = bench_pin(BENCH_CPU);

	if (!ids || !to)
		rc = -ENOMEM;
	if (!rc) {
		memset(to, 1, bytes * shape->layers);
		start = bench_now_ns();
		do {
			for (uint32_t layer = 0; layer < shape->layers; layer++)
				memcpy(to + layer * bytes, ids, bytes);
			__asm__ __volatile__("" ::"r"(to) : "memory");
			passes++;
			passed = bench_now_ns() - start;
		} while (passed < MEASURE_NS);
		*value = (double)passed / (double)(passes * shape->layers);
	}
	free(ids);
	free(to);
	return rc;
}

/* ---- captures --------------------------------------------------------- */

struct rig {
	struct device *device;
	struct device_buffer buffer;
	struct extent_control *control;
	uint8_t *bells;
	struct extent_geometry geometry;
	int64_t *ids;
};

static void rig_close(struct rig *rig)
{
	if (rig->buffer.base)
		device_host_ops.buffer_free(rig->device, &rig->buffer);
	free(rig->bells);
	free(rig->ids);
	device_host_ops.close(rig->device);
}

static int rig_open(struct rig *rig, const struct shape *shape)
{
	int rc = device_host_ops.open(&rig->device, &(struct device_options){0}, NULL);

	if (rc)
		return rc;
	rig->geometry = (struct extent_geometry){.layers = shape->layers,
						 .top_k = shape->top_k,
						 .experts = shape->experts,
						 .rows_per_record = shape->rows};
	rig->ids = ids_create(shape);
	rig->bells = calloc(1, extent_slot_bytes(shape->layers));
	rc = rig->ids && rig->bells ? 0 : -ENOMEM;
	if (!rc)
		rc = device_host_ops.buffer_alloc(rig->device, R3RING_BUFFER_HOST,
						  extent_bytes(&rig->geometry, shape->rows),
						  &rig->buffer, NULL);
	if (!rc)
		rc = device_host_ops.control_alloc(rig->device, &rig->control, NULL);
	if (rc)
		rig_close(rig);
	return rc;
}

/* One step: begin, every layer, end. All launches run at once (inline stream). */
static int run_step(struct rig *rig, const struct shape *shape, uint64_t step)
{
	const struct kernel_begin_args begin = {
		.control = rig->control,
		.buffer = rig->buffer.base,
		.bells = rig->bells,
		.geometry = rig->geometry,
		.next = {.step = step, .row_end = shape->rows, .valid_end = shape->rows}};
	const struct kernel_end_args end = {.control = rig->control,
					    .buffer = rig->buffer.base,
					    .bells = rig->bells,
					    .geometry = rig->geometry};
	struct kernel_capture_args capture = {.control = rig->control,
					      .buffer = rig->buffer.base,
					      .bells = rig->bells,
					      .geometry = rig->geometry,
					      .ids = rig->ids,
					      .row_stride = shape->top_k,
					      .type = R3RING_INT64,
					      .rows = shape->rows};
	int rc = device_host_ops.launch_begin(rig->device, NULL, &begin);

	for (capture.layer = 0; !rc && capture.layer < shape->layers; capture.layer++)
		rc = device_host_ops.launch_capture(rig->device, NULL, &capture);
	return rc ? rc : device_host_ops.launch_end(rig->device, NULL, &end);
}

static int capture_ids(const struct bench_row *row, double *value)
{
	const struct shape *shape = shape_of(row);
	uint64_t start, passed = 0, step = 0;
	struct rig rig = {0};
	int rc = bench_pin(BENCH_CPU);

	if (!rc)
		rc = rig_open(&rig, shape);
	if (rc)
		return rc;
	start = bench_now_ns();
	while (!rc && passed < MEASURE_NS) {
		rc = run_step(&rig, shape, ++step);
		passed = bench_now_ns() - start;
	}
	*value = (double)passed / (double)(step * shape->layers);
	rig_close(&rig);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "capture of 256 x 6 int64 ids, beside memcpy of them",
	 .unit = "ns",
	 .floor = copy_ids,
	 .measured = capture_ids,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2.5,
	 .size = 256},
	{.name = "capture of 8192 x 16 int64 ids, beside memcpy of them",
	 .unit = "ns",
	 .floor = copy_ids,
	 .measured = capture_ids,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.5,
	 .size = 8192},
};

const struct bench_group bench_capture = {"capture", rows, sizeof(rows) / sizeof(rows[0])};
