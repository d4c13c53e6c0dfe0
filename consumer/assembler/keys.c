/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/assembler/keys.h"

#define OTHERS_MOST 64u

static void account(struct key_store *store, uint64_t before, uint64_t now)
{
	store->bytes += now - before;
	store->memory->held += now - before;
}

static size_t size_of(uint32_t tokens)
{
	return sizeof(struct key) + tokens * sizeof(struct row *);
}

static uint64_t store_table(const struct key_store *store)
{
	return store->keys ? table_bytes(store->keys->hh.tbl) : 0;
}

static void others_drop(struct key_store *store, struct key *key)
{
	account(store, heap_bytes(key->others * sizeof(*key->other)), 0);
	for (uint32_t i = 0; i < key->others; i++)
		row_drop(key->other[i].row);
	free(key->other);
	key->other = NULL;
	key->others = 0;
}

static void key_free(struct key_store *store, struct key *key)
{
	others_drop(store, key);
	account(store, heap_bytes(size_of(key->name.tokens)), 0);
	rows_drop(key->row, key->name.tokens);
	free(key);
}

static void forget(struct key_store *store, struct key *key)
{
	const uint64_t table = store_table(store);

	store->loads_forgotten |= key->loaded;
	HASH_DEL(store->keys, key);
	account(store, table, store_table(store));
	key_free(store, key);
}

static struct key *insert(struct key_store *store, struct key *key)
{
	const unsigned int before = HASH_COUNT(store->keys);
	const uint64_t table = store_table(store);

	HASH_ADD(hh, store->keys, name, sizeof(key->name), key);
	account(store, table, store_table(store));
	if (HASH_COUNT(store->keys) > before)
		return key;
	key_free(store, key);
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

static void forget_oldest(struct key_store *store)
{
	forget(store, store->keys);
	store->forgotten++;
}

/* False: the key is too large. One may be said to stand for any number of tokens. */
static bool make_room(struct key_store *store, uint64_t bytes)
{
	const uint64_t most = store->memory->most / 2;

	if (bytes > most)
		return false;
	if (HASH_COUNT(store->keys) >= store->most)
		forget_oldest(store);
	while (store->keys && store->bytes > most - bytes)
		forget_oldest(store);
	return true;
}

struct key *key_make(struct key_store *store, const struct key_name *name)
{
	struct key *key = key_find(store, name);

	if (key)
		return key;
	if (!make_room(store, heap_bytes(size_of(name->tokens))))
		return NULL;
	key = calloc(1, size_of(name->tokens));
	if (!key)
		return NULL;
	account(store, 0, heap_bytes(size_of(name->tokens)));
	key->name = *name;
	key->loaded = name->kind == R3RING_KEYS_BLOCK_HASH && store->loads_forgotten;
	return insert(store, key);
}

/* Nobody has filled it, but for what is beside its rows. */
static void key_leave(struct key *key)
{
	key->owner = 0;
	key->seen_from = 0;
	key->run = false;
}

static void empty(struct key_store *store, struct key *key)
{
	for (uint32_t i = 0; i < key->name.tokens; i++) {
		row_drop(key->row[i]);
		key->row[i] = NULL;
	}
	others_drop(store, key);
	key_leave(key);
	key->named = false;
}

void key_erase(struct key_store *store, const struct key_name *name, uint64_t weight_version)
{
	struct key *key = look_up(store, name);

	if (name->kind != R3RING_KEYS_BLOCK_HASH) {
		if (key)
			forget(store, key);
		return;
	}
	key = key_make(store, name);
	if (key)
		key_doubt(store, key, weight_version);
}

void key_doubt(struct key_store *store, struct key *key, uint64_t weight_version)
{
	key_fill(store, key, weight_version);
	empty(store, key);
	key->doubtful = true;
}

void key_fill(struct key_store *store, struct key *key, uint64_t weight_version)
{
	if (key->name.kind != R3RING_KEYS_BLOCK_HASH)
		return;
	if (key->filled && key->weight_version != weight_version) {
		store->unsalted = true;
		key->several = true;
		empty(store, key);
	}
	key->filled = true;
	key->weight_version = weight_version;
}

/* Where nothing is in doubt, one that is not there need not be made. */
void key_begin(struct key_store *store, const struct key_name *name)
{
	struct key *key = look_up(store, name);

	if (key || store->unseen || store->loads_forgotten)
		key = key_make(store, name);
	if (!key)
		return;
	empty(store, key);
	key->loaded = false;
	key->filled = false;
	key->several = false;
	key->doubtful = false;
	key->none = store->unseen;
}

void key_load(struct key_store *store, const struct key_name *name, uint64_t weight_version)
{
	struct key *key;

	if (name->kind != R3RING_KEYS_BLOCK_HASH) {
		key_erase(store, name, weight_version);
		return;
	}
	key = key_make(store, name);
	store->loads_forgotten |= !key;
	if (!key)
		return;
	key_fill(store, key, weight_version);
	for (uint32_t i = 0; i < name->tokens; i++)
		key_set(store, key, i, NULL);
	key_leave(key);
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

/* Whether two passes say the same of all cells, also of those that they lost, and of the weights. */
static bool are_alike(const struct row *row, const struct row *other)
{
	if (!row || !other)
		return row == other;
	return row_tile(row)->weight_version == row_tile(other)->weight_version &&
	       !rows_differing(row, other) && !row_has_more(row, other) &&
	       !row_has_more(other, row);
}

/* The row that goes, where it says other than @row and the others do. False: it cannot be kept. */
static bool keep_former(struct key_store *store, struct key *key, uint32_t token,
			const struct row *row)
{
	struct row *former = key->row[token];
	struct key_other *grown;

	if (key->name.kind != R3RING_KEYS_BLOCK_HASH || !former || are_alike(former, row))
		return true;
	for (uint32_t i = 0; i < key->others; i++)
		if (key->other[i].token == token && are_alike(former, key->other[i].row))
			return true;
	grown = key->others < OTHERS_MOST ? realloc(key->other, (key->others + 1) * sizeof(*grown))
					  : NULL;
	if (!grown)
		return false;
	account(store, heap_bytes(key->others * sizeof(*grown)),
		heap_bytes((key->others + 1) * sizeof(*grown)));
	key->other = grown;
	grown[key->others++] = (struct key_other){token, row_hold(former)};
	return true;
}

void key_set(struct key_store *store, struct key *key, uint32_t token, struct row *row)
{
	if (key->doubtful || key->row[token] == row)
		return;
	if (!keep_former(store, key, token, row)) {
		key_doubt(store, key, key->weight_version);
		return;
	}
	row_drop(key->row[token]);
	key->row[token] = row ? row_hold(row) : NULL;
}

bool key_had(const struct key *key, uint32_t token)
{
	for (uint32_t i = 0; i < key->others; i++)
		if (key->other[i].token == token)
			return true;
	return key->row[token] != NULL;
}

void key_store_forget_slots(struct key_store *store)
{
	struct key *key, *next;

	HASH_ITER (hh, store->keys, key, next) {
		if (key->name.kind == R3RING_KEYS_SLOT)
			forget(store, key);
	}
}

static bool is_of(const struct row *row, uint64_t step, uint64_t generation)
{
	return row && row_tile(row)->step == step && row_tile(row)->generation == generation;
}

static bool has_row_of(const struct key *key, uint64_t step, uint64_t generation)
{
	for (uint32_t i = 0; i < key->name.tokens; i++)
		if (is_of(key->row[i], step, generation))
			return true;
	for (uint32_t i = 0; i < key->others; i++)
		if (is_of(key->other[i].row, step, generation))
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
		if (key->name.kind == R3RING_KEYS_BLOCK_HASH)
			key_doubt(store, key, key->weight_version);
		else
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
	store->unseen = 0;
	store->unsalted = false;
	store->hashes_copied = false;
}

void key_store_doubt(struct key_store *store, uint64_t weight_version)
{
	if (!store->unseen || weight_version > store->unseen_weights)
		store->unseen_weights = weight_version;
	store->unseen++;
}

void key_store_shrink(struct key_store *store)
{
	uint32_t some = HASH_COUNT(store->keys) / 8 + 1;

	for (; some && store->keys; some--)
		forget_oldest(store);
}
