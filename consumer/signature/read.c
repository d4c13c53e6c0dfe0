/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of slots, taken by any thread while their requests are counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/layers.h"
#include "consumer/signature/signature.h"

struct r3ring_signature {
	struct r3ring_signature_info info;
	char id[R3RING_TEXT_ID_MAX + 1];
	struct r3ring_layer_entry *layer;
	uint32_t layers;
	uint32_t stages;  /* that the layers are of */
	uint16_t *counts; /* [phases][layers][experts] */
	size_t capacity;
};

int r3ring_signature_create(struct r3ring_signature **signature)
{
	struct r3ring_signature *created;

	if (!signature)
		return -EINVAL;
	created = calloc(1, sizeof(*created));
	if (!created)
		return -ENOMEM;
	*signature = created;
	return 0;
}

void r3ring_signature_free(struct r3ring_signature *signature)
{
	if (!signature)
		return;
	free(signature->layer);
	free(signature->counts);
	free(signature);
}

const struct r3ring_signature_info *r3ring_signature_get_info(
	const struct r3ring_signature *signature)
{
	return &signature->info;
}

/* ---- room ------------------------------------------------------------------------ */

static int unite_layers(const struct r3ring_signatures *signatures, uint32_t stages,
			struct r3ring_signature *to)
{
	int r = 0;

	to->layers = 0;
	for (uint32_t i = 0; r == 0 && i < stages; i++)
		r = layers_add(&to->layer, &to->layers, signatures->stage[i].layer,
			       signatures->stage[i].layers);
	layers_sort(to->layer, to->layers);
	return r;
}

static int make_room(struct r3ring_signature *to, uint32_t experts)
{
	size_t phase = (size_t)to->layers * experts, all = phase * R3RING_SIGNATURE_PHASES;

	if (all > to->capacity) {
		uint16_t *room = realloc(to->counts, all * sizeof(*room));

		if (!room)
			return -ENOMEM;
		to->counts = room;
		to->capacity = all;
	}
	if (all)
		memset(to->counts, 0, all * sizeof(*to->counts));
	for (uint32_t i = 0; i < R3RING_SIGNATURE_PHASES; i++)
		to->info.counts[i] = to->counts + i * phase;
	to->info.layers = to->layers;
	to->info.layer = to->layer;
	to->info.experts = experts;
	return 0;
}

/* ---- copying ----------------------------------------------------------------------- */

static void copy_stage(const struct signature_stage *stage, const uint16_t *from,
		       const struct r3ring_signature *to, uint16_t *counts)
{
	const uint32_t experts = to->info.experts;

	for (uint32_t i = 0; i < stage->layers; i++) {
		size_t at = layers_find(to->layer, to->layers, &stage->layer[i], i);

		for (uint32_t e = 0; e < experts; e++)
			counts[at * experts + e] =
				r3ring_load_relaxed_u16(&from[(size_t)i * experts + e]);
	}
}

static void copy_slot(const struct r3ring_signatures *signatures, const struct slot *slot,
		      uint32_t stages, struct r3ring_signature *to)
{
	const size_t phase_cells = (size_t)to->layers * to->info.experts;

	memcpy(to->id, slot->id, sizeof(to->id));
	to->info.id = to->id;
	to->info.flags = r3ring_load_relaxed_u32(&slot->flags);
	to->info.prompt_tokens = r3ring_load_relaxed_u32(&slot->prompt);
	to->info.updated_ns = r3ring_load_relaxed_u64(&slot->updated_ns);
	to->info.rows_inherited = r3ring_load_relaxed_u64(&slot->inherited);
	to->info.rows_missing = r3ring_load_relaxed_u64(&slot->missing);
	to->info.rows_in_part = r3ring_load_relaxed_u64(&slot->part);
	for (uint32_t phase = 0; phase < R3RING_SIGNATURE_PHASES; phase++) {
		to->info.rows[phase] = r3ring_load_relaxed_u64(&slot->rows[phase]);
		for (uint32_t i = 0; i < stages; i++) {
			const uint16_t *from = slot_counts(slot, i, phase);

			if (from)
				copy_stage(&signatures->stage[i], from, to,
					   to->counts + phase * phase_cells);
		}
	}
}

/* Enters the slot if it is of that id; NULL: it is not. */
static struct slot *enter(const struct r3ring_signatures *signatures, uint32_t i, const char *id)
{
	struct slot *slot = &signatures->slot[i];

	if (!hold_enter(&slot->hold))
		return NULL; /* it is another's by now */
	if (strcmp(slot->id, id) == 0)
		return slot;
	hold_leave(&slot->hold);
	return NULL;
}

static bool goes_before(const struct slot *slot, const struct slot *other)
{
	const uint32_t ended = r3ring_load_relaxed_u32(&slot->flags) & R3RING_SIGNATURE_ENDED;
	const uint32_t its = r3ring_load_relaxed_u32(&other->flags) & R3RING_SIGNATURE_ENDED;

	return ended == its ? slot->begun > other->begun : !ended;
}

/* One that lives before those that ended, then the newest; entered. @others: how many it was
 * chosen of, itself not counted. */
static struct slot *find(const struct r3ring_signatures *signatures, const char *id,
			 uint32_t *others)
{
	const uint32_t hash = signature_hash(id);
	struct slot *found = NULL;

	*others = 0;
	for (uint32_t i = 0; i < signatures->options.max_requests; i++) {
		struct slot *slot = NULL, *other = found;

		if (r3ring_load_relaxed_u32(&signatures->hash[i]) == hash)
			slot = enter(signatures, i, id);
		if (!slot)
			continue;
		if (!found || goes_before(slot, found))
			found = slot;
		else
			other = slot;
		if (other) {
			hold_leave(&other->hold);
			++*others;
		}
	}
	return found;
}

int slot_read(const struct r3ring_signatures *signatures, const struct slot *slot,
	      struct r3ring_signature *to)
{
	/* Pairs with the release in count.c, stage_make(). */
	uint32_t stages = r3ring_load_acquire_u32(&signatures->stages);
	int r = unite_layers(signatures, stages, to);

	if (r == 0)
		r = make_room(to, r3ring_load_relaxed_u32(&signatures->experts));
	if (r == 0)
		copy_slot(signatures, slot, stages, to);
	return r;
}

int r3ring_signatures_get(const struct r3ring_signatures *signatures, const char *id,
			  struct r3ring_signature *signature)
{
	struct slot *slot;
	uint32_t others;
	int r;

	if (!signature)
		return -EINVAL;
	signature->info = (struct r3ring_signature_info){0};
	if (!id)
		return -ENOENT;
	slot = find(signatures, id, &others);
	if (!slot)
		return -ENOENT;
	r = slot_read(signatures, slot, signature);
	hold_leave(&slot->hold);
	if (r < 0)
		signature->info = (struct r3ring_signature_info){0};
	else
		signature->info.same_id = others;
	return r;
}
