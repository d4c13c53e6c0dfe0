/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/assembler/keys.h"

static void key_free(struct key *key)
{
	rows_drop(key->row, key->name.tokens);
	free(key);
}

static void forget(struct key_store *store, struct key *key)
{
	store->loads_forgotten |= key->loaded;
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
	key->loaded = name->kind == R3RING_KEYS_BLOCK_HASH && store->loads_forgotten;
	return insert(store, key);
}

static void empty(struct key *key)
{
	for (uint32_t i = 0; i < key->name.tokens; i++)
		key_set(key, i, NULL);
	key->owner = 0;
	key->seen_from = 0;
	key->run = false;
}

void key_erase(struct key_store *store, const struct key_name *name)
{
	struct key *key = look_up(store, name);

	if (key && key->loaded)
		empty(key);
	else if (key)
		forget(store, key);
}

void key_load(struct key_store *store, const struct key_name *name)
{
	struct key *key;

	if (name->kind != R3RING_KEYS_BLOCK_HASH) {
		key_erase(store, name);
		return;
	}
	key = key_make(store, name);
	store->loads_forgotten |= !key;
	if (!key)
		return;
	empty(key);
	key->loaded = true;
}

void key_ran(struct key *key, uint64_t step, uint64_t told)
{
	uint64_t from = 0;

	if (key->name.kind != R3RING_KEYS_BLOCK_HASH || (key->run && key_seen(key, step)))
		return;
	if (told > step)
		from = told;
	else if (key->loaded || key->run)
		from = step + 1;
	if (!key->run || from < key->seen_from)
		key->seen_from = from;
	key->run = true;
	key->loaded = false;
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
		if (key->row[i] && row_tile(key->row[i])->step == step &&
		    row_tile(key->row[i])->generation == generation)
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

void key_store_begin(struct key_store *store)
{
	key_store_clear(store);
	store->loads_forgotten = false;
}

void key_store_shrink(struct key_store *store)
{
	uint32_t some = HASH_COUNT(store->keys) / 8 + 1;

	for (; some && store->keys; some--) {
		forget(store, store->keys);
		store->forgotten++;
	}
}
