/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of `r3ring dump --json`, read with a JSON parser. */
#include <string.h>

#include <jansson.h>

#include "tests/support/attribution_lines.h"

#define IDS_MAX (ATTRIBUTION_STEP_ROWS * 16u)

struct line {
	struct attribution *attribution;
	const json_t *object;
	uint16_t type; /* 0: none of those that matter here */
};

/* A member that must be a number. */
static uint32_t number(struct line *line, const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	line->attribution->wrong_lines += !json_is_integer(value);
	return (uint32_t)json_integer_value(value);
}

static const char *text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static bool text_is(const json_t *object, const char *name, const char *expected)
{
	const char *value = text(object, name);

	return value && strcmp(value, expected) == 0;
}

static void take_span(struct line *line, const json_t *span)
{
	struct r3ring_span said = {
		.position = number(line, span, "position"),
		.row = number(line, span, "row"),
		.rows = number(line, span, "rows"),
		.kind = R3RING_SPAN_CACHED, /* the recording has none */
	};

	if (text_is(span, "kind", "computed"))
		said.kind = R3RING_SPAN_COMPUTED;
	else if (text_is(span, "kind", "external"))
		said.kind = R3RING_SPAN_EXTERNAL;
	if (!text(span, "request") && !json_is_false(json_object_get(span, "attributed")))
		line->attribution->wrong_lines++;
	attribution_span(line->attribution, text(span, "request"), &said);
}

static void take_step(struct line *line)
{
	const json_t *span;
	size_t i;

	attribution_step(line->attribution, number(line, line->object, "step"));
	json_array_foreach (json_object_get(line->object, "spans"), i, span)
		take_span(line, span);
}

/* Returns whether there are as many ids as @head says. */
static bool read_matrix(const json_t *matrix, const struct r3ring_layer_record *head, uint16_t *ids)
{
	const json_t *row, *id;
	size_t i, k, count = 0;

	if (json_array_size(matrix) != head->rows || (size_t)head->rows * head->top_k > IDS_MAX)
		return false;
	json_array_foreach (matrix, i, row) {
		if (json_array_size(row) != head->top_k)
			return false;
		json_array_foreach (row, k, id)
			ids[count++] = (uint16_t)json_integer_value(id);
	}
	return true;
}

static void take_layer(struct line *line)
{
	const json_t *object = line->object, *matrix = json_object_get(object, "ids");
	const struct r3ring_layer_record head = {
		.step = number(line, object, "step"),
		.layer_id = (int32_t)number(line, object, "layer"),
		.row = number(line, object, "row"),
		.rows = number(line, object, "rows"),
		.total_rows = number(line, object, "total_rows"),
		.valid_rows = number(line, object, "valid_rows"),
		.missing = number(line, object, "missing"),
		.out_of_range = number(line, object, "out_of_range"),
		.top_k = (uint16_t)json_array_size(json_array_get(matrix, 0)),
	};
	uint16_t ids[IDS_MAX];

	if (read_matrix(matrix, &head, ids))
		attribution_layer(line->attribution, &head, ids);
	else
		line->attribution->wrong_lines++;
}

static void take_request(struct line *line)
{
	struct r3ring_request_record head = {
		.attempt = (uint16_t)number(line, line->object, "attempt"),
	};

	if (!text_is(line->object, "event", "end"))
		return;
	if (text_is(line->object, "reason", "finished"))
		head.reason = R3RING_END_FINISHED;
	head.accepted_tokens = number(line, line->object, "accepted_tokens");
	attribution_end(line->attribution, text(line->object, "request"), &head);
}

static void follow(struct line *line)
{
	const struct r3ring_keyframe_record keyframe = {
		.step = line->type == R3RING_KEYFRAME ? number(line, line->object, "step") : 0,
		.records = line->type == R3RING_KEYFRAME ? number(line, line->object, "records")
							 : 0,
	};

	attribution_follow(line->attribution, number(line, line->object, "seq"), line->type,
			   line->type == R3RING_KEYFRAME ? &keyframe : NULL);
}

static uint16_t type_of(const json_t *object)
{
	static const struct {
		const char *word;
		uint16_t type;
	} types[] = {
		{"schema", R3RING_SCHEMA},   {"step", R3RING_STEP},         {"layer", R3RING_LAYER},
		{"request", R3RING_REQUEST}, {"keyframe", R3RING_KEYFRAME},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (text_is(object, "type", types[i].word))
			return types[i].type;
	}
	return 0;
}

static void take_object(struct line *line)
{
	if (text_is(line->object, "type", "gap")) {
		line->attribution->gap_records += number(line, line->object, "lost");
		line->attribution->keyframe_left = 0;
		return;
	}
	line->attribution->records++;
	follow(line);
	switch (line->type) {
	case R3RING_STEP:
		take_step(line);
		break;
	case R3RING_LAYER:
		take_layer(line);
		break;
	case R3RING_REQUEST:
		take_request(line);
		break;
	default:
		break;
	}
}

void attribution_take_lines(struct attribution *attribution, const char *lines)
{
	for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
		json_t *object =
			json_loadb(lines, (size_t)(end - lines), JSON_REJECT_DUPLICATES, NULL);
		struct line line = {attribution, object, type_of(object)};

		if (object)
			take_object(&line);
		else
			attribution->wrong_lines++;
		json_decref(object);
	}
	attribution->wrong_lines += lines[0] != '\0'; /* the last one was cut off */
}
