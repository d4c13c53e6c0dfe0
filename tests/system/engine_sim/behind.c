/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies behind the keys of a prefix cache, as far as a channel's reader knows: of a hash all passes
 * under it, since nobody tells which block is found.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/system/engine_sim/account.h"

static uint64_t weights_of_key(const struct account *account, const struct sim_step *step)
{
	return account->sim->config.key_kind == R3RING_KEYS_SLOT ? 0 : step->weights;
}

static struct behind *behind_find(struct account *account, uint64_t key, uint64_t weights)
{
	for (uint32_t i = 0; i < account->keys; i++)
		if (account->behind[i].key == key && account->behind[i].weights == weights)
			return &account->behind[i];
	return NULL;
}

const struct behind *account_key_only(struct account *account, uint64_t key)
{
	const struct behind *only = NULL;

	for (uint32_t i = 0; i < account->keys; i++) {
		if (account->behind[i].key != key)
			continue;
		if (only)
			return NULL;
		only = &account->behind[i];
	}
	return only;
}

static struct behind *behind_make(struct account *account, uint64_t key, uint64_t weights)
{
	struct behind *found = behind_find(account, key, weights);

	if (found)
		return found;
	if (account->keys == account->room) {
		account->room = account->room ? 2 * account->room : 64;
		account->behind =
			realloc(account->behind, account->room * sizeof(*account->behind));
	}
	found = &account->behind[account->keys++];
	*found = (struct behind){.key = key, .weights = weights};
	return found;
}

/* Whether it was filled under other weights: which one a cache finds nobody knows. */
static bool fills_others(const struct account *account, uint64_t key, uint64_t weights)
{
	for (uint32_t i = 0; i < account->keys; i++)
		if (account->behind[i].key == key && account->behind[i].filled &&
		    account->behind[i].weights != weights)
			return true;
	return false;
}

void account_keys_forget_slots(struct account *account)
{
	if (account->sim->config.key_kind == R3RING_KEYS_SLOT)
		account->keys = 0;
}

static void behind_forget(struct account *account, uint64_t key)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < account->keys; i++)
		if (account->behind[i].key != key)
			account->behind[kept++] = account->behind[i];
		else
			free(account->behind[i].other);
	account->keys = kept;
}

void account_key_miss(struct account *account, uint64_t key)
{
	behind_forget(account, key);
	account->miss = realloc(account->miss, (account->misses + 1) * sizeof(*account->miss));
	account->miss[account->misses++] = (struct miss){key, account->unseen};
}

static bool was_missed_since(const struct account *account, uint64_t key)
{
	for (uint32_t i = 0; i < account->misses; i++)
		if (account->miss[i].key == key && account->miss[i].unseen == account->unseen)
			return true;
	return false;
}

static void behind_keep(struct behind *behind, uint32_t token)
{
	if (!behind->row[token])
		return;
	behind->other = realloc(behind->other, (behind->others + 1) * sizeof(*behind->other));
	behind->other[behind->others++] = (struct other){token, behind->row[token]};
	behind->row[token] = NULL;
}

/* That a hash was loaded from elsewhere is known until it is run here. The hashes of a span
 * that the host learned of later are told with it only. */
void account_keys_erase(struct account *account, const struct sim_step *step,
			const struct sim_span *span)
{
	const bool hash = account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH;
	const bool loaded = hash && span->told.kind == R3RING_SPAN_EXTERNAL;

	if (hash && span->late && !step->told[account->channel->index]->late_map)
		return;
	for (uint32_t i = 0; i < span->told.keys; i++) {
		uint64_t key = step->key[span->first_key + i];
		uint64_t weights = weights_of_key(account, step);
		struct behind *found = behind_make(account, key, weights);

		for (uint32_t token = 0; hash && token < SIM_BLOCK_TOKENS; token++)
			behind_keep(found, token);
		account->unsalted |= hash && fills_others(account, key, weights);
		*found = (struct behind){
			.key = key,
			.weights = weights,
			.loaded = loaded || found->loaded,
			.filled = true,
			.named = found->named,
			.doubtful = found->doubtful || (hash && !loaded),
			.elsewhere = hash ? found->elsewhere : 0,
			.other = found->other,
			.others = found->others,
		};
	}
}

/*
 * What a step ran the cache finds from that step on, or from where the host had learned of
 * it. Where the hash stood for something else before, that may be what the same step found,
 * unless it is known to be a pass over the same tokens.
 */
static void behind_run(const struct account *account, struct behind *behind,
		       const struct sim_told *told, bool late)
{
	uint32_t from = 0;

	if (account->sim->config.key_kind != R3RING_KEYS_BLOCK_HASH ||
	    (behind->run && behind->seen_from <= told->at))
		return;
	if (late)
		from = told->late_at;
	else if (behind->loaded || behind->run)
		from = told->at + 1;
	if (!behind->run || from < behind->seen_from)
		behind->seen_from = from;
	behind->run = true;
	behind->loaded = false;
}

void account_keys_copy(struct account *account, const struct sim_heard *heard)
{
	for (uint32_t i = 0; i < heard->pairs; i++) {
		struct behind *to = behind_make(account, heard->pair[i].to, 0);
		struct behind *from = behind_find(account, heard->pair[i].from, 0);
		struct behind made = {.key = heard->pair[i].to};

		if (from)
			memcpy(made.row, from->row, sizeof(made.row));
		*to = made;
	}
}

struct behind *account_key(struct account *account, const struct sim_step *step, uint64_t key)
{
	return behind_make(account, key, weights_of_key(account, step));
}

void account_key_fill(struct account *account, struct behind *behind, const struct sim_told *told,
		      bool late)
{
	behind->filled = true;
	account->unsalted |= account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH &&
			     fills_others(account, behind->key, behind->weights);
	behind_run(account, behind, told, late);
}

/* Whether a pass over the token, the last or a former one, had a row here. */
static bool had_row(const struct behind *behind, uint32_t token)
{
	for (uint32_t i = 0; i < behind->others; i++)
		if (behind->other[i].token == token)
			return true;
	return behind->row[token];
}

/* Where one pass under a hash has a row and another has none, that was lost, or is another rank's. */
void account_key_set(const struct account *account, struct behind *behind, uint32_t token,
		     const struct sim_row *row, bool own)
{
	const bool had = had_row(behind, token);

	if (account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH && behind->row[token] != row) {
		behind->doubtful |= behind->named && had != (row != NULL) && (had || !own);
		behind_keep(behind, token);
	}
	behind->row[token] = row;
}

/* What a cache finds of a token: nobody knows which of two passes, and what they have in common is
 * all that is known. */
const struct sim_row *account_key_row(const struct account *account, const struct behind *behind,
				      uint32_t token)
{
	const struct sim_row *row = behind->row[token];

	if (account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH && account->unseen &&
	    !was_missed_since(account, behind->key) &&
	    (account->unsalted || behind->weights <= account->unseen_weights))
		return NULL;
	for (uint32_t i = 0; row && i < behind->others; i++)
		if (behind->other[i].token == token &&
		    behind->other[i].row->pass.weights != row->pass.weights)
			return NULL;
	return behind->doubtful || (behind->elsewhere >> token) & 1 ? NULL : row;
}

void account_keys_free(struct account *account)
{
	for (uint32_t i = 0; i < account->keys; i++)
		free(account->behind[i].other);
	free(account->behind);
	free(account->miss);
}
