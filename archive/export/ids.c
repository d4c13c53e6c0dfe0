/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the names' hashes, of 64 bits: two names of one hash would only have the second
 * called "ID#2" without need, once in some 10^7 exports of a million requests.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/block.h"
#include "archive/export/ids.h"

#define SLOTS_FIRST 1024u

struct slot {
	uint64_t hash;
	uint32_t times; /* that requests came with it; 0: the slot is free */
};

struct export_ids {
	struct slot *slot; /* [slots], a power of two; at most half of them taken */
	uint64_t slots, taken;
};

struct export_ids *export_ids_create(void)
{
	struct export_ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return NULL;
	ids->slots = SLOTS_FIRST;
	ids->slot = calloc(ids->slots, sizeof(*ids->slot));
	if (ids->slot)
		return ids;
	free(ids);
	return NULL;
}

void export_ids_destroy(struct export_ids *ids)
{
	if (ids)
		free(ids->slot);
	free(ids);
}

/* The name's slot, or the free one that it would have. */
static struct slot *slot_of(const struct export_ids *ids, uint64_t hash)
{
	uint64_t at = hash & (ids->slots - 1);

	while (ids->slot[at].times && ids->slot[at].hash != hash)
		at = (at + 1) & (ids->slots - 1);
	return &ids->slot[at];
}

static int grow(struct export_ids *ids)
{
	struct export_ids larger = {.slots = ids->slots * 2, .taken = ids->taken};

	if (ids->taken < ids->slots / 2)
		return 0;
	larger.slot = calloc(larger.slots, sizeof(*larger.slot));
	if (!larger.slot)
		return -ENOMEM;
	for (uint64_t i = 0; i < ids->slots; i++)
		if (ids->slot[i].times)
			*slot_of(&larger, ids->slot[i].hash) = ids->slot[i];
	free(ids->slot);
	*ids = larger;
	return 0;
}

/* Takes it for a name where nobody has it. */
static bool take(struct export_ids *ids, const char *name)
{
	const uint64_t hash = archive_hash(name, strlen(name));
	struct slot *slot = slot_of(ids, hash);

	if (slot->times)
		return false;
	*slot = (struct slot){hash, 1};
	ids->taken++;
	return true;
}

int export_ids_name(struct export_ids *ids, const char *id, char name[EXPORT_ID_BYTES])
{
	struct slot *first;

	if (grow(ids))
		return -ENOMEM;
	snprintf(name, EXPORT_ID_BYTES, "%s", id);
	if (take(ids, name))
		return 0;
	first = slot_of(ids, archive_hash(id, strlen(id)));
	do
		snprintf(name, EXPORT_ID_BYTES, "%.*s#%u", R3RING_TEXT_ID_MAX, id, ++first->times);
	while (!take(ids, name));
	return 1;
}
