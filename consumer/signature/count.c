/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the assembler places are counted, each position of a request once. */
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

uint32_t signature_stage(struct r3ring_signatures *signatures, struct row_pool *pool)
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

/* ---- counting ------------------------------------------------------------------------ */

static void count_layer(uint16_t *counts, const uint16_t *ids, uint32_t top_k)
{
	for (uint32_t k = 0; k < top_k; k++) {
		uint16_t now = r3ring_load_relaxed_u16(&counts[ids[k]]);

		r3ring_store_relaxed_u16(&counts[ids[k]], (uint16_t)(now + (now != UINT16_MAX)));
	}
}

/* A valid cell's ids are experts. @counted: of which the layers that it has are; or NULL. */
static void count_ids(const struct r3ring_signatures *signatures, uint16_t *counts,
		      const struct row *row, const struct row *counted)
{
	const struct row_pool *pool = row_tile(row)->pool;

	for (uint32_t layer = 0; layer < pool->layers; layer++)
		if (row_cell_valid(row, layer) && !(counted && row_cell_valid(counted, layer)))
			count_layer(counts + (size_t)layer * signatures->experts,
				    row_ids(row, layer), pool->top_k);
}

static void add_u64(uint64_t *word, uint64_t value)
{
	r3ring_store_relaxed_u64(word, r3ring_load_relaxed_u64(word) + value);
}

/* What the row comes to in the signature; without room it is as if it were missing. */
static enum mark count_row(struct r3ring_signatures *signatures, struct slot *slot,
			   const struct placed_row *placed, uint32_t stage, enum mark before)
{
	const bool whole = !row_is_marred(placed->row);
	enum r3ring_signature_phase phase = placed->position < slot->prompt
						    ? R3RING_SIGNATURE_PREFILL
						    : R3RING_SIGNATURE_DECODE;
	uint16_t *counts;

	if (!whole && !row_has_any(placed->row))
		return before;
	counts = slot_reach(signatures, slot, stage, phase);
	if (!counts) {
		signatures->stats.rows_unkept++;
		return before;
	}
	count_ids(signatures, counts, placed->row, before == MARK_PART ? placed->former : NULL);
	if (!whole)
		return MARK_PART;
	add_u64(&slot->rows[phase], 1);
	add_u64(&slot->inherited, placed->cached);
	signatures->stats.rows++;
	signatures->stats.rows_inherited += placed->cached;
	return MARK_WHOLE;
}

static void count_position(struct r3ring_signatures *signatures, struct slot *slot,
			   struct marks *marks, const struct placed_row *placed)
{
	const bool first = signature_is_first(signatures, placed);
	enum mark mark;

	/* The attempts before it may have run tokens that were not kept. */
	if (placed->attempt->number > marks->attempt) {
		marks_cut(marks, signature_kept_before(signatures, placed));
		marks->attempt = placed->attempt->number;
	}
	if (marks->end <= placed->position)
		marks->end = placed->position + 1;
	if (placed->row->empty)
		return;
	mark = marks_get(marks, placed->position);
	if (mark == MARK_WHOLE || (mark == MARK_PART && !placed->former))
		signatures->stats.rows_recomputed++;
	else if (first)
		marks_set(marks, placed->position,
			  count_row(signatures, slot, placed, marks->stage, mark));
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
	struct slot *slot = slot_of(signatures, placed->part->request);
	struct marks *marks;

	if (!slot) {
		signatures->stats.rows_unkept++;
		return;
	}
	if (slot->prompt == R3RING_UNKNOWN_U32)
		r3ring_store_relaxed_u32(&slot->prompt, placed->part->attempt[0]->prompt);
	r3ring_store_relaxed_u64(&slot->updated_ns, signatures->now_ns);
	note_mixed(slot, placed->part->request);
	marks = slot_marks(signatures, slot,
			   signature_stage(signatures, row_tile(placed->row)->pool),
			   placed->position);
	if (!marks) {
		signatures->stats.rows_unkept++;
		return;
	}
	count_position(signatures, slot, marks, placed);
	slot_tell_missing(signatures, slot);
}

void signature_over(void *ctx, struct request *request, uint32_t flags)
{
	struct r3ring_signatures *signatures = ctx;
	struct slot *slot = signature_missing(signatures, request);
	uint32_t said = 0, by[2];

	if (!slot)
		return;
	if (strangers_in(signatures->assembler, request, by))
		said |= R3RING_SIGNATURE_MIXED;
	if (flags & R3RING_ASSEMBLED_ABORTED)
		said |= R3RING_SIGNATURE_ABORTED;
	if (flags & R3RING_ASSEMBLED_UNFINISHED)
		said |= R3RING_SIGNATURE_UNFINISHED;
	if (flags & R3RING_ASSEMBLED_LENGTH_GUESSED)
		said |= R3RING_SIGNATURE_END_MISSED;
	slot_end(signatures, slot, said);
}
