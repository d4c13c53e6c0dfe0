/* SPDX-License-Identifier: Apache-2.0 */
/* How even a layer's load is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/load.h>

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* @sorted: ascending. */
static void shares(struct r3ring_load_figures *figures, const double *sorted, uint32_t count,
		   uint32_t hottest)
{
	double ranks = 0, top = 0;

	for (uint32_t i = 0; i < count; i++) {
		ranks += (2.0 * (i + 1) - count - 1) * sorted[i];
		if (i + hottest >= count)
			top += sorted[i];
	}
	figures->gini = ranks / (count * figures->sum);
	figures->hottest = top / figures->sum;
}

int r3ring_load_measure(const double *values, uint32_t count, uint32_t hottest,
			struct r3ring_load_figures *figures)
{
	struct r3ring_load_figures found = {0};
	double squares = 0, *sorted;

	if (!count || !values || !figures)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		found.sum += values[i];
		squares += values[i] * values[i];
		found.dead += values[i] <= 0;
		if (values[i] > values[found.most])
			found.most = i;
	}
	if (found.sum > 0) {
		sorted = malloc(count * sizeof(*sorted));
		if (!sorted)
			return -ENOMEM;
		memcpy(sorted, values, count * sizeof(*sorted));
		qsort(sorted, count, sizeof(*sorted), ascending);
		found.max = values[found.most];
		found.mean = found.sum / count;
		found.max_to_mean = found.max / found.mean;
		found.jain = found.sum * found.sum / (count * squares);
		shares(&found, sorted, count, hottest < count ? hottest : count);
		free(sorted);
	}
	*figures = found;
	return 0;
}
