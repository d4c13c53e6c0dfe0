/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a request: how much of it is known, and a range of its rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "serve/routes.h"

#define SCAN_CELLS (64u << 10)

/* ---- how much is known -------------------------------------------------------- */

/* One more row that is missing; @run: the run that the row before belongs to, if it does. */
static void extend_runs(struct routes_excerpt *excerpt, uint32_t position, uint8_t cause,
			struct routes_run *run)
{
	if (run->to != position || run->cause != cause) {
		*run = (struct routes_run){.from = position, .cause = cause};
		excerpt->runs++;
	}
	run->to = position + 1;
	if (excerpt->runs <= ROUTES_RUNS_TOLD)
		excerpt->run[excerpt->runs - 1] = *run;
}

static void count_row(struct routes_excerpt *excerpt, uint32_t position, const uint8_t *cause,
		      uint32_t layers, struct routes_run *run)
{
	uint32_t missing = 0;
	uint8_t first = 0;

	for (uint32_t layer = 0; layer < layers; layer++) {
		if (cause[layer] && !missing++)
			first = cause[layer];
	}
	if (!missing) {
		excerpt->rows_known++;
		return;
	}
	excerpt->rows_in_part += missing < layers;
	excerpt->rows_missing[first]++;
	extend_runs(excerpt, position, first, run);
}

static int count_rows(struct routes_excerpt *excerpt, const struct r3ring_assembled *assembled,
		      const struct r3ring_assembled_info *info)
{
	const uint32_t step = SCAN_CELLS / (info->layers ? info->layers : 1) + 1;
	uint8_t *cause = malloc((size_t)step * (info->layers ? info->layers : 1));
	const struct r3ring_assembled_rows rows = {.cause = cause};
	struct routes_run run = {0};

	if (!cause)
		return -ENOMEM;
	for (uint32_t at = 0; at < info->tokens; at += step) {
		uint32_t some = info->tokens - at < step ? info->tokens - at : step;

		r3ring_assembled_read(assembled, at, some, 0, info->layers, &rows);
		for (uint32_t i = 0; i < some; i++)
			count_row(excerpt, at + i, cause + (size_t)i * info->layers, info->layers,
				  &run);
	}
	free(cause);
	return 0;
}

/* ---- a range of rows ------------------------------------------------------------ */

/* All layers of a row; those that were asked for need not lie side by side. */
struct whole_rows {
	uint16_t *ids;
	uint8_t *cause;
};

/* The layers that are in the range, to the excerpt and, by their index, to @index. */
static int choose_layers(struct routes_excerpt *excerpt, const struct r3ring_assembled_info *info,
			 const struct routes_range *range, uint16_t *index)
{
	excerpt->layer = calloc(info->layers + 1u, sizeof(*excerpt->layer));
	if (!excerpt->layer)
		return -ENOMEM;
	for (uint16_t i = 0; i < info->layers; i++) {
		if (info->layer[i].layer_id < range->layer_from ||
		    info->layer[i].layer_id >= range->layer_to)
			continue;
		index[excerpt->layers] = i;
		excerpt->layer[excerpt->layers++] = info->layer[i];
	}
	return 0;
}

static void choose_rows(struct routes_excerpt *excerpt, const struct routes_range *range)
{
	const uint32_t ids = excerpt->layers * excerpt->top_k;
	const uint32_t most = ids && ids < ROUTES_IDS_MAX ? ROUTES_IDS_MAX / ids : 1;

	excerpt->from = range->from < excerpt->tokens ? range->from : excerpt->tokens;
	excerpt->to = range->to < excerpt->tokens ? range->to : excerpt->tokens;
	if (excerpt->to < excerpt->from)
		excerpt->to = excerpt->from;
	if (excerpt->to - excerpt->from > most)
		excerpt->to = excerpt->from + most;
}

static int make_lists(struct routes_excerpt *excerpt)
{
	const size_t rows = excerpt->to - excerpt->from + 1;
	const size_t cells = rows * (excerpt->layers + 1u);

	excerpt->ids = malloc(cells * (excerpt->top_k + 1u) * sizeof(*excerpt->ids));
	excerpt->cause = malloc(cells);
	excerpt->weight_version = calloc(rows, sizeof(*excerpt->weight_version));
	excerpt->attempt = calloc(rows, sizeof(*excerpt->attempt));
	return excerpt->ids && excerpt->cause && excerpt->weight_version && excerpt->attempt
		       ? 0
		       : -ENOMEM;
}

/* Row @row of the excerpt, from all layers of it. */
static void pick_layers(struct routes_excerpt *excerpt, uint32_t row, const uint16_t *index,
			const struct whole_rows *whole)
{
	const uint32_t top_k = excerpt->top_k;

	for (uint32_t i = 0; i < excerpt->layers; i++) {
		size_t to = (size_t)row * excerpt->layers + i;

		memcpy(excerpt->ids + to * top_k, whole->ids + (size_t)index[i] * top_k,
		       top_k * sizeof(*whole->ids));
		excerpt->cause[to] = whole->cause[index[i]];
	}
}

static int read_rows(struct routes_excerpt *excerpt, const struct r3ring_assembled *assembled,
		     const struct r3ring_assembled_info *info, const uint16_t *index)
{
	struct whole_rows whole = {
		.ids = malloc(((size_t)info->layers * info->top_k + 1) * sizeof(uint16_t)),
		.cause = malloc(info->layers + 1u),
	};
	int r = whole.ids && whole.cause ? make_lists(excerpt) : -ENOMEM;

	for (uint32_t at = excerpt->from; r == 0 && at < excerpt->to; at++) {
		const uint32_t row = at - excerpt->from;
		const struct r3ring_assembled_rows rows = {
			.ids = whole.ids,
			.cause = whole.cause,
			.weight_version = excerpt->weight_version + row,
			.attempt = excerpt->attempt + row,
		};

		r = r3ring_assembled_read(assembled, at, 1, 0, info->layers, &rows);
		if (r == 0)
			pick_layers(excerpt, row, index, &whole);
	}
	free(whole.ids);
	free(whole.cause);
	return r;
}

int routes_excerpt_of(const struct r3ring_assembled *assembled, const struct routes_range *range,
		      struct routes_excerpt *excerpt)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	uint16_t *index = calloc(info->layers + 1u, sizeof(*index));
	int r;

	*excerpt = (struct routes_excerpt){
		.tokens = info->tokens,
		.prompt_tokens = info->prompt_tokens,
		.attempts = info->attempts,
		.flags = info->flags,
		.experts = info->experts,
		.top_k = info->top_k,
		.cells = info->cells,
		.cells_known = info->cells_valid,
	};
	r = index ? choose_layers(excerpt, info, range, index) : -ENOMEM;
	if (r == 0) {
		choose_rows(excerpt, range);
		r = read_rows(excerpt, assembled, info, index);
	}
	if (r == 0)
		r = count_rows(excerpt, assembled, info);
	if (r)
		routes_excerpt_free(excerpt);
	free(index);
	return r;
}

void routes_excerpt_free(struct routes_excerpt *excerpt)
{
	free(excerpt->layer);
	free(excerpt->ids);
	free(excerpt->cause);
	free(excerpt->weight_version);
	free(excerpt->attempt);
	*excerpt = (struct routes_excerpt){0};
}
