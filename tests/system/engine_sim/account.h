/* SPDX-License-Identifier: Apache-2.0 */
/* What a channel's reader knows while what it heard is walked through: account.c and its parts. */
#ifndef ENGINE_SIM_ACCOUNT_H
#define ENGINE_SIM_ACCOUNT_H

#include "tests/system/engine_sim/sim.h"

/* What lies behind a key, as far as a reader knows. */
struct behind {
	uint64_t key, weights;
	const struct sim_life *owner;
	uint32_t position;
	bool loaded, run;   /* of a hash, last */
	bool filled;        /* of a hash: run under these weights, or loaded under them, ever */
	bool named;         /* of a hash: by who ran it, ever */
	bool doubtful;      /* of a hash: nobody knows what a pass came to, */
	uint32_t elsewhere; /* or of these tokens, a bit each, which another rank ran again */
	uint32_t seen_from; /* what was heard, from which on the cache may find what was run */
	const struct sim_row *row[SIM_BLOCK_TOKENS];
	struct other *other; /* [others] former passes of a hash */
	uint32_t others;
};

struct other {
	uint32_t token;
	const struct sim_row *row;
};

/* A hash that the engine had no block of, when so often blocks had been run unseen. */
struct miss {
	uint64_t key;
	uint32_t unseen;
};

struct account {
	struct sim *sim;
	struct sim_channel *channel;
	bool ready;
	uint64_t weights;      /* of the step */
	uint64_t settled;      /* its number */
	uint64_t last;         /* and, of this generation, or 0; */
	uint64_t last_weights; /* and of any */
	bool steady;     /* no others came since all that live were named, or the first step */
	uint32_t unseen; /* how often blocks may have been run that nobody saw, */
	uint64_t unseen_weights; /* under these weights at the newest */
	bool unsalted;           /* hashes were filled under several */
	struct behind *behind;
	uint32_t keys, room;
	struct miss *miss; /* [misses] */
	uint32_t misses;
};

/* behind.c: what lies behind keys */
struct behind *account_key(struct account *account, const struct sim_step *step, uint64_t key);
/* What a cache finds under the key, whatever the weights of the step are: NULL where it may be of several. */
const struct behind *account_key_only(struct account *account, uint64_t key);
/* What a cache finds of a token, as far as the reader knows. */
const struct sim_row *account_key_row(const struct account *account, const struct behind *behind,
				      uint32_t token);
/* A step fills the block, which the cache finds from that step on, or from where the host had learned of it. */
void account_key_fill(struct account *account, struct behind *behind, const struct sim_told *told,
		      bool late);
/* @own: of the same attempt at the same place as before. */
void account_key_set(const struct account *account, struct behind *behind, uint32_t token,
		     const struct sim_row *row, bool own);
/* Who ran the span nobody knows, or it was loaded from elsewhere. */
void account_keys_erase(struct account *account, const struct sim_step *step,
			const struct sim_span *span);
void account_keys_copy(struct account *account, const struct sim_heard *heard);
/* The engine has no block of the hash: whatever was behind it is gone. */
void account_key_miss(struct account *account, uint64_t key);
void account_keys_forget_slots(struct account *account);
void account_keys_free(struct account *account);

/* spans.c: what they tell of positions; @unknown: how many drafts were accepted never came */
void account_compute(struct account *account, const struct sim_step *step,
		     const struct sim_span *span, bool unknown);
void account_look_up(struct account *account, const struct sim_step *step,
		     const struct sim_span *span);

/* settle.c: a step, once all is told of it */
void account_settle(struct account *account, const struct sim_step *step);
/* Something of the time of the life was lost, behind the newest step. */
void account_tear(const struct account *account, struct sim_life *life);

#endif
