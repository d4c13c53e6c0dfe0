/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/assembler/keys.h"

static void key_free(struct key *key)
{
	for (uint32_t i = 0; i < key->name.tokens; i++)
		row_drop(key->row[i]);
	free(key);
}

static void forget(struct key_store *store, struct key *key)
{
	HASH_DEL(store->keys, key);
	key_free(key);
}

static struct key *insert(struct key_store *store, struct key *key)
{
	unsigned int before = HASH_COUNT(store->keys);

	HASH_ADD(hh, store->keys, name, sizeof(key->name), key);
	if (HASH_COUNT(store->keys) > before)
		return key;
	key_free(key);
	return NULL;
}

static struct key *look_up(struct key_store *store, const struct key_name *name)
{
	struct key *key;

	HASH_FIND(hh, store->keys, name, sizeof(*name), key);
	return key;
}

struct key *key_find(struct key_store *store, const struct key_name *name)
{
	struct key *key = look_up(store, name);

	/* Iteration is in the order of insertion: the head is the oldest. */
	if (!key || !key->hh.next)
		return key;
	HASH_DEL(store->keys, key);
	return insert(store, key);
}

struct key *key_make(struct key_store *store, const struct key_name *name)
{
	struct key *key = key_find(store, name);

	if (key)
		return key;
	if (HASH_COUNT(store->keys) >= store->most) {
		forget(store, store->keys);
		store->forgotten++;
	}
	key = calloc(1, sizeof(*key) + name->tokens * sizeof(*key->row));
	if (!key)
		return NULL;
	key->name = *name;
	return insert(store, key);
}

void key_erase(struct key_store *store, const struct key_name *name)
{
	struct key *key = look_up(store, name);

	if (key)
		forget(store, key);
}

void key_set(struct key *key, uint32_t token, struct row *row)
{
	if (key->row[token] == row)
		return;
	row_drop(key->row[token]);
	key->row[token] = row ? row_hold(row) : NULL;
}

void key_store_forget_slots(struct key_store *store)
{
	struct key *key, *next;

	HASH_ITER (hh, store->keys, key, next) {
		if (key->name.kind == R3RING_KEYS_SLOT)
			forget(store, key);
	}
}

static bool has_row_of(const struct key *key, uint64_t step, uint64_t generation)
{
	for (uint32_t i = 0; i < key->name.tokens; i++)
		if (key->row[i] && key->row[i]->step == step &&
		    key->row[i]->generation == generation)
			return true;
	return false;
}

uint32_t key_store_forget_step(struct key_store *store, uint64_t step, uint64_t generation)
{
	struct key *key, *next;
	uint32_t count = 0;

	HASH_ITER (hh, store->keys, key, next) {
		if (!has_row_of(key, step, generation))
			continue;
		forget(store, key);
		count++;
	}
	return count;
}

void key_store_clear(struct key_store *store)
{
	struct key *key, *next;

	HASH_ITER (hh, store->keys, key, next) {
		forget(store, key);
	}
}

void key_store_shrink(struct key_store *store)
{
	uint32_t some = HASH_COUNT(store->keys) / 8 + 1;

	for (; some && store->keys; some--) {
		forget(store, store->keys);
		store->forgotten++;
	}
}
