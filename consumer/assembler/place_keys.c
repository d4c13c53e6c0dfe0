/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a prefix cache: what spans set behind them, erase, and find. */
#include <string.h>

#include "consumer/assembler/placing.h"

static struct key_name name_of(uint64_t key, uint32_t kind, uint32_t tokens)
{
	struct key_name name;

	memset(&name, 0, sizeof(name));
	name.key = key;
	name.kind = kind;
	name.tokens = tokens;
	return name;
}

static struct key_name name_in_step(const struct step *step, uint64_t key)
{
	return name_of(key, step->head.key_kind, step->head.tokens_per_key);
}

/* Position of the first token of the span's key @i. */
static uint64_t key_position(const struct placing *placing, uint32_t i)
{
	uint32_t tokens = placing->step->head.tokens_per_key;

	return ((uint64_t)placing->span->position / tokens + i) * tokens;
}

/* What is in KV at a position that this span did not run. It may have been run again unseen
 * where records were lost since; a hash tells that it was not under other weights. */
static struct row *row_in_kv(const struct placing *placing, uint64_t position)
{
	const struct r3ring_step_record *head = &placing->step->head;
	const struct channel *channel = placing->channel;
	const struct attempt *attempt = placing->attempt;
	struct row *row = attempt_newest(attempt, (uint32_t)position);
	const struct tile *tile = row ? row_tile(row) : NULL;
	bool doubtful = tile && attempt->torn &&
			(tile->generation != channel->generation ||
			 (attempt->torn_era == channel->era && tile->step <= attempt->torn_step));

	/* What was run again since is not what a cache found. */
	if (row && row == attempt_row(attempt, (uint32_t)position) &&
	    attempt_found_either(attempt, (uint32_t)position))
		return NULL;
	if (doubtful &&
	    (head->key_kind == R3RING_KEYS_SLOT || tile->weight_version != head->weight_version))
		return NULL;
	return row;
}

/* One of the block's tokens. Where one pass under a hash has a row here and another has none, that
 * was lost, or another rank's. */
static void set_token(const struct placing *placing, struct key *key, uint32_t token,
		      struct row *row, bool own)
{
	struct key_store *keys = &placing->channel->keys;
	const bool ran_before = key->name.kind == R3RING_KEYS_BLOCK_HASH && key->named;
	const bool had = ran_before && key_had(key, token);

	if (ran_before && had != (row != NULL) && (had || !own))
		key_doubt(keys, key, placing->step->head.weight_version);
	else
		key_set(keys, key, token, row);
}

/* Tokens of the block that this span did not run are the request's own, or those that
 * the key had of it already; or they are still to come. */
static void set_key(const struct placing *placing, uint32_t i)
{
	const struct key_name name = name_in_step(placing->step, placing->key[i]);
	const struct r3ring_span *span = placing->span;
	const uint64_t end = (uint64_t)span->position + span->rows;
	struct key *key = key_make(&placing->channel->keys, &name);
	uint64_t first = key_position(placing, i);
	bool own;

	if (!key)
		return;
	key_fill(&placing->channel->keys, key, placing->step->head.weight_version);
	key_ran(key, placing->step->seq, placing->since);
	own = key->owner == placing->attempt->serial && key->position == first;
	key->owner = placing->attempt->serial;
	key->position = first;
	for (uint32_t token = 0; token < name.tokens; token++) {
		const uint64_t position = first + token;
		const bool ran = position >= span->position && position < end;
		struct row *row = ran ? placing_row(placing, (uint32_t)(position - span->position))
				      : row_in_kv(placing, position);

		if (position >= end ? row || name.kind != R3RING_KEYS_BLOCK_HASH : ran || !own)
			set_token(placing, key, token, row, own);
	}
	key->named = true;
}

void placing_set_keys(const struct placing *placing)
{
	for (uint32_t i = 0; placing->step->head.tokens_per_key && i < placing->span->keys; i++)
		set_key(placing, i);
}

void placing_erase_keys(const struct placing *placing)
{
	for (uint32_t i = 0; i < placing->span->keys; i++) {
		const struct key_name name = name_in_step(placing->step, placing->key[i]);

		if (placing->span->kind == R3RING_SPAN_EXTERNAL)
			key_load(&placing->channel->keys, &name,
				 placing->step->head.weight_version);
		else
			key_erase(&placing->channel->keys, &name,
				  placing->step->head.weight_version);
	}
}

void keys_begin(struct channel *channel, const struct step *step)
{
	const uint64_t *key = step->map.key;

	if (step->head.key_kind != R3RING_KEYS_BLOCK_HASH)
		return;
	for (uint32_t i = 0; i < step->map.spans; key += step->map.span[i++].keys) {
		const struct r3ring_span *span = &step->map.span[i];

		for (uint32_t j = 0; span_is_miss(span) && j < span->keys; j++) {
			const struct key_name name = name_in_step(step, key[j]);

			key_begin(&channel->keys, &name);
		}
	}
}

struct key *placing_cached_key(const struct placing *placing, uint32_t i)
{
	uint32_t tokens = placing->step->head.tokens_per_key;
	uint32_t position = placing->span->position + i;
	uint32_t index;
	struct key_name name;
	struct key *key;

	if (!placing->span->keys || !tokens)
		return NULL;
	index = position / tokens - placing->span->position / tokens;
	if (index >= placing->span->keys)
		return NULL;
	name = name_in_step(placing->step, placing->key[index]);
	key = key_find(&placing->channel->keys, &name);
	return key && key_is_known(key) && key_store_saw(&placing->channel->keys, key) &&
			       key_seen(key, placing->step->seq)
		       ? key
		       : NULL;
}

/* @from may be NULL. */
static void key_copy(struct key_store *keys, struct key *to, const struct key *from)
{
	for (uint32_t i = 0; from && i < from->others; i++)
		key_set(keys, to, from->other[i].token, from->other[i].row);
	for (uint32_t token = 0; token < to->name.tokens; token++)
		key_set(keys, to, token, from ? from->row[token] : NULL);
}

void keys_copy(struct channel *channel, const struct r3ring_record *record, uint64_t weight_version)
{
	const struct r3ring_key_copy_record *head = &record->u.key_copy.head;

	channel->keys.hashes_copied |= head->key_kind == R3RING_KEYS_BLOCK_HASH;
	for (uint32_t i = 0; i < head->pairs; i++) {
		struct key_name name = name_of(record->u.key_copy.pairs[i].to, head->key_kind,
					       head->tokens_per_key);
		struct key *from, *to;

		to = key_make(&channel->keys, &name);
		name.key = record->u.key_copy.pairs[i].from;
		from = key_find(&channel->keys, &name);
		if (!to || to == from)
			continue;
		if (from && !(key_is_known(from) && key_store_saw(&channel->keys, from)))
			from = NULL;
		key_fill(&channel->keys, to, from ? from->weight_version : weight_version);
		to->owner = 0;
		to->named = true;
		if (!from && name.kind == R3RING_KEYS_BLOCK_HASH)
			key_doubt(&channel->keys, to, weight_version);
		key_copy(&channel->keys, to, from);
	}
}
