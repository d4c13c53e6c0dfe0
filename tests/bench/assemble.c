/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembler, fed with whole steps and relieved of its requests, beside memcpy of the
 * same ids into memory as large as what the requests hold. Both count processor time.
 * Feeding and taking are rows of their own: steps come in as they are, and are turned into
 * requests when those are read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/assembler.h>

#include "tests/bench/bench.h"
#include "tests/bench/made_lives.h"

#define MEASURE_NS 300000000ull
#define ASSEMBLE_CPU 0

static const struct lives_shape *shape_of(const struct bench_row *row)
{
	return row->size == lives_flash_decode.rows ? &lives_flash_decode : &lives_k3_prefill;
}

/* ---- floor -------------------------------------------------------------- */

static int copy_layers(const struct bench_row *row, double *value)
{
	const struct lives_shape *shape = shape_of(row);
	const size_t bytes = lives_layer_bytes(shape), step = bytes * shape->layers;
	const size_t held = step * (shape->steps + 1);
	uint8_t *from = calloc(1, step), *to = malloc(held);
	uint64_t start = 0, passed = 0, steps = 0;
	int rc = from && to ? bench_pin(ASSEMBLE_CPU) : -ENOMEM;

	for (; !rc && passed < MEASURE_NS; steps++) {
		uint8_t *place = to + (steps % (shape->steps + 1)) * step;

		/* The first lap maps the memory. */
		if (steps == shape->steps + 1)
			start = bench_cpu_ns();
		for (uint32_t layer = 0; layer < shape->layers; layer++)
			memcpy(place + layer * bytes, from + layer * bytes, bytes);
		__asm__ __volatile__("" ::"r"(to) : "memory");
		passed = steps <= shape->steps ? 0 : bench_cpu_ns() - start;
	}
	if (!rc)
		*value = (double)passed / (double)(steps - shape->steps - 1) / 1e3;
	free(from);
	free(to);
	return rc;
}

/* ---- assembling --------------------------------------------------------- */

struct bed {
	struct lives lives;
	struct r3ring_assembler *assembler;
	uint16_t *routes; /* of one request */
	uint64_t given;
	uint64_t fed_ns, read_ns; /* so far */
};

static int feed(void *ctx, const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct bed *bed = ctx;

	return r3ring_assembler_feed(bed->assembler, 0, view, record);
}

/* Reads a request whole, all of whose cells must be there. */
static int read_request(const struct bed *bed, const struct r3ring_assembled *got)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(got);
	const struct r3ring_assembled_rows rows = {.ids = bed->routes};

	if (info->cells_valid != (uint64_t)(info->tokens - 1) * info->layers)
		return -EBADMSG;
	return r3ring_assembled_read(got, 0, info->tokens - 1, 0, info->layers, &rows);
}

/* Requests live, end, and are taken, read and freed. */
static int feed_lives(struct bed *bed)
{
	struct r3ring_assembled *got;
	int rc = lives_begin(&bed->lives);
	uint64_t start = bench_cpu_ns(), fed;

	for (uint32_t i = 0; !rc && i < bed->lives.shape->steps; i++)
		rc = lives_step(&bed->lives, i);
	fed = bench_cpu_ns();
	if (!rc)
		rc = lives_end(&bed->lives);
	while ((got = r3ring_assembler_take(bed->assembler))) {
		if (!rc)
			rc = read_request(bed, got);
		bed->given++;
		r3ring_assembled_free(got);
	}
	bed->fed_ns += fed - start;
	bed->read_ns += bench_cpu_ns() - fed;
	return rc;
}

static int bed_open(struct bed *bed, const struct lives_shape *shape)
{
	int rc = r3ring_assembler_create(&bed->assembler, NULL, NULL);

	bed->routes = calloc(shape->rows / shape->requests * shape->steps,
			     (size_t)shape->layers * shape->top_k * sizeof(*bed->routes));
	if (!rc && !bed->routes)
		rc = -ENOMEM;
	if (!rc)
		rc = r3ring_assembler_channel(bed->assembler, "bench/0");
	if (rc >= 0)
		rc = lives_make(&bed->lives, shape, feed, bed);
	return rc ? rc : bench_pin(ASSEMBLE_CPU);
}

static void bed_close(struct bed *bed)
{
	r3ring_assembler_destroy(bed->assembler);
	lives_free(&bed->lives);
	free(bed->routes);
}

/* Lives until both have taken long enough. The first ones map the memory. */
static int assemble(const struct bench_row *row, struct bed *bed, uint64_t *steps)
{
	int rc = bed_open(bed, shape_of(row));

	if (!rc)
		rc = feed_lives(bed);
	*steps = bed->lives.step;
	bed->fed_ns = bed->read_ns = 0;
	while (!rc && (bed->fed_ns < MEASURE_NS || bed->read_ns < MEASURE_NS))
		rc = feed_lives(bed);
	*steps = bed->lives.step - *steps;
	if (!rc &&
	    bed->given != (bed->lives.step / bed->lives.shape->steps) * bed->lives.shape->requests)
		rc = -EBADMSG;
	return rc;
}

static int assemble_steps(const struct bench_row *row, double *value)
{
	struct bed bed = {0};
	uint64_t steps;
	int rc = assemble(row, &bed, &steps);

	if (!rc)
		*value = (double)bed.fed_ns / (double)steps / 1e3;
	bed_close(&bed);
	return rc;
}

static int read_steps(const struct bench_row *row, double *value)
{
	struct bed bed = {0};
	uint64_t steps;
	int rc = assemble(row, &bed, &steps);

	if (!rc)
		*value = (double)bed.read_ns / (double)steps / 1e3;
	bed_close(&bed);
	return rc;
}

/* ---- memory --------------------------------------------------------------- */

static int bare_token(const struct bench_row *row, double *value)
{
	const struct lives_shape *shape = shape_of(row);

	*value = (double)lives_layer_bytes(shape) * shape->layers / shape->rows;
	return 0;
}

static int held_token(const struct bench_row *row, double *value)
{
	struct bed bed = {0};
	struct r3ring_assembler_stats stats;
	int rc = bed_open(&bed, shape_of(row));

	if (!rc)
		rc = lives_begin(&bed.lives);
	for (uint32_t i = 0; !rc && i < bed.lives.shape->steps; i++)
		rc = lives_step(&bed.lives, i);
	if (!rc) {
		r3ring_assembler_get_stats(bed.assembler, &stats);
		*value = (double)stats.bytes / (double)stats.rows_placed;
	}
	bed_close(&bed);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "DeepSeek-V4-Flash decode of 256 rows assembled, beside memcpy",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = assemble_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2,
	 .size = 256},
	{.name = "DeepSeek-V4-Flash decode of 256 rows read by request, likewise",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = read_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 8,
	 .size = 256},
	{.name = "Kimi-K3 prefill of 8192 rows assembled, beside memcpy",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = assemble_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2,
	 .size = 8192},
	{.name = "Kimi-K3 prefill of 8192 rows read by request, likewise",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = read_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 3,
	 .size = 8192},
	{.name = "memory of a DeepSeek-V4-Flash token, beside its bare ids",
	 .unit = "B",
	 .floor = bare_token,
	 .measured = held_token,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.25,
	 .size = 256},
};

const struct bench_group bench_assemble = {"assemble", rows, sizeof(rows) / sizeof(*rows)};
