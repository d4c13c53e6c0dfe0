/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: a step, gathered from its records. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay.h"

static int reserve(void **array, size_t *room, size_t count, size_t bytes)
{
	size_t wanted = count < 64 ? 64 : count;
	void *grown;

	if (count <= *room)
		return 0;
	wanted = wanted < 2 * *room ? 2 * *room : wanted;
	grown = reallocarray(*array, wanted, bytes);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = wanted;
	return 0;
}

#define RESERVE(array, room, count) reserve((void **)&(array), &(room), (count), sizeof(*(array)))

void replay_step_free(struct replay_step *step)
{
	free(step->spans);
	free(step->keys);
	free(step->parts);
	free(step->ids);
	free(step->positions);
	free(step->token_ids);
	free(step->columns);
	*step = (struct replay_step){0};
}

static uint32_t rows_of(const struct r3ring_step_record *head)
{
	return head->row_end - head->row_begin;
}

static int add_map(struct replay_step *step, const struct r3ring_span *spans, uint32_t span_count,
		   const uint64_t *keys, uint32_t key_count)
{
	if (RESERVE(step->spans, step->span_room, step->span_count + span_count) ||
	    RESERVE(step->keys, step->key_room, step->key_count + key_count))
		return -ENOMEM;
	if (span_count)
		memcpy(step->spans + step->span_count, spans, span_count * sizeof(*spans));
	if (key_count)
		memcpy(step->keys + step->key_count, keys, key_count * sizeof(*keys));
	step->span_count += span_count;
	step->key_count += key_count;
	return 0;
}

int replay_step_begin(struct replay_step *step, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;

	step->span_count = step->key_count = step->part_count = step->id_count = 0;
	step->row_count = 0;
	step->content = 0;
	step->head = *head;
	return add_map(step, record->u.step.spans, head->spans, record->u.step.keys, head->keys);
}

int replay_step_spans(struct replay_step *step, const struct r3ring_record *record)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;

	if (head->keys) {
		step->head.key_kind = head->key_kind;
		step->head.tokens_per_key = head->tokens_per_key;
	}
	return add_map(step, record->u.spans.spans, head->spans, record->u.spans.keys, head->keys);
}

int replay_step_layer(struct replay_step *step, const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	size_t ids = (size_t)head->rows * head->top_k;

	if (RESERVE(step->parts, step->part_room, step->part_count + 1) ||
	    RESERVE(step->ids, step->id_room, step->id_count + ids))
		return -ENOMEM;
	memcpy(step->ids + step->id_count, record->u.layer.ids, ids * sizeof(*step->ids));
	step->parts[step->part_count++] =
		(struct replay_part){.head = *head, .first = step->id_count};
	step->id_count += ids;
	return 0;
}

static int make_rows(struct replay_step *step)
{
	size_t room = step->row_room;
	size_t rows = rows_of(&step->head);

	if (RESERVE(step->positions, room, rows))
		return -ENOMEM;
	return RESERVE(step->token_ids, step->row_room, rows);
}

int replay_step_rows(struct replay_step *step, const struct r3ring_record *record)
{
	const struct r3ring_rows_record *head = &record->u.rows.head;
	uint32_t first = head->row - step->head.row_begin;

	if (head->row < step->head.row_begin || head->row > step->head.row_end ||
	    head->rows > step->head.row_end - head->row)
		return 0; /* not rows of this step: verify says so */
	if (make_rows(step))
		return -ENOMEM;
	if (record->u.rows.positions)
		memcpy(step->positions + first, record->u.rows.positions,
		       head->rows * sizeof(*step->positions));
	if (record->u.rows.token_ids)
		memcpy(step->token_ids + first, record->u.rows.token_ids,
		       head->rows * sizeof(*step->token_ids));
	step->row_count += head->rows;
	step->content |= head->content;
	return 0;
}

/* ---- spans by field ---------------------------------------------------- */

struct columns {
	uint64_t *request;
	uint32_t *position, *row, *rows, *accepted, *keys;
	uint16_t *attempt;
	uint8_t *kind, *flags;
};

#define COLUMN_BYTES (8u + 5u * 4u + 2u + 2u) /* of a span */

static struct columns place_columns(void *block, size_t count)
{
	struct columns c = {.request = block};

	c.position = (uint32_t *)(c.request + count);
	c.row = c.position + count;
	c.rows = c.row + count;
	c.accepted = c.rows + count;
	c.keys = c.accepted + count;
	c.attempt = (uint16_t *)(c.keys + count);
	c.kind = (uint8_t *)(c.attempt + count);
	c.flags = c.kind + count;
	return c;
}

int replay_step_map(struct replay_step *step, const struct replay_handles *handles,
		    struct r3ring_step *map)
{
	struct columns c;

	if (reserve(&step->columns, &step->column_room, step->span_count, COLUMN_BYTES))
		return -ENOMEM;
	c = place_columns(step->columns, step->span_count);
	for (size_t i = 0; i < step->span_count; i++) {
		const struct r3ring_span *span = &step->spans[i];

		c.request[i] = replay_handle(handles, span->request);
		c.position[i] = span->position;
		c.row[i] = span->row;
		c.rows[i] = span->rows;
		c.accepted[i] = span->accepted;
		c.keys[i] = span->keys;
		c.attempt[i] = span->attempt;
		c.kind[i] = span->kind;
		c.flags[i] = span->flags;
	}
	map->spans = (uint32_t)step->span_count;
	map->keys = (uint32_t)step->key_count;
	map->tokens_per_key = step->head.tokens_per_key;
	map->key_kind = step->head.key_kind;
	map->span_request = c.request;
	map->span_position = c.position;
	map->span_row = c.row;
	map->span_rows = c.rows;
	map->span_accepted = c.accepted;
	map->span_keys = c.keys;
	map->span_attempt = c.attempt;
	map->span_kind = c.kind;
	map->span_flags = c.flags;
	map->key = step->keys;
	return 0;
}

int replay_step_say(struct replay_step *step, const struct replay_handles *handles,
		    struct r3ring_step *said)
{
	const struct r3ring_step_record *head = &step->head;

	*said = (struct r3ring_step){
		.size = sizeof(*said),
		.total_rows = head->total_rows,
		.row_begin = head->row_begin,
		.row_end = head->row_end,
		.valid_end = head->valid_end,
		.flags = head->flags &
			 (R3RING_STEP_WARMUP | R3RING_STEP_GRAPH | R3RING_STEP_SPANS_FOLLOW),
		.weight_version = head->weight_version,
		.eplb_epoch = head->eplb_epoch,
	};
	return replay_step_map(step, handles, said);
}
