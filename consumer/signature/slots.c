/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: one a request, as many as there may be. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signature/signature.h"

uint32_t signature_hash(const char *id)
{
	uint32_t hash;

	HASH_VALUE(id, strlen(id), hash);
	return hash ? hash : 1;
}

static bool is_free(const struct slot *slot)
{
	return !slot->id[0];
}

static bool has_ended(const struct slot *slot)
{
	return slot->flags & R3RING_SIGNATURE_ENDED;
}

static uint32_t index_of(const struct r3ring_signatures *signatures, const struct slot *slot)
{
	return (uint32_t)(slot - signatures->slot);
}

/* ---- emptying ------------------------------------------------------------------ */

static void drop_counts(struct r3ring_signatures *signatures, struct slot *slot)
{
	for (uint32_t i = 0; i < signatures->stages; i++)
		for (uint32_t phase = 0; phase < R3RING_SIGNATURE_PHASES; phase++) {
			uint16_t *counts = slot_counts(slot, i, phase);

			if (!counts)
				continue;
			free(counts);
			signatures->stats.bytes -= stage_bytes(signatures, i);
		}
}

/* False while somebody reads it. */
static bool slot_empty(struct r3ring_signatures *signatures, struct slot *slot)
{
	if (!hold_claim(&slot->hold))
		return false;
	drop_counts(signatures, slot);
	slot_drop_marks(signatures, slot);
	if (has_ended(slot))
		signatures->stats.ended--;
	else
		signatures->stats.live--;
	/* All but the hold: others add to it. */
	memset(&slot->flags, 0, sizeof(*slot) - offsetof(struct slot, flags));
	r3ring_store_relaxed_u32(&signatures->hash[index_of(signatures, slot)], 0);
	hold_give_back(&slot->hold);
	return true;
}

void slots_free(struct r3ring_signatures *signatures)
{
	for (uint32_t i = 0; signatures->slot && i < signatures->options.max_requests; i++)
		drop_counts(signatures, &signatures->slot[i]);
	free(signatures->slot);
	free(signatures->hash);
}

/* ---- making room ------------------------------------------------------------------ */

/* The one of a kind that was touched longest ago. */
static struct slot *quietest(const struct r3ring_signatures *signatures, bool ended,
			     const struct slot *but)
{
	struct slot *found = NULL;

	for (uint32_t i = 0; i < signatures->options.max_requests; i++) {
		struct slot *slot = &signatures->slot[i];

		if (slot == but || is_free(slot) || has_ended(slot) != ended)
			continue;
		if (!found || slot->touched < found->touched)
			found = slot;
	}
	return found;
}

/* One that ended, else a live one; false when none could go. @but: not this one. */
static bool make_room(struct r3ring_signatures *signatures, const struct slot *but)
{
	struct slot *ended = quietest(signatures, true, but), *live;

	if (ended && slot_empty(signatures, ended)) {
		signatures->stats.forgotten++;
		return true;
	}
	live = quietest(signatures, false, but);
	if (!live || !slot_empty(signatures, live))
		return false;
	signatures->stats.evicted++;
	return true;
}

static struct slot *free_slot(struct r3ring_signatures *signatures)
{
	for (uint32_t i = 0; i < signatures->options.max_requests; i++)
		if (is_free(&signatures->slot[i]))
			return &signatures->slot[i];
	return NULL;
}

/* ---- a request's slot ------------------------------------------------------------- */

static struct slot *slot_take(struct r3ring_signatures *signatures, const struct request *request)
{
	struct slot *slot = free_slot(signatures);

	if (!slot && make_room(signatures, NULL))
		slot = free_slot(signatures);
	if (!slot || !hold_claim(&slot->hold))
		return NULL;
	strncpy(slot->id, request->text[0], R3RING_TEXT_ID_MAX);
	slot->begun = request->begun;
	slot->prompt = R3RING_UNKNOWN_U32;
	hold_give_back(&slot->hold);
	r3ring_store_relaxed_u32(&signatures->hash[index_of(signatures, slot)],
				 signature_hash(slot->id));
	signatures->stats.live++;
	return slot;
}

/* A request remembers its slot; one whose slot went to another has had it. */
struct slot *slot_of(struct r3ring_signatures *signatures, struct request *request)
{
	struct slot *slot = request->seen;

	if (!slot) {
		slot = slot_take(signatures, request);
		if (!slot)
			return NULL;
		request->seen = slot;
	} else if (slot->begun != request->begun) {
		return NULL;
	}
	slot->touched = ++signatures->touches;
	return slot;
}

void slot_end(struct r3ring_signatures *signatures, struct slot *slot, uint32_t flags)
{
	r3ring_store_relaxed_u32(&slot->flags, flags | R3RING_SIGNATURE_ENDED);
	slot_keep(signatures, slot);
	slot_drop_marks(signatures, slot);
	slot->touched = ++signatures->touches;
	signatures->stats.live--;
	signatures->stats.ended++;
	if (signatures->stats.ended <= signatures->options.max_ended)
		return;
	slot = quietest(signatures, true, NULL);
	if (slot_empty(signatures, slot))
		signatures->stats.forgotten++;
}

uint16_t *slot_reach(struct r3ring_signatures *signatures, struct slot *slot, uint32_t stage,
		     enum r3ring_signature_phase phase)
{
	size_t bytes = stage_bytes(signatures, stage);
	uint16_t *counts = slot_counts(slot, stage, phase);

	if (counts)
		return counts;
	while (signatures->stats.bytes + bytes > signatures->options.max_bytes)
		if (!make_room(signatures, slot))
			return NULL;
	counts = calloc(1, bytes);
	if (!counts)
		return NULL;
	signatures->stats.bytes += bytes;
	/* Pairs with the acquire in slot_counts(). */
	r3ring_store_release_u64(&slot->counts[stage][phase], (uintptr_t)counts);
	return counts;
}
