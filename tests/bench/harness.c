/* SPDX-License-Identifier: Apache-2.0 */
/* Measures one row between two measurements of its floor. */
#include <errno.h>

#include "tests/bench/bench.h"
#include "tests/bench/options.h"

#define DISAGREEMENT_MAX 0.25

/* What was measured in all repeats so far. */
struct samples {
	double floors[2 * BENCH_REPEATS_MAX];
	double measured[BENCH_REPEATS_MAX];
	double figures[BENCH_REPEATS_MAX];
	double disagreements[BENCH_REPEATS_MAX];
	unsigned int count;
};

static double figure_of(const struct bench_row *row, double floor, double measured)
{
	switch (row->kind) {
	case BENCH_RATIO_AT_MOST:
	case BENCH_RATIO_AT_LEAST:
		return measured / floor;
	case BENCH_EXCESS_AT_MOST:
		return measured - floor;
	case BENCH_VALUE_AT_MOST:
		break;
	}
	return measured;
}

static int measure_floor(const struct bench_row *row, double *value)
{
	*value = 0;
	return row->floor ? row->floor(row, value) : 0;
}

static int measure_once(const struct bench_row *row, struct samples *samples)
{
	unsigned int i = samples->count;
	double before, measured, after, larger, difference;
	int rc = measure_floor(row, &before);

	if (!rc)
		rc = row->measured(row, &measured);
	if (!rc)
		rc = measure_floor(row, &after);
	if (rc)
		return rc;
	larger = before > after ? before : after;
	difference = before > after ? before - after : after - before;
	samples->floors[2 * i] = before;
	samples->floors[2 * i + 1] = after;
	samples->measured[i] = measured;
	samples->figures[i] = figure_of(row, (before + after) / 2, measured);
	samples->disagreements[i] = larger > 0 ? difference / larger : 0;
	samples->count++;
	return 0;
}

struct bench_result bench_run(const struct bench_row *row, unsigned int repeats)
{
	struct bench_result result = {0};
	struct samples samples = {.count = 0};

	if (repeats < 1 || repeats > BENCH_REPEATS_MAX) {
		result.code = -EINVAL;
		return result;
	}
	while (!result.code && samples.count < repeats)
		result.code = measure_once(row, &samples);
	if (result.code)
		return result;
	result.floor = bench_percentile(samples.floors, 2u * samples.count, 50);
	result.measured = bench_percentile(samples.measured, samples.count, 50);
	result.figure = bench_percentile(samples.figures, samples.count, 50);
	result.disagreement = bench_percentile(samples.disagreements, samples.count, 50);
	result.met = row->kind == BENCH_RATIO_AT_LEAST ? result.figure >= row->target
						       : result.figure <= row->target;
	result.reliable = result.disagreement <= DISAGREEMENT_MAX;
	return result;
}
