/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies behind the keys of a prefix cache: block hashes or KV slots, each with
 * the rows of its tokens. Bounded; forgets what was not used
 * for longest. An unknown key is a missing row, never another's.
 */
#ifndef CONSUMER_ASSEMBLER_KEYS_H
#define CONSUMER_ASSEMBLER_KEYS_H

#include <stdint.h>

#include <uthash.h>

#include "consumer/assembler/memory.h"
#include "consumer/assembler/rows.h"

struct key_name {
	uint64_t key;
	uint32_t kind;   /* enum r3ring_key_kind */
	uint32_t tokens; /* that it stands for */
};

/* A former pass over a token of a hash, which said something else than the last one, or less, or ran
 * under other weights. */
struct key_other {
	uint32_t token;
	struct row *row;
};

struct key {
	struct key_name name;
	uint64_t owner;     /* serial number of the attempt that filled it last, 0: a copy */
	uint64_t position;  /* of its first token in that attempt */
	uint64_t seen_from; /* see key_seen() */
	uint64_t none;      /* of a hash: as `unseen` was when the engine had no block of it last */
	bool loaded;        /* of a hash: from elsewhere, or that may be, and not run here since */
	bool run;           /* of a hash: and nothing was loaded since */
	bool filled;        /* of a hash: or loaded, the last time under */
	uint64_t weight_version;
	bool several;  /* and before under another: nobody knows of which one a block is found */
	bool named;    /* of a hash: by a step that ran it, ever */
	bool doubtful; /* of a hash: of a pass under it nobody knows what it came to */
	struct key_other *other; /* [others] */
	uint32_t others;
	UT_hash_handle hh; /* in the order of use, oldest first */
	struct row *row[]; /* [tokens] NULL: missing */
};

struct key_store {
	struct key *keys;
	uint64_t most;
	struct memory *memory; /* of the assembler, */
	uint64_t bytes;        /* and what keys take of it, their rows aside: half at most */
	uint64_t forgotten;    /* for want of room */
	bool loads_forgotten;  /* what is not known any more may have been loaded from elsewhere */
	uint64_t unseen;       /* how often blocks may have been run, or loaded, that nobody saw, */
	uint64_t unseen_weights; /* under these weights at the newest */
	bool unsalted;           /* a hash was filled under several weights: new ones change none */
	bool hashes_copied;
};

/* The key's rows, or NULL. Finding one is using it. */
struct key *key_find(struct key_store *store, const struct key_name *name);
/* The key, emptied when it is new; NULL when memory is out, or it is too large (it is unknown
 * then). */
struct key *key_make(struct key_store *store, const struct key_name *name);
/* What is behind it is not known any more; of a hash it is still known whether it was loaded, and
 * which weights ran it, to which the version is added. Nor will it be: what was run under a hash
 * may be found later as well. */
void key_erase(struct key_store *store, const struct key_name *name, uint64_t weight_version);
/* The engine has no block of the hash any more: what a cache finds later is filled from now on. */
void key_begin(struct key_store *store, const struct key_name *name);
/* Nor will it be until it is run here. */
void key_load(struct key_store *store, const struct key_name *name, uint64_t weight_version);
/* The key is filled under the weights: what others left behind a hash goes. */
void key_fill(struct key_store *store, struct key *key, uint64_t weight_version);
/* Whether what is behind it is all that a cache may find for it: whatever weights a step has that finds
 * it, the block is of those that it ran under. */
static inline bool key_is_known(const struct key *key)
{
	return key->name.kind != R3RING_KEYS_BLOCK_HASH || (!key->several && !key->doubtful);
}
/* Blocks may have been run that nobody saw, of any hash that there is under these weights, and those
 * before. */
void key_store_doubt(struct key_store *store, uint64_t weight_version);
/* Whether all that a cache may find for the key was seen: the engine had no block of it since something
 * was not, or it was filled under newer weights than that and names another content. */
static inline bool key_store_saw(const struct key_store *store, const struct key *key)
{
	return key->name.kind != R3RING_KEYS_BLOCK_HASH || key->none == store->unseen ||
	       (!store->unsalted && key->weight_version > store->unseen_weights);
}
/* A pass under the hash, and these weights, came to nobody knows what. */
void key_doubt(struct key_store *store, struct key *key, uint64_t weight_version);
/*
 * A step ran the key's tokens, which the cache may find from @told on, the record that
 * names the key; the step's own is @step. Where something loaded from elsewhere, or nothing
 * that is known, was behind the hash until now, nobody can tell which of the two is found
 * before that, by the same step in particular.
 */
void key_ran(struct key *key, uint64_t step, uint64_t told);
/* Whether a step whose own record is @step may have found what is behind the key. */
static inline bool key_seen(const struct key *key, uint64_t step)
{
	return step >= key->seen_from;
}
/*
 * @row may be NULL; takes a reference of its own. Two blocks of one hash may be in KV, and
 * nobody tells which is found: what a former pass said otherwise, or lost, is kept beside the
 * row, and where there were too many passes nothing is known.
 */
void key_set(struct key_store *store, struct key *key, uint32_t token, struct row *row);
/* Whether a pass over the token, the last or a former one, had a row of it here. */
bool key_had(const struct key *key, uint32_t token);

/* Slots are used again without being told where records are lost; hashes are not. */
void key_store_forget_slots(struct key_store *store);
/* What is behind keys that hold a row of the step is not known any more. Returns how many. */
uint32_t key_store_forget_step(struct key_store *store, uint64_t step, uint64_t generation);
void key_store_clear(struct key_store *store);
/* Of a generation that nothing is known of yet. */
void key_store_begin(struct key_store *store);
/* Forgets an eighth of them, those not used for longest. */
void key_store_shrink(struct key_store *store);

#endif
