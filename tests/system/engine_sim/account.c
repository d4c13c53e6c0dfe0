/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader can know, by what was delivered to it: the contract of the records, walked
 * through once more and slowly, over what the simulation knows of each step. No ids.
 */
#include <stdlib.h>
#include <string.h>

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

bool sim_cell_told(const struct sim *sim, const struct sim_channel *channel,
		   const struct sim_row *row, uint32_t layer)
{
	const struct sim_told *told = row->step->told[channel->index];

	return told && ((told->rows[layer] >> row->number) & 1) && !told->cause[layer] &&
	       !sim_row_is_bad(&sim->config, row, layer);
}

/* ---- keys --------------------------------------------------------------- */

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

/* What a cache finds under the key, whatever the weights of the step are: NULL where it may be of several. */
static const struct behind *behind_only(struct account *account, uint64_t key)
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

static void forget_slots(struct account *account)
{
	if (account->sim->config.key_kind == R3RING_KEYS_SLOT)
		account->keys = 0;
}

/* Whatever was behind it is gone. */
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

static void note_miss(struct account *account, uint64_t key)
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
static void keys_erase(struct account *account, const struct sim_step *step,
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

static void copy(struct account *account, const struct sim_heard *heard)
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

/* ---- positions ---------------------------------------------------------- */

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

/* ---- spans -------------------------------------------------------------- */

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

/* Whether a pass over the token, the last or a former one, had a row here. */
static bool had_row(const struct behind *behind, uint32_t token)
{
	for (uint32_t i = 0; i < behind->others; i++)
		if (behind->other[i].token == token)
			return true;
	return behind->row[token];
}

/* Where one pass under a hash has a row and another has none, that was lost, or is another rank's. */
static void token_set(const struct account *account, struct behind *behind, uint32_t token,
		      const struct sim_row *row, bool own)
{
	const bool had = had_row(behind, token);

	if (account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH && behind->row[token] != row) {
		behind->doubtful |= behind->named && had != (row != NULL) && (had || !own);
		behind_keep(behind, token);
	}
	behind->row[token] = row;
}

static void keys_set(struct account *account, const struct sim_step *step,
		     const struct sim_span *span, uint32_t counted)
{
	const uint32_t tokens = account->sim->config.block_tokens;
	uint32_t first = span->told.position / tokens * tokens;

	for (uint32_t i = 0; i < span->told.keys; i++, first += tokens) {
		struct behind *behind = behind_make(account, step->key[span->first_key + i],
						    weights_of_key(account, step));
		bool own = behind->owner == span->life && behind->position == first;

		behind->filled = true;
		account->unsalted |= account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH &&
				     fills_others(account, behind->key, behind->weights);
		behind_run(account, behind, step->told[account->channel->index], span->late);
		behind->owner = span->life;
		behind->position = first;
		for (uint32_t token = 0; token < tokens; token++) {
			uint32_t position = first + token;
			uint32_t place = position - span->told.position;
			const struct sim_seen *seen = &seen_of(account, span->life)[position];

			if (position >= span->told.position && place < span->told.rows)
				token_set(account, behind, token,
					  place < counted
						  ? row_here(account, step, span->told.row + place)
						  : NULL,
					  own);
			else if (own && position < span->told.position)
				continue;
			else if (seen->elsewhere &&
				 account->sim->config.key_kind == R3RING_KEYS_BLOCK_HASH)
				behind->elsewhere |= 1u << token;
			else
				token_set(account, behind, token,
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

static void span_compute(struct account *account, const struct sim_step *step,
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

/* What a cache finds of a token: nobody knows which of two passes, and what they have in common is
 * all that is known. */
static const struct sim_row *row_found(const struct account *account, const struct behind *behind,
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

static void span_look_up(struct account *account, const struct sim_step *step,
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
			behind = behind_only(account, step->key[span->first_key + key]);
		row = behind && behind->seen_from <= step->told[account->channel->index]->at
			      ? row_found(account, behind, position % tokens)
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

/* ---- a step ------------------------------------------------------------- */

enum phase { ERASE, COMPUTE, LOOK_UP };

static void life_tear(const struct account *account, struct sim_life *life)
{
	life->open[account->channel->index] = true;
	life->torn[account->channel->index] = true;
	life->torn_step[account->channel->index] = account->settled;
}

static void step_phase(struct account *account, const struct sim_step *step, bool nowhere,
		       enum phase phase)
{
	const struct sim_told *told = step->told[account->channel->index];

	for (uint32_t i = 0; i < step->spans; i++) {
		const struct sim_span *span = &step->span[i];
		bool known = span->life->named[account->channel->index] && !nowhere;

		if (!((told->spans >> i) & 1))
			continue;

		if (phase == ERASE && ((!known && span->told.kind != R3RING_SPAN_CACHED) ||
				       span->told.kind == R3RING_SPAN_EXTERNAL))
			keys_erase(account, step, span);
		if (nowhere)
			life_tear(account, span->life);
		if (!known)
			continue;
		span->life->open[account->channel->index] = false;
		if (phase == COMPUTE && span->told.kind == R3RING_SPAN_COMPUTED)
			span_compute(account, step, span, span->late && !told->late_map);
		if (phase == LOOK_UP && span->told.kind != R3RING_SPAN_COMPUTED)
			span_look_up(account, step, span);
	}
}

static bool map_is_known(const struct sim_step *step, const struct sim_told *told)
{
	bool late = false;

	for (uint32_t i = 0; i < step->spans; i++)
		late |= step->span[i].late;
	return told->whole_map && (told->late_map || !late);
}

/* Whether the engine ran what its reader was not told of until now: steps are numbered one by one. */
static bool ran_unseen(const struct account *account, const struct sim_step *step)
{
	const struct sim_told *told = step->told[account->channel->index];

	return !account->ready || step->number != account->last + 1 ||
	       (!account->last && told->continues) || !map_is_known(step, told);
}

static bool is_miss(const struct sim_span *span)
{
	return span->told.kind == R3RING_SPAN_CACHED && !span->told.rows;
}

static void hear_misses(struct account *account, const struct sim_step *step)
{
	for (uint32_t i = 0; i < step->spans; i++)
		for (uint32_t j = 0; is_miss(&step->span[i]) && j < step->span[i].told.keys; j++)
			note_miss(account, step->key[step->span[i].first_key + j]);
}

/* What runs on from before a loss may have been run from the beginning again in it. */
static void weights_follow(struct account *account, const struct sim_step *step)
{
	const uint32_t index = account->channel->index;
	struct sim *sim = account->sim;
	const bool first = !account->last && !step->told[index]->continues;
	const bool same = first ? step->number == 1 : step->weights == account->last_weights;

	account->last_weights = step->weights;
	if (same)
		return;
	account->steady = false;
	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++) {
			struct sim_life *life = sim->request[i].life[j];

			life->renewed[index] |= life->open[index] &&
						(life->named[index] || life->waits[index]);
		}
}

static void step_settle(struct account *account, const struct sim_step *step)
{
	const struct sim_told *told = step->told[account->channel->index];
	bool nowhere = step->positions_late && !told->late_map;

	if (ran_unseen(account, step)) {
		account->unseen++;
		account->unseen_weights = step->weights;
	}
	weights_follow(account, step);
	account->last = step->number;
	if (!account->ready)
		return;
	account->weights = step->weights;
	account->settled = step->number;
	if (nowhere || !told->whole_map)
		forget_slots(account);
	if (map_is_known(step, told))
		hear_misses(account, step);
	for (enum phase phase = ERASE; phase <= LOOK_UP; phase++)
		step_phase(account, step, nowhere, phase);
}

/* ---- a channel ---------------------------------------------------------- */

static void forget_names(struct account *account, uint32_t but_keyframe)
{
	struct sim *sim = account->sim;
	uint32_t index = account->channel->index;

	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++) {
			struct sim_life *life = sim->request[i].life[j];

			if (but_keyframe && life->keyframe[index] == but_keyframe)
				continue;
			/* Its end was not heard. */
			life->open[index] |= life->named[index];
			life->waits[index] = life->named[index] && !but_keyframe;
			life->named[index] = false;
		}
}

/* Of all that live. */
static void tear(struct account *account)
{
	struct sim *sim = account->sim;

	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++)
			if (sim->request[i].life[j]->named[account->channel->index] ||
			    sim->request[i].life[j]->waits[account->channel->index])
				life_tear(account, sim->request[i].life[j]);
}

/* ---- requests that begin ------------------------------------------------- */

static bool lives_here(const struct sim_request *request, uint32_t index)
{
	bool lives = false;

	for (uint32_t i = 0; i < request->lives; i++) {
		if (request->life[i]->over[index] || request->away[index])
			return false;
		lives |= request->life[i]->heard_of[index];
	}
	return lives;
}

/* The channel tells no more of a request when it has begun another of its id. */
static void leave(const struct account *account, struct sim_request *request)
{
	uint32_t index = account->channel->index;

	for (uint32_t i = 0; i < request->lives; i++) {
		struct sim_life *life = request->life[i];

		if (!life->named[index] && !life->waits[index])
			continue;
		life_tear(account, life);
		life->named[index] = false;
		life->waits[index] = false;
	}
}

static void leave_others(const struct account *account, struct sim_request *request)
{
	const uint32_t index = account->channel->index;
	struct sim *sim = account->sim;

	for (uint32_t i = 0; i < sim->requests; i++) {
		struct sim_request *other = &sim->request[i];

		if (other == request || !other->lives || !sim_same_id(other, request))
			continue;
		if (!lives_here(other, index))
			continue;
		request->has_sibling[index] = true;
		other->left[index] = true;
		other->away[index] = true;
		leave(account, other);
	}
}

static void begin(struct account *account, const struct sim_heard *heard)
{
	uint32_t index = account->channel->index;
	struct sim_life *life = heard->life;

	if (!life->named[index])
		leave_others(account, life->request);
	if (!account->ready || (heard->repeated && !life->heard_of[index])) {
		life_tear(account, life);
		life->renewed[index] |= !account->steady;
	}
	life->request->away[index] = false;
	life->named[index] = true;
	life->waits[index] = false;
	life->heard_of[index] = true;
	life->ever_named = true;
	life->keyframe[index] = heard->keyframe;
}

static void end(const struct account *account, const struct sim_heard *heard)
{
	uint32_t index = account->channel->index;
	struct sim_life *life = heard->life;

	life->ended[index] |= life->named[index];
	life->over[index] |= life->named[index] && heard->over;
	life->end_heard |= life->named[index];
	life->over_heard |= life->named[index] && heard->over;
	life->named[index] = false;
}

static void hear_again(struct account *account, const struct sim_heard *heard)
{
	switch (heard->type) {
	case SIM_HEARD_GENERATION:
		account->ready = false;
		account->steady = false;
		account->keys = 0;
		account->last = 0;
		account->unseen = account->misses = 0;
		account->unsalted = false;
		forget_names(account, 0);
		break;
	case SIM_HEARD_FIRST:
		account->ready = true;
		account->steady = !heard->continues;
		break;
	case SIM_HEARD_KEYFRAME:
		account->ready = true;
		account->steady = true;
		forget_names(account, heard->keyframe);
		break;
	case SIM_HEARD_BEGIN:
		begin(account, heard);
		break;
	case SIM_HEARD_END:
		end(account, heard);
		break;
	case SIM_HEARD_STEP:
		step_settle(account, heard->step);
		break;
	case SIM_HEARD_COPY:
		copy(account, heard);
		break;
	case SIM_HEARD_GAP:
	case SIM_HEARD_LOST_SPANS:
		forget_slots(account);
		tear(account);
		break;
	}
}

void sim_account(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->channels; i++) {
		struct account account = {.sim = sim, .channel = &sim->channel[i]};

		if (sim->channel[i].copy || sim->channel[i].draft)
			continue;
		for (uint32_t j = 0; j < sim->channel[i].heard_count; j++)
			hear_again(&account, &sim->channel[i].heard[j]);
		for (uint32_t j = 0; j < account.keys; j++)
			free(account.behind[j].other);
		free(account.behind);
		free(account.miss);
	}
}
