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
#define TIMES_MAX (1u << 30)
#define CHARACTER_MORE 3u /* bytes of a character of UTF-8 behind its first */
#define WORDS_HEAD 64u    /* of a long name; and, with those of a character more, */
#define WORDS_TAIL 24u

struct export_ids {
	uint64_t *slot; /* [slots], a power of two; 0: free. At most three of four are taken */
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

static uint64_t hash_of(const char *name)
{
	const uint64_t hash = archive_hash(name, strlen(name));

	return hash ? hash : 1;
}

/* Where it is, or would be. */
static uint64_t *slot_of(const struct export_ids *ids, uint64_t hash)
{
	uint64_t at = hash & (ids->slots - 1);

	while (ids->slot[at] && ids->slot[at] != hash)
		at = (at + 1) & (ids->slots - 1);
	return &ids->slot[at];
}

static int grow(struct export_ids *ids)
{
	struct export_ids larger = {.slots = ids->slots * 2, .taken = ids->taken};

	if (ids->taken < ids->slots / 4 * 3)
		return 0;
	larger.slot = calloc(larger.slots, sizeof(*larger.slot));
	if (!larger.slot)
		return -ENOMEM;
	for (uint64_t i = 0; i < ids->slots; i++)
		if (ids->slot[i])
			*slot_of(&larger, ids->slot[i]) = ids->slot[i];
	free(ids->slot);
	*ids = larger;
	return 0;
}

static bool is_taken(const struct export_ids *ids, const char *name)
{
	return *slot_of(ids, hash_of(name));
}

static bool is_taken_again(const struct export_ids *ids, const char *id, uint32_t times,
			   char name[EXPORT_ID_BYTES])
{
	snprintf(name, EXPORT_ID_BYTES, "%.*s#%u", R3RING_TEXT_ID_MAX, id, times);
	return is_taken(ids, name);
}

/* A name whose predecessor is taken, which is the next one unless some had such names for ids. */
static void name_again(const struct export_ids *ids, const char *id, char name[EXPORT_ID_BYTES])
{
	uint32_t had = 1, free_one = 2;

	while (is_taken_again(ids, id, free_one, name) && free_one < TIMES_MAX) {
		had = free_one;
		free_one *= 2;
	}
	while (free_one - had > 1) {
		const uint32_t middle = had + (free_one - had) / 2;

		if (is_taken_again(ids, id, middle, name))
			had = middle;
		else
			free_one = middle;
	}
	is_taken_again(ids, id, free_one, name);
}

int export_ids_name(struct export_ids *ids, const char *id, char name[EXPORT_ID_BYTES])
{
	int again;

	if (grow(ids))
		return -ENOMEM;
	snprintf(name, EXPORT_ID_BYTES, "%s", id);
	again = is_taken(ids, name);
	if (again)
		name_again(ids, id, name);
	*slot_of(ids, hash_of(name)) = hash_of(name);
	ids->taken++;
	return again;
}

/* ---- in messages ---------------------------------------------------------- */

/* Where the character at @text + @at begins, in UTF-8. */
static size_t character_begin(const char *text, size_t at)
{
	for (unsigned int i = 0; i < CHARACTER_MORE && ((unsigned char)text[at] & 0xC0) == 0x80;
	     i++)
		at--;
	return at;
}

/* The end has the number of one that shares its id. */
const char *export_id_words(char words[EXPORT_ID_WORDS], const char *name)
{
	const size_t bytes = strlen(name);

	if (bytes < EXPORT_ID_WORDS)
		memcpy(words, name, bytes + 1);
	else
		snprintf(words, EXPORT_ID_WORDS, "%.*s...%.*s",
			 (int)character_begin(name, WORDS_HEAD), name,
			 (int)(WORDS_TAIL + CHARACTER_MORE),
			 name + character_begin(name, bytes - WORDS_TAIL));
	return words;
}
