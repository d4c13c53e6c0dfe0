/* SPDX-License-Identifier: Apache-2.0 */
/* Expert capacity reserved for a request of Kimi-K3, whose experts lie on 64 GPUs, while a
 * thousand others hold theirs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <r3ring/reserve.h>

#include "tests/bench/bench.h"

#define GPUS 64
#define OTHERS 1000
#define TIMES 2000

static const struct r3ring_demand_shape shape = {.layers = 92, .experts = 896, .top_k = 16};

struct bed {
	uint32_t *counts;
	struct r3ring_demand *demand;
	struct r3ring_book *book;
	double *ns; /* [TIMES] */
};

/* A request of a thousand tokens, some experts far more often than others. */
static void draw_counts(struct bed *bed)
{
	for (uint32_t layer = 0; layer < shape.layers; layer++) {
		for (uint32_t i = 0; i < 1000 * shape.top_k; i++) {
			uint32_t a = (uint32_t)rand() % shape.experts;
			uint32_t b = (uint32_t)rand() % shape.experts;

			bed->counts[layer * shape.experts + (a < b ? a : b)]++;
		}
	}
}

static int predict(struct bed *bed)
{
	return r3ring_demand_predict(bed->demand, &(struct r3ring_evidence){.counts = bed->counts},
				     1);
}

static int make(struct bed *bed, uint32_t number, struct r3ring_reserve_answer *answer)
{
	char key[16];

	snprintf(key, sizeof(key), "%u", number);
	return r3ring_book_make(bed->book, &(struct r3ring_reserve_request){.key = key},
				bed->demand, answer);
}

static int bed_open(struct bed *bed)
{
	const struct r3ring_book_options options = {
		.size = sizeof(options),
		.shape = shape,
		.gpus = GPUS,
		.capacity = 4096,
	};
	struct r3ring_reserve_answer answer;
	int r = r3ring_demand_create(&bed->demand, &shape);

	bed->counts = calloc((size_t)shape.layers * shape.experts, sizeof(*bed->counts));
	bed->ns = calloc(TIMES, sizeof(*bed->ns));
	if (r || !bed->counts || !bed->ns)
		return -ENOMEM;
	r = r3ring_book_create(&bed->book, &options, NULL);
	draw_counts(bed);
	for (uint32_t i = 0; !r && i < OTHERS; i++) {
		r = predict(bed);
		if (!r)
			r = make(bed, i, &answer);
	}
	return r;
}

static void bed_close(struct bed *bed)
{
	r3ring_book_destroy(bed->book);
	r3ring_demand_destroy(bed->demand);
	free(bed->counts);
	free(bed->ns);
}

static int time_predictions(struct bed *bed)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < TIMES; i++) {
		uint64_t begin = bench_now_ns();

		r = predict(bed);
		bed->ns[i] = (double)(bench_now_ns() - begin);
	}
	return r;
}

static int time_reservations(struct bed *bed)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < TIMES; i++) {
		struct r3ring_reserve_answer answer;
		uint64_t begin = bench_now_ns();

		r = make(bed, OTHERS + i, &answer);
		bed->ns[i] = (double)(bench_now_ns() - begin);
		r3ring_book_free(bed->book, answer.reservation);
	}
	return r;
}

static int measure(const struct bench_row *row, int (*what)(struct bed *bed), double *value)
{
	struct bed bed = {0};
	int r = bed_open(&bed);

	if (!r)
		r = what(&bed);
	if (!r)
		*value = bench_percentile(bed.ns, TIMES, row->percent) / 1000;
	bed_close(&bed);
	return r;
}

static int prediction(const struct bench_row *row, double *value)
{
	return measure(row, time_predictions, value);
}

static int reservation(const struct bench_row *row, double *value)
{
	return measure(row, time_reservations, value);
}

static const struct bench_row rows[] = {
	{.name = "Kimi-K3 reservation among 1000, 64 GPUs, p50",
	 .unit = "us",
	 .measured = reservation,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 20,
	 .percent = 50},
	{.name = "Kimi-K3 demand from counts of a request, p50",
	 .unit = "us",
	 .measured = prediction,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 100,
	 .percent = 50},
};

const struct bench_group bench_reserve = {
	.name = "reserve",
	.rows = rows,
	.count = sizeof(rows) / sizeof(*rows),
};
