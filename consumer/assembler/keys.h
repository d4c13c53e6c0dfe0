/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies behind the keys of a prefix cache: block hashes or KV slots, each with
 * the rows of its tokens, of one weight version. Bounded; forgets what was not used for
 * longest. An unknown key is a missing row, never another's.
 */
#ifndef CONSUMER_ASSEMBLER_KEYS_H
#define CONSUMER_ASSEMBLER_KEYS_H

#include <stdint.h>

#include <uthash.h>

#include "consumer/assembler/rows.h"

struct key_name {
	uint64_t key;
	uint64_t weight_version; /* of hashes; a slot has one content, whatever it is of */
	uint32_t kind;           /* enum r3ring_key_kind */
	uint32_t tokens;         /* that it stands for */
};

struct key {
	struct key_name name;
	uint64_t owner;    /* serial number of the attempt that filled it last, 0: a copy */
	uint64_t position; /* of its first token in that attempt */
	UT_hash_handle hh; /* in the order of use, oldest first */
	struct row *row[]; /* [tokens] NULL: missing */
};

struct key_store {
	struct key *keys;
	uint64_t most;
	uint64_t forgotten; /* for want of room */
};

/* The key's rows, or NULL. Finding one is using it. */
struct key *key_find(struct key_store *store, const struct key_name *name);
/* The key, emptied when it is new; NULL when memory is out (it is unknown then). */
struct key *key_make(struct key_store *store, const struct key_name *name);
void key_erase(struct key_store *store, const struct key_name *name);
/* @row may be NULL; takes a reference of its own. */
void key_set(struct key *key, uint32_t token, struct row *row);

/* Slots are used again without being told where records are lost; hashes are not. */
void key_store_forget_slots(struct key_store *store);
/* Forgets the keys that hold a row of the step. Returns how many. */
uint32_t key_store_forget_step(struct key_store *store, uint64_t step, uint64_t generation);
void key_store_clear(struct key_store *store);
/* Forgets an eighth of them, those not used for longest. */
void key_store_shrink(struct key_store *store);

#endif
