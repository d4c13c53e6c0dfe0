/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembler, fed with whole steps and relieved of its requests, beside memcpy of the
 * same ids into memory as large as what the requests hold. Both count processor time.
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
	uint64_t given;
};

static int feed(void *ctx, const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct bed *bed = ctx;

	return r3ring_assembler_feed(bed->assembler, 0, view, record);
}

/* Requests live, end, and are taken. Counts only the steps' own time: what a request's
 * beginning and end cost is shared by all that a user does with it. */
static int feed_lives(struct bed *bed, uint64_t *passed)
{
	struct r3ring_assembled *got;
	int rc = lives_begin(&bed->lives);
	uint64_t start = bench_cpu_ns();

	for (uint32_t i = 0; !rc && i < bed->lives.shape->steps; i++)
		rc = lives_step(&bed->lives, i);
	*passed += bench_cpu_ns() - start;
	if (!rc)
		rc = lives_end(&bed->lives);
	while ((got = r3ring_assembler_take(bed->assembler))) {
		const struct r3ring_assembled_info *info = r3ring_assembled_get_info(got);

		if (info->cells_valid != (uint64_t)(info->tokens - 1) * info->layers)
			rc = -EBADMSG;
		bed->given++;
		r3ring_assembled_free(got);
	}
	return rc;
}

static int bed_open(struct bed *bed, const struct lives_shape *shape)
{
	int rc = r3ring_assembler_create(&bed->assembler, NULL, NULL);

	if (!rc)
		rc = r3ring_assembler_channel(bed->assembler, "bench/0");
	if (rc >= 0)
		rc = lives_make(&bed->lives, shape, feed, bed);
	return rc ? rc : bench_pin(ASSEMBLE_CPU);
}

static int assemble_steps(const struct bench_row *row, double *value)
{
	struct bed bed = {0};
	uint64_t passed = 0, untimed = 0, before;
	int rc = bed_open(&bed, shape_of(row));

	if (!rc)
		rc = feed_lives(&bed, &untimed);
	before = bed.lives.step;
	while (!rc && passed < MEASURE_NS)
		rc = feed_lives(&bed, &passed);
	if (!rc &&
	    bed.given != (bed.lives.step / bed.lives.shape->steps) * bed.lives.shape->requests)
		rc = -EBADMSG;
	if (!rc)
		*value = (double)passed / (double)(bed.lives.step - before) / 1e3;
	r3ring_assembler_destroy(bed.assembler);
	lives_free(&bed.lives);
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
	{.name = "Kimi-K3 prefill of 8192 rows assembled, beside memcpy",
	 .unit = "us",
	 .floor = copy_layers,
	 .measured = assemble_steps,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 2,
	 .size = 8192},
};

const struct bench_group bench_assemble = {"assemble", rows, sizeof(rows) / sizeof(*rows)};
