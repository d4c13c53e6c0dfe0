/* SPDX-License-Identifier: Apache-2.0 */
#include "report/routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/layers.h"
#include "report/report.h"

#define ROWS_AT_ONCE 256u

void routes_free(struct routes *routes)
{
	free(routes->layer);
	free(routes->counts);
	free(routes->rows);
	*routes = (struct routes){0};
}

/* Layers that a later request brings come behind those that are there. */
static int make_room(struct routes *routes, const struct r3ring_assembled_info *info)
{
	uint32_t before = routes->layers;
	double *counts, *rows;

	routes->experts = info->experts;
	routes->top_k = info->top_k;
	if (layers_add(&routes->layer, &routes->layers, info->layer, info->layers) < 0)
		return -ENOMEM;
	if (routes->layers == before)
		return 0;
	counts = reallocarray(routes->counts, (size_t)routes->layers * info->experts,
			      sizeof(*counts));
	if (counts)
		routes->counts = counts;
	rows = reallocarray(routes->rows, routes->layers, sizeof(*rows));
	if (rows)
		routes->rows = rows;
	if (!counts || !rows)
		return -ENOMEM;
	memset(counts + (size_t)before * info->experts, 0,
	       (size_t)(routes->layers - before) * info->experts * sizeof(*counts));
	memset(rows + before, 0, (routes->layers - before) * sizeof(*rows));
	return 0;
}

static void count_cell(struct routes *routes, uint32_t layer, const uint16_t *ids)
{
	routes->rows[layer]++;
	for (uint32_t k = 0; k < routes->top_k; k++)
		if (ids[k] < routes->experts)
			routes->counts[(size_t)layer * routes->experts + ids[k]]++;
}

static int count_layer(struct routes *routes, const struct r3ring_assembled *assembled,
		       uint32_t layer, uint16_t *ids)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	uint32_t to = layers_find(routes->layer, routes->layers, &info->layer[layer], layer);
	uint8_t valid[ROWS_AT_ONCE];
	const struct r3ring_assembled_rows rows = {.ids = ids, .valid = valid};
	int r = 0;

	for (uint32_t first = 0; r == 0 && first < info->tokens; first += ROWS_AT_ONCE) {
		uint32_t count = info->tokens - first;

		count = count < ROWS_AT_ONCE ? count : ROWS_AT_ONCE;
		r = r3ring_assembled_read(assembled, first, count, layer, 1, &rows);
		for (uint32_t i = 0; r == 0 && i < count; i++)
			if (valid[i])
				count_cell(routes, to, ids + (size_t)i * info->top_k);
	}
	return r;
}

int routes_add(struct routes *routes, const struct r3ring_assembled *assembled)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	uint16_t *ids = malloc((size_t)ROWS_AT_ONCE * info->top_k * sizeof(*ids) + 1);
	int r = ids ? make_room(routes, info) : -ENOMEM;

	for (uint32_t layer = 0; r == 0 && layer < info->layers; layer++)
		r = count_layer(routes, assembled, layer, ids);
	free(ids);
	return r;
}

int routes_settle(struct routes *routes, struct report *report)
{
	const size_t bytes = routes->experts * sizeof(double);
	double rows = 0;
	int r;

	for (uint32_t i = 0; i < routes->layers; i++)
		rows += routes->rows[i];
	r = rows > 0 ? report_show(report, routes->layers, routes->experts, routes->top_k)
		     : -ENODATA;
	if (r < 0)
		return r;
	series_sort(&report->series);
	memcpy(report->layer, routes->layer, routes->layers * sizeof(*routes->layer));
	layers_sort(report->layer, routes->layers);
	for (uint32_t i = 0; i < routes->layers; i++) {
		uint32_t to = layers_find(report->layer, routes->layers, &routes->layer[i], i);

		report->load_rows[to] = routes->rows[i];
		memcpy(report->load_counts + (size_t)to * routes->experts,
		       routes->counts + (size_t)i * routes->experts, bytes);
	}
	return 0;
}
