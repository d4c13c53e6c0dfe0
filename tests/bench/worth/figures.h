/* SPDX-License-Identifier: Apache-2.0 */
/* Means over seeds, with their confidence. */
#ifndef WORTH_FIGURES_H
#define WORTH_FIGURES_H

#include <math.h>
#include <stdint.h>

struct figures {
	double sum, squares;
	uint32_t count;
};

static inline void figures_add(struct figures *figures, double value)
{
	figures->sum += value;
	figures->squares += value * value;
	figures->count++;
}

static inline double figures_mean(const struct figures *figures)
{
	return figures->count ? figures->sum / figures->count : 0;
}

/* Half of the 95 % interval of the mean, by the normal distribution. */
static inline double figures_interval(const struct figures *figures)
{
	double mean = figures_mean(figures), variance;

	if (figures->count < 2)
		return 0;
	variance = (figures->squares - mean * figures->sum) / (figures->count - 1);
	return variance > 0 ? 1.96 * sqrt(variance / figures->count) : 0;
}

#endif
