/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/since.h"

#define COUNTED_MODULO 4294967296.0 /* R3RING_LOAD_EVER */

struct since {
	const struct r3ring_load *load;
	uint32_t channel;
	struct r3ring_load_snapshot *snapshot;
	struct r3ring_load_info info; /* what is told */
	uint32_t layers, experts;     /* of the lists; 0: nothing had been counted */
	double *from, *told;          /* [layers][experts], then [layers] rows */
	struct r3ring_load_accounts accounts;
};

static size_t cells_of(const struct r3ring_load_info *info)
{
	return (size_t)info->layers * info->experts;
}

/* The moment that is counted from is that of @info. */
static void begin(struct since *since, const struct r3ring_load_info *info)
{
	size_t cells = cells_of(info);

	memcpy(since->from, info->counts, cells * sizeof(double));
	memcpy(since->from + cells, info->rows, info->layers * sizeof(double));
	since->accounts = info->accounts;
}

/* Lists for what @info is of. All of it is new where there was nothing; else, nothing is. */
static int take_shape(struct since *since, const struct r3ring_load_info *info)
{
	size_t values = cells_of(info) + info->layers;
	bool first = !since->layers;
	double *from, *told;

	if (since->layers == info->layers && since->experts == info->experts)
		return 0;
	from = calloc(values, sizeof(*from));
	told = calloc(values, sizeof(*told));
	if (!from || !told) {
		free(from);
		free(told);
		return -ENOMEM;
	}
	free(since->from);
	free(since->told);
	since->from = from;
	since->told = told;
	since->layers = info->layers;
	since->experts = info->experts;
	if (!first)
		begin(since, info);
	return 0;
}

/* ---- differences ------------------------------------------------------------ */

static void subtract_accounts(struct r3ring_load_accounts *from,
			      const struct r3ring_load_accounts *what)
{
	from->counted -= what->counted;
	from->gaps -= what->gaps;
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
		from->left_out[i] -= what->left_out[i];
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		from->lost[i] -= what->lost[i];
}

static double difference(double now, double then)
{
	double value = fmod(now - then, COUNTED_MODULO);

	return value < 0 ? value + COUNTED_MODULO : value;
}

static void tell(struct since *since, const struct r3ring_load_info *info)
{
	size_t cells = cells_of(info);

	since->info = *info;
	for (size_t i = 0; i < cells; i++)
		since->told[i] = difference(info->counts[i], since->from[i]);
	for (uint32_t i = 0; i < info->layers; i++)
		since->told[cells + i] = difference(info->rows[i], since->from[cells + i]);
	since->info.counts = since->told;
	since->info.rows = since->told + cells;
	subtract_accounts(&since->info.accounts, &since->accounts);
}

int since_read(struct since *since, bool again, const struct r3ring_load_info **info)
{
	const struct r3ring_load_info *now = r3ring_load_snapshot_info(since->snapshot);
	int r = r3ring_load_read(since->load, since->channel, R3RING_LOAD_EVER,
				 R3RING_LOAD_ANY_EPOCH, since->snapshot);

	if (r == 0)
		r = take_shape(since, now);
	if (r)
		return r;
	tell(since, now);
	if (again)
		begin(since, now);
	*info = &since->info;
	return 0;
}

/* ---- making ----------------------------------------------------------------- */

int since_create(struct since **since, const struct r3ring_load *load, uint32_t channel,
		 enum since_begin from)
{
	struct since *made = calloc(1, sizeof(*made));
	const struct r3ring_load_info *info;

	if (!made || r3ring_load_snapshot_create(&made->snapshot)) {
		free(made);
		return -ENOMEM;
	}
	made->load = load;
	made->channel = channel;
	if (from == SINCE_NOW && since_read(made, true, &info) == -ENOMEM) {
		since_destroy(made);
		return -ENOMEM;
	}
	*since = made;
	return 0;
}

void since_destroy(struct since *since)
{
	if (!since)
		return;
	r3ring_load_snapshot_free(since->snapshot);
	free(since->from);
	free(since->told);
	free(since);
}
