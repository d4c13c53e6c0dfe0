/* SPDX-License-Identifier: Apache-2.0 */
/* What a cell holds by the rows of its position, or why it is missing. */
#include <string.h>

#include "consumer/assembler/choose.h"

static void cell_conflict(struct cell *cell, const struct row *first, const struct row *second)
{
	cell->ids = NULL;
	cell->cause = R3RING_CAUSE_CONFLICT;
	cell->channel[0] = row_tile(first)->pool->channel;
	cell->step[0] = row_tile(first)->step;
	cell->channel[1] = row_tile(second)->pool->channel;
	cell->step[1] = row_tile(second)->step;
}

/* What was lost is told before what was nobody's to have. */
static bool says_more(uint8_t cause, uint8_t before)
{
	return before == R3RING_MISSING_OTHER_LAYERS ||
	       (before == R3RING_MISSING_EXTERNAL && cause != R3RING_MISSING_OTHER_LAYERS);
}

/* Ids of one more row of the pass; false once the cell is in conflict. */
static bool cell_add(struct cell *cell, const struct row *row, const uint16_t *ids, size_t bytes)
{
	if (!cell->ids) {
		cell->from = row;
		cell->ids = ids;
		cell->cause = 0;
	} else if (memcmp(cell->ids, ids, bytes)) {
		cell_conflict(cell, cell->from, row);
		return false;
	}
	return true;
}

/* The part's schema that has the layer, or NULL. */
static const struct row_pool *part_pool(const struct r3ring_assembled *assembled,
					const struct part *part, uint32_t layer)
{
	for (uint32_t i = 0; i < assembled->maps; i++)
		if (assembled->map[i].pool->channel == part->channel &&
		    assembled->map[i].to_row[layer] != LAYER_ELSEWHERE)
			return assembled->map[i].pool;
	return NULL;
}

/* Whether the channel has the layer of a pass under other weights only. */
static bool has_other_pass(const struct chosen *chosen, const struct part *part, uint32_t layer)
{
	for (uint32_t i = 0; i < chosen->rows; i++) {
		const struct layer_map *map = chosen->map[i];

		if (map && map->pool->channel == part->channel &&
		    map->to_row[layer] != LAYER_ELSEWHERE)
			return true;
	}
	return false;
}

/* Of a cell whose channels have no row of the pass that counts, though others do. */
static uint8_t cause_of_layer(const struct r3ring_assembled *assembled, const struct chosen *chosen,
			      uint32_t layer)
{
	const uint32_t instance = row_tile(chosen->row[0])->pool->instance;
	const bool evicted = assembled->info.flags & R3RING_ASSEMBLED_EVICTED;
	uint8_t cause = R3RING_MISSING_OTHER_LAYERS;

	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct row_pool *pool = part_pool(assembled, part, layer);

		if (!pool)
			continue;
		if (part->gap)
			return part->gap;
		/* Another rank of its instance, or engine, heard of the attempt. */
		if (!part_find_attempt(part, chosen->pass->number) &&
		    (pool->instance == instance ||
		     engine_has_attempt(assembled, part, chosen->pass->number)))
			return R3RING_MISSING_GAP;
		cause = evicted                  ? R3RING_MISSING_EVICTED
			: assembled->lacks_shard ? R3RING_MISSING_OTHER_SHARDS
						 : R3RING_MISSING_NOT_RUN;
		/* It ran this pass as well, and nothing was lost but how many drafts were accepted:
		 * where that never comes nothing stays that keeps another pass out. */
		if (!evicted && pool->instance == instance && has_other_pass(chosen, part, layer))
			return R3RING_MISSING_SPANS;
	}
	return cause;
}

/* Why the cell is missing in what a cache may have found in place of row @i; 0 where it is not. */
static uint8_t cause_instead(const struct chosen *chosen, uint32_t i, uint32_t layer)
{
	for (uint32_t j = chosen->passes; j < chosen->rows && chosen->instead >> j; j++) {
		const struct layer_map *map = chosen->map[j];

		if ((chosen->instead >> j) & 1 && map == chosen->map[i] &&
		    row_cell_cause(chosen->row[j], map->to_row[layer]))
			return row_cell_cause(chosen->row[j], map->to_row[layer]);
	}
	return 0;
}

void cell_read(const struct r3ring_assembled *assembled, const struct chosen *chosen,
	       uint32_t layer, struct cell *cell)
{
	const uint32_t top_k = assembled->info.top_k;

	uint8_t lost = 0;
	bool certain = false;

	*cell = (struct cell){.cause = chosen->cause};
	for (uint32_t i = 0; i < chosen->rows; i++) {
		struct row *row = chosen->row[i];
		uint16_t place = chosen->map[i] ? chosen->map[i]->to_row[layer] : LAYER_ELSEWHERE;
		uint8_t cause;

		/* What other weights came to is another pass, and does not count. */
		if (place == LAYER_ELSEWHERE ||
		    (!row_is_no_pass(row) &&
		     row_tile(row)->weight_version != row_tile(chosen->row[0])->weight_version))
			continue;
		cause = row_cell_cause(row, place);
		if (!cause && i < chosen->passes) {
			lost = cause_instead(chosen, i, layer);
			certain |= !lost;
		}
		if (i >= chosen->passes && !cell->ids)
			continue;
		if (!cause && !cell_add(cell, row, row_ids(row, place), top_k * sizeof(uint16_t)))
			return;
		if (!cause || cell->ids || !says_more(cause, cell->cause))
			continue;
		cell->cause = cause;
		/* Two spans of its step claimed it. */
		if (cause == R3RING_CAUSE_CONFLICT)
			cell_conflict(cell, row, row);
	}
	if (cell->ids && !certain)
		*cell = (struct cell){.cause = lost};
	if (chosen->rows && cell->cause == R3RING_MISSING_OTHER_LAYERS)
		cell->cause = cause_of_layer(assembled, chosen, layer);
}
