/* SPDX-License-Identifier: Apache-2.0 */
/* What spans tell a channel's reader of positions: which pass ran them, or what a cache found. */
#include <stdlib.h>

#include "tests/system/engine_sim/account.h"

static struct sim_seen *seen_of(struct account *account, struct sim_life *life)
{
	struct sim_seen **seen = &life->seen[account->channel->index];

	if (!*seen)
		*seen = calloc(SIM_POSITIONS, sizeof(**seen));
	return *seen;
}

/* New weights over a token whose first pass nobody here knows: that one counts. */
static bool is_recomputed(const struct account *account, const struct sim_seen *seen,
			  const struct sim_row *row)
{
	return (seen->known == SIM_EXTERNAL || seen->known == SIM_UNKNOWN_KEY) &&
	       seen->weights != row->pass.weights &&
	       account->sim->config.policy == R3RING_ROWS_FIRST;
}

static void see(struct account *account, const struct sim_span *span, uint32_t position,
		enum sim_known known, const struct sim_row *row)
{
	struct sim_seen *seen = &seen_of(account, span->life)[position];

	if (seen->row == row && seen->known == known)
		return;
	if (known != SIM_ROW) {
		if (seen->known == SIM_NOTHING)
			*seen = (struct sim_seen){.known = known, .weights = account->weights};
		return;
	}
	if (is_recomputed(account, seen, row)) {
		seen->newest = row;
		seen->elsewhere = false;
		return;
	}
	if (seen->known == SIM_ROW) {
		if (seen->row->pass.weights == row->pass.weights) {
			seen->other = row;
			seen->newest = row;
			seen->elsewhere = false;
			return;
		}
		if (account->sim->config.policy == R3RING_ROWS_FIRST) {
			seen->newest = row;
			seen->elsewhere = false;
			return;
		}
	}
	*seen = (struct sim_seen){.known = SIM_ROW, .row = row};
}

/* The channel's own rows only. */
static const struct sim_row *row_here(const struct account *account, const struct sim_step *step,
				      uint32_t row)
{
	uint32_t begin, valid, end;

	sim_rank_rows(account->sim, account->channel, step, &begin, &valid, &end);
	return row >= begin && row < valid ? &step->row[row] : NULL;
}

/* Whether a step was told in this generation, and all that was told since. */
static bool nothing_was_lost_since(const struct account *account, const struct sim_life *life,
				   const struct sim_step *step, const struct sim_step *now)
{
	uint32_t index = account->channel->index;

	return !life->torn[index] ||
	       (step->number > life->torn_step[index] &&
		step->told[index]->generation == now->told[index]->generation);
}

/* What a reader knows to be in KV at a position. Where something was lost since, it may have
 * been run again unseen; what has a hash of these weights, not under others. */
static const struct sim_row *row_in_kv(const struct account *account, const struct sim_life *life,
				       const struct sim_seen *seen, const struct sim_step *now)
{
	const struct sim_row *row = seen->newest ? seen->newest : seen->row;

	if (seen->elsewhere || (!seen->newest && seen->known != SIM_ROW))
		return NULL;
	if (!nothing_was_lost_since(account, life, row->step, now) &&
	    (account->sim->config.key_kind == R3RING_KEYS_SLOT ||
	     row->pass.weights != account->weights))
		return NULL;
	return row;
}

static void keys_set(struct account *account, const struct sim_step *step,
		     const struct sim_span *span, uint32_t counted)
{
	const uint32_t tokens = account->sim->config.block_tokens;
	uint32_t first = span->told.position / tokens * tokens;

	for (uint32_t i = 0; i < span->told.keys; i++, first += tokens) {
		struct behind *behind = account_key(account, step, step->key[span->first_key + i]);
		bool own = behind->owner == span->life && behind->position == first;

		account_key_fill(account, behind, step->told[account->channel->index], span->late);
		behind->owner = span->life;
		behind->position = first;
		for (uint32_t token = 0; token < tokens; token++) {
			uint32_t position = first + token;
			uint32_t place = position - span->told.position;
			const struct sim_seen *seen = &seen_of(account, span->life)[position];

			if (position >= span->told.position && place < span->told.rows)
				account_key_set(account, behind, token,
						place < counted ? row_here(account, step,
									   span->told.row + place)
								: NULL,
						own);
			else if (own && position < span->told.position)
				continue;
			else if (seen->elsewhere &&
				 account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH)
				behind->elsewhere |= 1u << token;
			else
				account_key_set(account, behind, token,
						row_in_kv(account, span->life, seen, step), own);
		}
		behind->named = true;
	}
}

/* Another shard ran the row again. */
static void ran_elsewhere(struct sim_seen *seen)
{
	seen->elsewhere = seen->known != SIM_NOTHING;
}

void account_compute(struct account *account, const struct sim_step *step,
		     const struct sim_span *span, bool unknown)
{
	uint32_t counted = span->told.flags & R3RING_SPAN_DRAFT ? span->told.accepted
								: span->told.rows;

	if (unknown)
		counted = 0;
	for (uint32_t i = 0; i < counted; i++) {
		const struct sim_row *row = row_here(account, step, span->told.row + i);

		if (row)
			see(account, span, span->told.position + i, SIM_ROW, row);
		else
			ran_elsewhere(&seen_of(account, span->life)[span->told.position + i]);
	}
	for (uint32_t i = 0; unknown && i < span->told.rows; i++)
		see(account, span, span->told.position + i, SIM_NO_SPANS, NULL);
	/* Which blocks are full, and so what their hashes are, depends on what was accepted. */
	if (!unknown || account->sim->config.key_kind == R3RING_KEYS_SLOT)
		keys_set(account, step, span, counted);
}

static void see_others(struct account *account, const struct sim_span *span, uint32_t position,
		       const struct behind *behind)
{
	struct sim_seen *seen = &seen_of(account, span->life)[position];
	const uint32_t token = position % account->sim->config.block_tokens;

	if (seen->row != behind->row[token])
		return;
	seen->eithers = 0;
	for (uint32_t i = 0; i < behind->others; i++) {
		if (behind->other[i].token != token)
			continue;
		if (seen->eithers == SIM_EITHER)
			sim_fault(account->sim, "more passes under one hash than are noted");
		else
			seen->either[seen->eithers++] = behind->other[i].row;
	}
}

void account_look_up(struct account *account, const struct sim_step *step,
		     const struct sim_span *span)
{
	const uint32_t tokens = account->sim->config.block_tokens;
	bool cached = span->told.kind == R3RING_SPAN_CACHED;

	for (uint32_t i = 0; i < span->told.rows; i++) {
		uint32_t position = span->told.position + i;
		uint32_t key = position / tokens - span->told.position / tokens;
		const struct behind *behind = NULL;
		const struct sim_row *row;

		if (cached && key < span->told.keys)
			behind = account_key_only(account, step->key[span->first_key + key]);
		row = behind && behind->seen_from <= step->told[account->channel->index]->at
			      ? account_key_row(account, behind, position % tokens)
			      : NULL;
		see(account, span, position,
		    row      ? SIM_ROW
		    : cached ? SIM_UNKNOWN_KEY
			     : SIM_EXTERNAL,
		    row);
		if (row)
			see_others(account, span, position, behind);
	}
}
