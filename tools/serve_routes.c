/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/json_values.h"
#include "tools/serve_routes.h"

/* ---- how much is known ---------------------------------------------------------- */

static json_t *missing_of(const struct routes_excerpt *excerpt)
{
	json_t *causes = json_object();

	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++) {
		if (excerpt->rows_missing[cause])
			json_object_set_new(causes, r3ring_missing_cause_name(cause),
					    json_u64(excerpt->rows_missing[cause]));
	}
	return causes;
}

static json_t *runs_of(const struct routes_excerpt *excerpt)
{
	json_t *runs = json_array();

	for (uint64_t i = 0; i < excerpt->runs && i < ROUTES_RUNS_TOLD; i++) {
		const struct routes_run *run = &excerpt->run[i];

		json_array_append_new(runs,
				      json_pack("{s:o, s:o, s:s}", "from", json_integer(run->from),
						"to", json_integer(run->to), "cause",
						r3ring_missing_cause_name(run->cause)));
	}
	return runs;
}

static json_t *coverage_of(const struct routes_excerpt *excerpt)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rows_known",
			 json_u64(excerpt->rows_known), "rows_missing", missing_of(excerpt),
			 "rows_in_part", json_u64(excerpt->rows_in_part), "cells",
			 json_u64(excerpt->cells), "cells_known", json_u64(excerpt->cells_known),
			 "runs", json_u64(excerpt->runs), "missing", runs_of(excerpt));
}

/* ---- rows ------------------------------------------------------------------------ */

/* Its experts; or in their place, as a text, why they are missing. */
static json_t *cell_of(const struct routes_excerpt *excerpt, size_t cell)
{
	const uint16_t *ids = excerpt->ids + cell * excerpt->top_k;
	json_t *list;

	if (excerpt->cause[cell])
		return json_string(r3ring_missing_cause_name(excerpt->cause[cell]));
	list = json_array();
	for (uint32_t k = 0; k < excerpt->top_k; k++)
		json_array_append_new(list, json_integer(ids[k]));
	return list;
}

static json_t *row_of(const struct routes_excerpt *excerpt, uint32_t row)
{
	const size_t first = (size_t)row * excerpt->layers;
	json_t *cells = json_array();
	bool any = false;

	for (uint32_t i = 0; i < excerpt->layers; i++) {
		any |= !excerpt->cause[first + i];
		json_array_append_new(cells, cell_of(excerpt, first + i));
	}
	return json_pack("{s:o, s:o, s:i, s:o}", "position",
			 json_integer((json_int_t)excerpt->from + row), "weight_version",
			 any ? json_u64(excerpt->weight_version[row]) : json_null(), "attempt",
			 (int)excerpt->attempt[row], "routes", cells);
}

static json_t *rows_of(const struct routes_excerpt *excerpt)
{
	json_t *rows = json_array();

	for (uint32_t row = 0; row < excerpt->to - excerpt->from; row++)
		json_array_append_new(rows, row_of(excerpt, row));
	return rows;
}

static json_t *layers_of(const struct routes_excerpt *excerpt)
{
	json_t *layers = json_array();

	for (uint32_t i = 0; i < excerpt->layers; i++)
		json_array_append_new(
			layers,
			json_pack("{s:i, s:o}", "layer", (int)excerpt->layer[i].layer_id, "kind",
				  json_lower(r3ring_layer_kind_name(excerpt->layer[i].kind))));
	return layers;
}

json_t *routes_json(const char *id, const struct routes_excerpt *excerpt)
{
	return json_pack(
		"{s:o, s:s, s:b, s:b, s:b, s:b, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o}",
		"request", json_text(id, strlen(id)), "state",
		excerpt->state == ROUTES_RUNNING ? "running" : "ended", "aborted",
		(excerpt->flags & R3RING_ASSEMBLED_ABORTED) != 0, "length_known",
		(excerpt->flags & R3RING_ASSEMBLED_LENGTH_GUESSED) == 0, "evicted_before",
		excerpt->evicted_before, "mixed", (excerpt->flags & R3RING_ASSEMBLED_MIXED) != 0,
		"tokens", json_integer(excerpt->tokens), "prompt_tokens",
		excerpt->prompt_tokens == R3RING_UNKNOWN_U32 ? json_null()
							     : json_integer(excerpt->prompt_tokens),
		"attempts", (int)excerpt->attempts, "experts", (int)excerpt->experts, "top_k",
		(int)excerpt->top_k, "coverage", coverage_of(excerpt), "from",
		json_integer(excerpt->from), "to", json_integer(excerpt->to), "layers",
		layers_of(excerpt), "rows", rows_of(excerpt));
}

/* ---- what is asked for --------------------------------------------------------------- */

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

void routes_path(const char *id, char path[ROUTES_PATH_MAX])
{
	size_t used = (size_t)snprintf(path, ROUTES_PATH_MAX, "/v1/requests/");

	for (; *id; id++)
		used += (size_t)snprintf(path + used, ROUTES_PATH_MAX - used,
					 is_plain(*id) ? "%c" : "%%%02X", (unsigned char)*id);
	snprintf(path + used, ROUTES_PATH_MAX - used, "/routes");
}

/* Digits up to @end; none: *@number stays. */
static bool parse_number(const char *text, const char *end, uint32_t *number)
{
	uint64_t value = 0;

	if (text == end)
		return true;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > UINT32_MAX)
			return false;
	}
	*number = (uint32_t)value;
	return true;
}

bool routes_parse_range(const char *text, uint32_t *from, uint32_t *to)
{
	const char *colon = strchr(text, ':');

	return colon && parse_number(text, colon, from) &&
	       parse_number(colon + 1, text + strlen(text), to) && *from <= *to;
}
