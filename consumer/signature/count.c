/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the assembler places are counted, each position of a request once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signature/signature.h"

/* ---- stages -------------------------------------------------------------------- */

static bool same_layers(const struct signature_stage *stage, const struct row_pool *pool)
{
	return stage->layers == pool->layers &&
	       memcmp(stage->layer, pool->layer, pool->layers * sizeof(*pool->layer)) == 0;
}

static uint32_t stage_make(struct r3ring_signatures *signatures, const struct row_pool *pool)
{
	uint32_t at = signatures->stages;
	struct signature_stage *stage = &signatures->stage[at];

	if (at == SIGNATURE_STAGES)
		return at;
	stage->layer = malloc(pool->layers * sizeof(*stage->layer));
	if (!stage->layer)
		return SIGNATURE_STAGES;
	memcpy(stage->layer, pool->layer, pool->layers * sizeof(*stage->layer));
	stage->layers = pool->layers;
	r3ring_store_relaxed_u32(&signatures->experts, signatures->assembler->experts);
	/* Pairs with the acquire in read.c, r3ring_signatures_get(): the stage is made. */
	r3ring_store_release_u32(&signatures->stages, at + 1);
	return at;
}

/* SIGNATURE_STAGES: there are too many. */
static uint32_t stage_of(struct r3ring_signatures *signatures, struct row_pool *pool)
{
	uint32_t at = 0;

	if (signatures->pool == pool)
		return signatures->pool_stage;
	while (at < signatures->stages && !same_layers(&signatures->stage[at], pool))
		at++;
	if (at == signatures->stages)
		at = stage_make(signatures, pool);
	signatures->pool = pool;
	signatures->pool_stage = at;
	return at;
}

/* ---- which rows ------------------------------------------------------------------- */

/* Tokens that were kept of an attempt: where nobody said, what the next one was fed. */
static uint32_t kept_of(const struct part *part, uint32_t i)
{
	if (part->attempt[i]->accepted != R3RING_UNKNOWN_U32)
		return part->attempt[i]->accepted;
	return i + 1 < part->attempts ? part->attempt[i + 1]->prompt : R3RING_UNKNOWN_U32;
}

static bool ran_before(const struct part *part, const struct placed_row *placed)
{
	for (uint32_t i = 0; i < part->attempts; i++) {
		const struct row *row = attempt_row(part->attempt[i], placed->position);

		if (part->attempt[i]->number < placed->attempt->number && row &&
		    row_tile(row)->pool->layers == row_tile(placed->row)->pool->layers &&
		    !row_is_no_pass(row) && placed->position < kept_of(part, i))
			return true;
	}
	return false;
}

/* In an earlier attempt, on this channel or on another one with these layers. */
static bool is_recomputed(const struct placed_row *placed)
{
	const struct part *part = placed->part->request->part;

	if (!placed->attempt->number)
		return false;
	for (; part; part = part->next)
		if (ran_before(part, placed))
			return true;
	return false;
}

/* ---- counting ------------------------------------------------------------------------ */

static void count_layer(uint16_t *counts, const uint16_t *ids, uint32_t top_k)
{
	for (uint32_t k = 0; k < top_k; k++) {
		uint16_t now = r3ring_load_relaxed_u16(&counts[ids[k]]);

		r3ring_store_relaxed_u16(&counts[ids[k]], (uint16_t)(now + (now != UINT16_MAX)));
	}
}

/* A valid cell's ids are experts. */
static void count_ids(const struct r3ring_signatures *signatures, uint16_t *counts,
		      const struct row *row)
{
	const struct row_pool *pool = row_tile(row)->pool;

	for (uint32_t layer = 0; layer < pool->layers; layer++)
		if (row_cell_valid(row, layer))
			count_layer(counts + (size_t)layer * signatures->experts,
				    row_ids(row, layer), pool->top_k);
}

static void add_u64(uint64_t *word, uint64_t value)
{
	r3ring_store_relaxed_u64(word, r3ring_load_relaxed_u64(word) + value);
}

static void count_missing(struct r3ring_signatures *signatures, struct slot *slot,
			  const struct placed_row *placed)
{
	/* What took the place of one that was missing is told again. */
	if (placed->before)
		return;
	add_u64(&slot->missing, 1);
	signatures->stats.rows_missing++;
}

static void count_row(struct r3ring_signatures *signatures, struct slot *slot,
		      const struct placed_row *placed)
{
	enum r3ring_signature_phase phase = placed->position < slot->prompt
						    ? R3RING_SIGNATURE_PREFILL
						    : R3RING_SIGNATURE_DECODE;
	uint32_t stage = stage_of(signatures, row_tile(placed->row)->pool);
	uint16_t *counts = stage < SIGNATURE_STAGES ? slot_reach(signatures, slot, stage, phase)
						    : NULL;

	if (!counts) {
		signatures->stats.rows_unkept++;
		return;
	}
	count_ids(signatures, counts, placed->row);
	if (placed->before) {
		add_u64(&slot->missing, UINT64_MAX);
		signatures->stats.rows_missing--;
	}
	add_u64(&slot->rows[phase], 1);
	add_u64(&slot->inherited, placed->cached);
	signatures->stats.rows++;
	signatures->stats.rows_inherited += placed->cached;
}

/* What else tells of strangers is known at the end. */
static void note_mixed(struct slot *slot, const struct request *request)
{
	if (request->has_twin && request->part->next)
		r3ring_store_relaxed_u32(&slot->flags, slot->flags | R3RING_SIGNATURE_MIXED);
}

/* Those of one text id have a slot each from now on, though nothing of them was run yet: whoever
 * asks for one is told of the others. */
void signature_begun(void *ctx, struct request *first)
{
	for (struct request *request = first; first->same && request; request = request->same)
		slot_of(ctx, request);
}

void signature_row(void *ctx, const struct placed_row *placed)
{
	struct r3ring_signatures *signatures = ctx;
	struct slot *slot;

	if (is_recomputed(placed)) {
		signatures->stats.rows_recomputed++;
		return;
	}
	slot = slot_of(signatures, placed->part->request);
	if (!slot) {
		signatures->stats.rows_unkept++;
		return;
	}
	if (slot->prompt == R3RING_UNKNOWN_U32)
		r3ring_store_relaxed_u32(&slot->prompt, placed->part->attempt[0]->prompt);
	r3ring_store_relaxed_u64(&slot->updated_ns, signatures->now_ns);
	note_mixed(slot, placed->part->request);
	if (placed->row->empty)
		count_missing(signatures, slot, placed);
	else
		count_row(signatures, slot, placed);
}

void signature_over(void *ctx, struct request *request, uint32_t flags)
{
	struct r3ring_signatures *signatures = ctx;
	struct slot *slot = request->seen ? slot_of(signatures, request) : NULL;
	uint32_t said = 0, by[2];

	if (!slot)
		return;
	if (strangers_in(signatures->assembler, request, by))
		said |= R3RING_SIGNATURE_MIXED;
	if (flags & R3RING_ASSEMBLED_ABORTED)
		said |= R3RING_SIGNATURE_ABORTED;
	if (flags & R3RING_ASSEMBLED_UNFINISHED)
		said |= R3RING_SIGNATURE_UNFINISHED;
	slot_end(signatures, slot, said);
}
