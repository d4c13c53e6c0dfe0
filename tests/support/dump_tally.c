/* SPDX-License-Identifier: Apache-2.0 */
/* What a dump printed, added up. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dump_tally.h"

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool is_type(const json_t *object, const char *type)
{
	return !strcmp(json_string_value(json_object_get(object, "type")), type);
}

static void tally_layer(struct dump_tally *tally, const json_t *object)
{
	uint64_t step = (uint64_t)integer(object, "step");
	uint32_t layer = (uint32_t)(integer(object, "layer") - ENGINE_FIRST_LAYER);
	const json_t *rows = json_object_get(object, "ids");
	const json_t *row;
	size_t r;

	tally->layers++;
	json_array_foreach (rows, r, row) {
		const json_t *id;
		size_t k;

		json_array_foreach (row, k, id)
			tally->wrong_ids += json_integer_value(id) !=
					    engine_id(step, layer, (uint32_t)r, (uint32_t)k);
	}
}

static void tally_step(struct dump_tally *tally, const json_t *object)
{
	const json_t *span = json_array_get(json_object_get(object, "spans"), 0);
	const char *request = json_string_value(json_object_get(span, "request"));

	tally->steps++;
	tally->attributed += request && !strcmp(request, TOOL_STAGE_REQUEST) &&
			     integer(span, "rows") == TOOL_STAGE_ROWS;
}

static void tally_object(struct dump_tally *tally, json_t *object)
{
	tally->objects++;
	if (is_type(object, "gap")) {
		tally->gaps++;
		if (!tally->first_lost)
			tally->first_lost = integer(object, "from_seq");
		tally->lost_records += integer(object, "lost");
		tally->wrong_gaps += integer(object, "to_seq") - integer(object, "from_seq") + 1 !=
				     integer(object, "lost");
		return;
	}
	if (!tally->first_seq)
		tally->first_seq = integer(object, "seq");
	tally->last_seq = integer(object, "seq");
	if (is_type(object, "layer"))
		tally_layer(tally, object);
	if (is_type(object, "step"))
		tally_step(tally, object);
	if (is_type(object, "schema")) {
		tally->schemas++;
		tally->last_generation = integer(object, "generation");
	}
	if (is_type(object, "lost")) {
		json_decref(tally->lost);
		tally->lost = json_incref(object);
	}
}

struct dump_tally dump_tally(const char *text)
{
	struct dump_tally tally = {0};

	while (*text) {
		const char *end = strchr(text, '\n');
		json_t *object = json_loadb(text, end ? (size_t)(end - text) : 0, 0, NULL);

		if (!json_is_object(object)) {
			fprintf(stderr, "no object: %.200s\n", text);
			exit(1);
		}
		tally_object(&tally, object);
		json_decref(object);
		text = end + 1;
	}
	return tally;
}

void dump_tally_free(struct dump_tally *tally)
{
	json_decref(tally->lost);
	tally->lost = NULL;
}
