/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/layers.h"
#include "report/series.h"

static void free_layer(struct series_layer *layer)
{
	free(layer->counts);
	free(layer->read);
	free(layer->over_time);
}

void series_free(struct series *series)
{
	for (uint32_t i = 0; i < series->layers; i++)
		free_layer(&series->layer[i]);
	free(series->layer);
	*series = (struct series){0};
}

/* ---- time -------------------------------------------------------------------- */

static void add_piece(struct series *series, uint32_t to, uint32_t from)
{
	series->piece[to].counted += series->piece[from].counted;
	series->piece[to].lost += series->piece[from].lost;
	series->piece[to].steps += series->piece[from].steps;
	series->piece[from] = (struct series_piece){0};
	for (uint32_t i = 0; i < series->layers; i++) {
		float *pieces = series->layer[i].over_time;
		float *source = pieces + (size_t)from * series->experts;
		float *target = pieces + (size_t)to * series->experts;

		if (!pieces)
			continue;
		for (uint32_t e = 0; e < series->experts; e++)
			target[e] += source[e];
		memset(source, 0, series->experts * sizeof(*source));
	}
}

/* Pieces get twice as long; those that are free then lie behind the others. */
static void reach_on(struct series *series)
{
	for (uint32_t i = 1; i < SERIES_PIECES; i++)
		add_piece(series, i / 2, i);
	series->width_ns *= 2;
}

/* Likewise; in front of them. */
static void reach_back(struct series *series)
{
	for (uint32_t i = SERIES_PIECES - 1; i-- > 0;)
		add_piece(series, SERIES_PIECES / 2 + i / 2, i);
	series->start_ns -= (int64_t)(series->width_ns * SERIES_PIECES);
	series->width_ns *= 2;
}

bool series_reaches(const struct series *series, uint64_t ns)
{
	return series->width_ns && ns < INT64_MAX && (int64_t)ns >= series->start_ns &&
	       (ns - (uint64_t)series->start_ns) / series->width_ns < SERIES_PIECES;
}

uint32_t series_find(struct series *series, uint64_t ns)
{
	/* Times are a stranger's; so no sum of them is beyond 64 bits. */
	ns = ns < INT64_MAX / 2 ? ns : INT64_MAX / 2;
	if (!series->width_ns) {
		series->start_ns = (int64_t)ns;
		series->first_ns = ns;
		series->width_ns = SERIES_FIRST_NS;
	}
	while ((int64_t)ns < series->start_ns)
		reach_back(series);
	while (!series_reaches(series, ns))
		reach_on(series);
	series->first_ns = ns < series->first_ns ? ns : series->first_ns;
	series->last_ns = ns > series->last_ns ? ns : series->last_ns;
	return (uint32_t)((ns - (uint64_t)series->start_ns) / series->width_ns);
}

/* ---- counts --------------------------------------------------------------------- */

static int add_layer(struct series *series, const struct r3ring_layer_entry *entry)
{
	const uint64_t bytes = (uint64_t)SERIES_PIECES * series->experts * sizeof(float);
	struct series_layer made = {.entry = *entry};
	struct series_layer *table =
		reallocarray(series->layer, series->layers + 1, sizeof(*series->layer));

	if (!table)
		return -ENOMEM;
	series->layer = table;
	made.counts = calloc(series->experts, sizeof(*made.counts));
	made.read = calloc(series->experts, sizeof(*made.read));
	if (series->over_time_bytes + bytes <= SERIES_BYTES) {
		made.over_time = calloc(SERIES_PIECES, series->experts * sizeof(float));
		series->over_time_bytes += bytes;
	}
	series->layer[series->layers++] = made;
	return made.counts && made.read ? 0 : -ENOMEM;
}

static struct series_layer *find_layer(struct series *series,
				       const struct r3ring_layer_entry *entry)
{
	for (uint32_t i = 0; i < series->layers; i++)
		if (layers_compare(&series->layer[i].entry, entry) == 0)
			return &series->layer[i];
	return add_layer(series, entry) < 0 ? NULL : &series->layer[series->layers - 1];
}

/* What came since @read, of a number that is known modulo 2^32. */
static uint32_t since(uint32_t *read, double now)
{
	uint32_t low = (uint32_t)(uint64_t)now, more = low - *read;

	*read = low;
	return more;
}

static void take_layer(struct series *series, struct series_layer *layer, const double *counts,
		       uint32_t piece)
{
	float *now = layer->over_time && piece != SERIES_NOWHERE
			     ? layer->over_time + (size_t)piece * series->experts
			     : NULL;

	for (uint32_t e = 0; e < series->experts; e++) {
		uint32_t more = since(&layer->read[e], counts[e]);

		if (piece != SERIES_NOWHERE)
			layer->counts[e] += more;
		if (now)
			now[e] += (float)more;
	}
}

/* ---- accounts --------------------------------------------------------------------- */

/* What was not to be recorded was not lost. */
static uint64_t lost_of(const struct r3ring_load_accounts *accounts)
{
	uint64_t cells = 0;

	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		cells += i == R3RING_MISSING_NOT_RECORDED ? 0 : accounts->lost[i];
	return cells;
}

static void add_difference(struct r3ring_load_accounts *to, const struct r3ring_load_accounts *now,
			   const struct r3ring_load_accounts *before)
{
	to->counted += now->counted - before->counted;
	to->gaps += now->gaps - before->gaps;
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
		to->left_out[i] += now->left_out[i] - before->left_out[i];
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		to->lost[i] += now->lost[i] - before->lost[i];
}

int series_take(struct series *series, const struct r3ring_load_info *info, uint32_t piece,
		struct r3ring_load_accounts *accounts)
{
	series->experts = info->experts;
	series->top_k = info->top_k;
	for (uint32_t i = 0; i < info->layers; i++) {
		struct series_layer *layer = find_layer(series, &info->layer[i]);
		uint32_t rows;

		if (!layer)
			return -ENOMEM;
		take_layer(series, layer, info->counts + (size_t)i * info->experts, piece);
		rows = since(&layer->rows_read, info->rows[i]);
		if (piece != SERIES_NOWHERE)
			layer->rows += rows;
	}
	if (piece != SERIES_NOWHERE) {
		add_difference(accounts, &info->accounts, &series->read);
		series->piece[piece].counted += info->accounts.counted - series->read.counted;
		series->piece[piece].lost += lost_of(&info->accounts) - lost_of(&series->read);
	}
	series->read = info->accounts;
	return 0;
}

static int by_entry(const void *a, const void *b)
{
	const struct series_layer *one = a, *other = b;

	return layers_compare(&one->entry, &other->entry);
}

void series_sort(struct series *series)
{
	if (series->layers)
		qsort(series->layer, series->layers, sizeof(*series->layer), by_entry);
}

double series_balance(const struct series *series, uint32_t layer, uint32_t piece)
{
	const float *counts = series->layer[layer].over_time;
	double sum = 0, most = 0;

	if (!counts)
		return 0;
	counts += (size_t)piece * series->experts;
	for (uint32_t e = 0; e < series->experts; e++) {
		sum += (double)counts[e];
		most = (double)counts[e] > most ? (double)counts[e] : most;
	}
	return sum > 0 ? most * series->experts / sum : 0;
}
