/* SPDX-License-Identifier: Apache-2.0 */
/* Open steps: what came of a step, until it is settled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/assembler.h"
#include "consumer/assembler/fill.h"
#include "consumer/layers.h"

/* ---- opening ------------------------------------------------------------ */

static int map_grow(struct map *map, uint32_t spans, uint32_t keys)
{
	struct r3ring_span *span = map->span;
	uint64_t *told = map->since, *key = map->key;

	if (spans > map->span_room) {
		span = realloc(span, spans * sizeof(*span));
		if (!span)
			return -ENOMEM;
		map->span = span;
		told = realloc(told, spans * sizeof(*told));
		if (!told)
			return -ENOMEM;
		map->since = told;
		map->span_room = spans;
	}
	if (keys > map->key_room) {
		key = realloc(key, keys * sizeof(*key));
		if (!key)
			return -ENOMEM;
		map->key = key;
		map->key_room = keys;
	}
	return 0;
}

static int map_keep(struct map *map, uint64_t since, const struct r3ring_span *spans,
		    uint32_t span_count, const uint64_t *keys, uint32_t key_count)
{
	uint32_t kinds = 0, flags = 0;

	if (map_grow(map, map->spans + span_count, map->keys + key_count) < 0)
		return -ENOMEM;
	if (span_count)
		memcpy(map->span + map->spans, spans, span_count * sizeof(*spans));
	if (key_count)
		memcpy(map->key + map->keys, keys, key_count * sizeof(*keys));
	for (uint32_t i = 0; i < span_count; i++) {
		map->since[map->spans + i] = since;
		kinds |= spans[i].kind;
		flags |= spans[i].flags;
	}
	map->kinds |= kinds;
	map->flags |= flags;
	map->spans += span_count;
	map->keys += key_count;
	return 0;
}

/* Forgets all but where it was. */
static void map_clear(struct map *map)
{
	*map = (struct map){
		.span = map->span,
		.since = map->since,
		.key = map->key,
		.span_room = map->span_room,
		.key_room = map->key_room,
	};
}

static void tile_name(struct tile *tile, const struct step *step, uint64_t generation,
		      uint32_t first)
{
	tile->step = step->head.step;
	tile->generation = generation;
	tile->number = step->head.row_begin + first;
	tile->weight_version = step->head.weight_version;
}

/* Rows that find no memory are missing; the step goes on. */
static void take_rows(struct step *step, struct row_pool *pool, uint64_t generation)
{
	struct tile **end = &step->tiles, *tile;

	for (uint32_t first = 0; first < step->rows; first += tile->rows) {
		tile = tile_take(pool, step->rows - first);
		if (!tile)
			return;
		tile_name(tile, step, generation, first);
		for (uint32_t i = 0; i < tile->rows; i++)
			step->row[first + i] = &tile->row[i];
		*end = tile;
		end = &tile->next;
		step->tiled = first + tile->rows;
	}
}

/* One row stands for all of a step that has no ids. */
static void take_empty_rows(struct step *step, struct row_pool *pool, uint64_t generation)
{
	struct row *shared = step->rows ? row_take_empty(pool, R3RING_MISSING_GAP) : NULL;

	if (!shared)
		return;
	tile_name(row_tile(shared), step, generation, step->rows - 1);
	for (uint32_t i = 0; i < step->rows; i++)
		step->row[i] = i ? row_hold(shared) : shared;
}

/* Of one whose rows and layers are known. */
static size_t tables_bytes(uint64_t rows, size_t layers, uint64_t part_words)
{
	return layers * part_words * sizeof(uint64_t) + rows * sizeof(struct row *) +
	       layers * (sizeof(uint32_t) + sizeof(uint8_t));
}

static uint32_t part_words_of(const struct r3ring_step_record *head, uint32_t part_rows)
{
	return (head->row_end - head->row_begin) / part_rows / 64 + 1;
}

static uint32_t part_rows_of(const struct channel *channel)
{
	const uint32_t rows = channel->schema.rows_per_record;

	return rows ? rows : 1;
}

uint64_t step_bytes_to_open(const struct channel *channel, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	const uint64_t rows = r3ring_step_valid_rows(head);
	const struct row_pool *pool = channel->pool;
	uint64_t bytes =
		tables_bytes(rows, pool->layers, part_words_of(head, part_rows_of(channel)));

	if (!(head->flags & (R3RING_STEP_DROPPED | R3RING_STEP_WARMUP)))
		bytes += rows * (sizeof(struct row) + pool->pages.row_bytes);
	return bytes;
}

static uint64_t map_bytes(const struct map *map)
{
	return heap_bytes(map->span_room * (sizeof(*map->span) + sizeof(*map->since))) +
	       heap_bytes(map->key_room * sizeof(*map->key));
}

uint64_t step_bytes(const struct step *step)
{
	return heap_bytes(step->tables_room) + map_bytes(&step->map) + map_bytes(&step->late) +
	       heap_bytes(step->position ? (step->rows + 1) * sizeof(*step->position) : 0);
}

/* Tables of a step whose rows and layers are known, all zero. */
static int tables_make(struct step *step)
{
	const size_t layers = step->pool->layers, parts = layers * step->part_words;
	const size_t bytes = tables_bytes(step->rows, layers, step->part_words);

	if (bytes > step->tables_room) {
		free(step->tables);
		step->tables = malloc(bytes);
		step->tables_room = step->tables ? bytes : 0;
	}
	if (!step->tables)
		return -ENOMEM;
	memset(step->tables, 0, bytes);
	step->parts = step->tables;
	step->row = (struct row **)(void *)(step->parts + parts);
	step->came = (uint32_t *)(void *)(step->row + step->rows);
	step->cause = (uint8_t *)(step->came + layers);
	return 0;
}

int step_open(struct step *step, const struct channel *channel, uint64_t seq,
	      const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	struct row_pool *pool = channel->pool;

	step->head = *head;
	step->seq = seq;
	step->pool = pool;
	step->part_rows = part_rows_of(channel);
	step->rows = r3ring_step_valid_rows(head);
	step->part_words = part_words_of(head, step->part_rows);
	step->map_open = head->flags & R3RING_STEP_MAP_CONTINUED;
	step->map_known = map_keep(&step->map, seq, record->u.step.spans, head->spans,
				   record->u.step.keys, head->keys) == 0;
	if (!step->map_known || tables_make(step) < 0)
		return -ENOMEM;
	if (head->flags & (R3RING_STEP_DROPPED | R3RING_STEP_WARMUP))
		take_empty_rows(step, pool, channel->generation);
	else
		take_rows(step, pool, channel->generation);
	return 0;
}

void step_clear(struct step *step)
{
	if (step->row)
		rows_drop(step->row, step->rows);
	free(step->position);
	map_clear(&step->map);
	map_clear(&step->late);
	*step = (struct step){
		.tables = step->tables,
		.tables_room = step->tables_room,
		.map = step->map,
		.late = step->late,
	};
}

static void map_free(struct map *map)
{
	free(map->span);
	free(map->since);
	free(map->key);
}

void step_release(struct step *step)
{
	step_clear(step);
	free(step->tables);
	map_free(&step->map);
	map_free(&step->late);
}

/* ---- layers ------------------------------------------------------------- */

/* Cells with an id that is no expert; the record has some. */
static void spoil_strangers(struct row *row, uint32_t layer, const uint16_t *ids, uint32_t top_k,
			    uint32_t experts)
{
	for (uint32_t k = 0; k < top_k; k++)
		if (ids[k] >= experts) {
			row_cell_spoil(row, layer, R3RING_MISSING_NO_EXPERT);
			return;
		}
}

/* A record that came twice, or lies beyond the step, is not of this step. */
static bool layer_fits(struct step *step, const struct r3ring_layer_record *head)
{
	const struct row_pool *pool = step->pool;
	const uint32_t layer = head->layer_index, first = head->row - step->head.row_begin;
	const uint32_t part = first / step->part_rows;
	uint64_t *word, bit;

	if (layer >= pool->layers || head->top_k != pool->top_k ||
	    pool->layer[layer].layer_id != head->layer_id ||
	    pool->layer[layer].kind != head->kind || head->row < step->head.row_begin ||
	    head->row > step->head.row_end || head->rows > step->head.row_end - head->row ||
	    part * step->part_rows != first)
		return false;
	word = &step->parts[(size_t)layer * step->part_words + part / 64];
	bit = UINT64_C(1) << (part % 64);
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

void step_layer(struct step *step, const struct r3ring_record *record, uint32_t experts)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	const uint16_t *ids = record->u.layer.ids;
	uint32_t first, rows;

	if (!layer_fits(step, head))
		return;
	first = head->row - step->head.row_begin;
	rows = first < step->rows ? step->rows - first : 0;
	if (rows > head->rows)
		rows = head->rows;
	step->came[head->layer_index] += rows;
	if (!tiles_fill(step->tiles, head->layer_index, first, rows, ids, experts))
		return;
	for (uint32_t i = 0; i < rows; i++)
		if (step->row[first + i] && !step->row[first + i]->empty)
			spoil_strangers(step->row[first + i], head->layer_index,
					ids + (size_t)i * head->top_k, head->top_k, experts);
}

void step_skip(struct step *step, uint32_t first, uint32_t end)
{
	step->skipped++;
	step->kept_first = first;
	step->kept_end = end;
}

/* ---- rows, spans, end --------------------------------------------------- */

void step_rows(struct step *step, const struct r3ring_record *record)
{
	const struct r3ring_rows_record *head = &record->u.rows.head;

	if (!record->u.rows.positions || head->row < step->head.row_begin)
		return;
	if (!step->position) {
		step->position = malloc((step->rows + 1) * sizeof(*step->position));
		if (!step->position)
			return;
		memset(step->position, 0xFF, (step->rows + 1) * sizeof(*step->position));
	}
	for (uint32_t i = 0; i < head->rows; i++) {
		uint32_t row = head->row - step->head.row_begin + i;

		if (row < step->rows)
			step->position[row] = record->u.rows.positions[i];
	}
}

/* Drops the spans, and their keys, of the requests that @late names anew. */
static void map_forget(struct map *map, const struct map *late)
{
	uint32_t kept = 0, kept_keys = 0, key = 0;

	for (uint32_t i = 0; i < map->spans; i++) {
		struct r3ring_span span = map->span[i];
		bool again = false;

		for (uint32_t j = 0; j < late->spans && !again; j++)
			again = late->span[j].request == span.request;
		if (!again) {
			if (kept_keys != key)
				memmove(map->key + kept_keys, map->key + key,
					span.keys * sizeof(*map->key));
			kept_keys += span.keys;
			map->since[kept] = map->since[i];
			map->span[kept++] = span;
		}
		key += span.keys;
	}
	map->spans = kept;
	map->keys = kept_keys;
}

static void spans_replace(struct step *step, uint64_t since)
{
	map_forget(&step->map, &step->late);
	if (map_keep(&step->map, since, step->late.span, step->late.spans, step->late.key,
		     step->late.keys))
		step->map_known = false;
	step->head.flags &= ~(uint32_t)R3RING_STEP_SPANS_FOLLOW;
}

/* Counts once its last record is there: a part of it would leave guesses beside it. */
static void spans_late(struct step *step, uint64_t seq, const struct r3ring_record *record)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;

	if (!(head->flags & R3RING_SPANS_MORE))
		map_clear(&step->late);
	else if (!step->late_open)
		return;
	step->late_open = map_keep(&step->late, seq, record->u.spans.spans, head->spans,
				   record->u.spans.keys, head->keys) == 0;
	if (!step->late_open || head->flags & R3RING_SPANS_CONTINUED)
		return;
	spans_replace(step, seq);
	step->late_open = false;
}

void step_spans(struct step *step, uint64_t seq, const struct r3ring_record *record)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;

	if (head->keys) {
		step->head.key_kind = head->key_kind;
		step->head.tokens_per_key = head->tokens_per_key;
	}
	if (head->flags & R3RING_SPANS_REPLACE) {
		spans_late(step, seq, record);
		return;
	}
	step->map_open = head->flags & R3RING_SPANS_CONTINUED;
	if (map_keep(&step->map, step->seq, record->u.spans.spans, head->spans,
		     record->u.spans.keys, head->keys))
		step->map_known = false;
}

void step_gap(struct step *step)
{
	if (step->map_open)
		step->map_known = false;
	step->map_open = false;
	step->late_open = false;
}

static void layer_lost(struct step *step, const struct r3ring_missing_layer *missing)
{
	for (uint32_t i = 0; i < step->pool->layers; i++)
		if (step->pool->layer[i].layer_id == missing->layer_id &&
		    step->pool->layer[i].kind == missing->kind)
			step->cause[i] = (uint8_t)missing->cause;
}

void step_end(struct step *step, const struct r3ring_record *record)
{
	for (uint32_t i = 0; i < record->u.step_end.head.missing; i++)
		layer_lost(step, &record->u.step_end.missing[i]);
	step->ended = true;
}

void step_lost(struct step *step, uint8_t cause)
{
	for (uint32_t i = 0; i < step->pool->layers; i++)
		if (!step->cause[i])
			step->cause[i] = cause;
	for (uint32_t i = 0; i < step->rows; i++)
		if (step->row[i])
			step->row[i]->cause = cause;
	step->ended = true;
}

bool step_was_cut(const struct step *step)
{
	bool cut = false;

	for (uint32_t i = 0; !cut && i < step->pool->layers; i++)
		cut = step->cause[i] == R3RING_CAUSE_DAEMON_RESTART;
	return cut;
}

/* ---- sealing ------------------------------------------------------------ */

static bool part_came(const struct step *step, uint32_t layer, uint32_t row)
{
	uint32_t part = row / step->part_rows;

	return (step->parts[(size_t)layer * step->part_words + part / 64] >> (part % 64)) & 1;
}

static bool is_left_out(const struct step *step, uint32_t layer)
{
	return !layers_among(&step->pool->layer[layer], step->kept_first, step->kept_end);
}

/* Of the layers that the recorder left out, of which STEP_END says nothing. */
static uint8_t cause_of_left_out(const struct step *step)
{
	const uint32_t rows = step->head.row_end - step->head.row_begin;
	const uint64_t parts = (rows + (uint64_t)step->part_rows - 1) / step->part_rows;
	uint64_t records = 0;

	for (uint32_t i = 0; i < step->pool->layers; i++)
		records += is_left_out(step, i) && !step->cause[i] ? parts : 0;
	return step->skipped < records ? R3RING_MISSING_GAP : R3RING_MISSING_NOT_RECORDED;
}

static void find_left_out(struct step *step)
{
	const uint8_t cause = step->kept_end ? cause_of_left_out(step) : R3RING_MISSING_GAP;

	for (uint32_t i = 0; i < step->pool->layers; i++)
		if (cause != R3RING_MISSING_GAP && is_left_out(step, i) && !step->cause[i])
			step->cause[i] = cause;
}

/* A layer of which something is missing, row by row. */
static void seal_layer(struct step *step, uint32_t layer)
{
	uint8_t cause = step->cause[layer] ? step->cause[layer] : R3RING_MISSING_GAP;

	for (uint32_t i = 0; i < step->rows; i++) {
		struct row *row = step->row[i];

		if (!row || row->empty)
			continue;
		/* What STEP_END takes back did not come. */
		if (step->cause[layer] || !part_came(step, layer, i))
			row_cell_spoil(row, layer, cause);
	}
}

void step_seal(struct step *step)
{
	const struct row_pool *pool = step->pool;

	step_gap(step); /* what did not come until now does not */
	find_left_out(step);
	for (uint32_t layer = 0; layer < pool->layers; layer++)
		if (step->cause[layer] || step->came[layer] != step->rows)
			seal_layer(step, layer);
}

bool step_map_settled(const struct step *step)
{
	if (step->head.flags & R3RING_STEP_SPANS_FOLLOW)
		return false;
	if (!(step->map.flags & R3RING_SPAN_DRAFT))
		return true;
	for (uint32_t i = 0; i < step->map.spans; i++)
		if ((step->map.span[i].flags & R3RING_SPAN_DRAFT) &&
		    step->map.span[i].accepted == R3RING_UNKNOWN_U32)
			return false;
	return true;
}
