/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of which the routes are not known, or not in all layers. */
#include <stdlib.h>

#include "consumer/layers.h"
#include "consumer/signature/signature.h"

/* ---- while it lives --------------------------------------------------------------- */

static struct marks *marks_find(const struct slot *slot, uint32_t stage)
{
	struct marks *marks = slot->marks;

	while (marks && marks->stage != stage)
		marks = marks->next;
	return marks;
}

static struct marks *marks_add(struct r3ring_signatures *signatures, struct slot *slot,
			       uint32_t stage)
{
	struct marks *marks = calloc(1, sizeof(*marks));

	if (!marks)
		return NULL;
	signatures->assembler->memory.held += heap_bytes(sizeof(*marks));
	marks->stage = stage;
	marks->next = slot->marks;
	slot->marks = marks;
	return marks;
}

struct marks *slot_marks(struct r3ring_signatures *signatures, struct slot *slot, uint32_t stage,
			 uint32_t position)
{
	struct marks *marks = marks_find(slot, stage);
	uint64_t growth;

	if (stage == SIGNATURE_STAGES)
		return NULL;
	if (!marks)
		marks = marks_add(signatures, slot, stage);
	if (!marks)
		return NULL;
	growth = marks_growth(marks, position);
	if (marks_reach(marks, position) < 0)
		return NULL;
	signatures->assembler->memory.held += growth;
	return marks;
}

void slot_drop_marks(struct r3ring_signatures *signatures, struct slot *slot)
{
	struct marks *marks;

	while ((marks = slot->marks)) {
		slot->marks = marks->next;
		signatures->assembler->memory.held -=
			heap_bytes(sizeof(*marks)) + marks_bytes(marks);
		free(marks->bits);
		free(marks);
	}
}

void slot_tell_missing(struct r3ring_signatures *signatures, struct slot *slot)
{
	uint64_t missing = 0, part = 0;

	for (const struct marks *marks = slot->marks; marks; marks = marks->next) {
		missing += marks_missing(marks);
		part += marks->part;
	}
	signatures->stats.rows_missing += missing - slot->missing;
	r3ring_store_relaxed_u64(&slot->missing, missing);
	r3ring_store_relaxed_u64(&slot->part, part);
}

/* ---- when it is over -------------------------------------------------------------- */

static bool have_common(const struct signature_stage *stage, const struct signature_stage *other)
{
	for (uint32_t i = 0; i < stage->layers; i++)
		if (layers_find(other->layer, other->layers, &stage->layer[i], i) < other->layers)
			return true;
	return false;
}

/* Engines that cut the model into stages in their own ways share a request's positions, and which
 * of them each was to run nobody says. */
static bool shares_layers(const struct r3ring_signatures *signatures, const struct slot *slot,
			  const struct marks *marks)
{
	for (const struct marks *other = slot->marks; other; other = other->next)
		if (other != marks &&
		    have_common(&signatures->stage[marks->stage], &signatures->stage[other->stage]))
			return true;
	return false;
}

/* All positions are each stage's. What was run past the end stays counted, and is no position. */
static void end_marks(const struct r3ring_signatures *signatures, const struct slot *slot,
		      uint32_t length)
{
	for (struct marks *marks = slot->marks; marks; marks = marks->next) {
		marks_cut(marks, length);
		if (!shares_layers(signatures, slot, marks))
			marks->end = length;
	}
}

struct slot *signature_missing(struct r3ring_signatures *signatures, struct request *request)
{
	const uint32_t length = signature_length(signatures, request);
	struct slot *slot = request->seen || length ? slot_of(signatures, request) : NULL;

	if (!slot)
		return NULL;
	for (const struct part *part = request->part; length && part; part = part->next) {
		struct row_pool *pool = signatures->assembler->channel[part->channel]->pool;

		if (pool && part->attempts)
			slot_marks(signatures, slot, signature_stage(signatures, pool), 0);
	}
	end_marks(signatures, slot, length);
	slot_tell_missing(signatures, slot);
	return slot;
}
