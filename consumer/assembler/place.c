/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step's rows get their positions: in the requests of its spans, and behind the keys
 * of a prefix cache. First what the cache had no block of is forgotten, then what was loaded from
 * elsewhere erases its keys, then what was computed sets its own, then what was cached is looked up.
 */
#include "consumer/assembler/placing.h"

/* ---- computed ----------------------------------------------------------- */

static uint32_t span_position(const struct placing *placing, uint32_t i)
{
	const struct step *step = placing->step;
	const uint32_t said = placing->span->position + i;
	const uint64_t row = placing_row_of_rank(placing, i);
	int32_t seen;

	if (!step->position || row >= step->rows)
		return said;
	seen = step->position[row];
	if (seen < 0 || (uint32_t)seen == said)
		return said;
	placing->assembler->stats.rows_moved++;
	return (uint32_t)seen;
}

/* Another rank ran the row: what this one had of the position is not in KV any more. */
static void ran_elsewhere(const struct placing *placing, uint32_t position)
{
	struct row *kept = attempt_row(placing->attempt, position);
	struct row *unknown;

	if (!kept || placing->assembler->onlooker.ctx)
		return;
	unknown = row_take_empty(placing->step->pool, R3RING_MISSING_UNKNOWN_KEY);
	if (unknown)
		attempt_recompute(placing->attempt, position, unknown);
	row_drop(unknown);
}

static void place_computed(const struct placing *placing)
{
	struct row *lost = NULL;

	if (placing->appends && placing->counted == placing->span->rows &&
	    span_append(placing->assembler, placing->step, placing->span, placing->attempt))
		return;
	for (uint32_t i = 0; i < placing->span->rows; i++) {
		struct row *row = placing_row(placing, i);

		if (row)
			placing_put(placing, span_position(placing, i), row);
		else if (i < placing->counted)
			ran_elsewhere(placing, placing->span->position + i);
	}
	placing->assembler->stats.rows_rejected += placing->span->rows - placing->counted;
	/* How many were accepted never came: one of them may be each token's pass. */
	if (!(placing->span->flags & R3RING_SPAN_DRAFT) ||
	    placing->span->accepted != R3RING_UNKNOWN_U32)
		return;
	lost = row_take_empty(placing->step->pool, R3RING_MISSING_SPANS);
	for (uint32_t i = 0; lost && i < placing->span->rows; i++)
		placing_put(placing, placing->span->position + i, lost);
	row_drop(lost);
}

/* ---- cached, external --------------------------------------------------- */

/* Another block of the same hash may be the one that was found: @row is of the last. */
static void doubt(const struct placing *placing, const struct key *key, uint32_t position,
		  const struct row *row)
{
	const uint32_t token = position % placing->step->head.tokens_per_key;
	const struct row *kept = attempt_row(placing->attempt, position);

	for (uint32_t i = 0; kept && i < key->others; i++) {
		struct row *other = key->other[i].row;

		if (key->other[i].token == token &&
		    row_tile(other)->weight_version == row_tile(kept)->weight_version)
			placing_contradict(placing, position, other, kept == row);
	}
}

/* What a cache finds of the token; NULL where that is not known: blocks of one hash may have been run
 * under other weights in part, when those came while a block was filled. */
static struct row *row_found(const struct key *key, uint32_t token)
{
	struct row *row = key->row[token];

	for (uint32_t i = 0; row && i < key->others; i++)
		if (key->other[i].token == token &&
		    row_tile(key->other[i].row)->weight_version != row_tile(row)->weight_version)
			return NULL;
	return row;
}

/* Passes of other requests, maybe. */
static void attempt_found(struct attempt *attempt, uint32_t end)
{
	if (end > attempt->found)
		attempt->found = end;
}

static void place_elsewhere(const struct placing *placing)
{
	bool cached = placing->span->kind == R3RING_SPAN_CACHED;
	struct row *unknown = row_take_empty(
		placing->step->pool, cached ? R3RING_MISSING_UNKNOWN_KEY : R3RING_MISSING_EXTERNAL);

	if (unknown)
		row_tile(unknown)->weight_version = placing->step->head.weight_version;
	if (cached)
		attempt_found(placing->attempt, placing->span->position + placing->span->rows);
	for (uint32_t i = 0; i < placing->span->rows; i++) {
		const uint32_t position = placing->span->position + i;
		const struct key *key = cached ? placing_cached_key(placing, i) : NULL;
		struct row *row =
			key ? row_found(key, position % placing->step->head.tokens_per_key) : NULL;

		if (!row)
			row = unknown;
		if (row)
			placing_put(placing, position, row);
		if (key)
			doubt(placing, key, position, row);
	}
	row_drop(unknown);
}

/* ---- thin requests -------------------------------------------------------- */

/*
 * For an onlooker a position keeps that it was run, not what: one row without ids for all of
 * them. The rows of a key's tokens are kept until a later step may have filled that key, and
 * those of a step that may be told again, until it is.
 */
static void thin(const struct placing *placing)
{
	uint32_t keep = placing->step->head.tokens_per_key;
	uint64_t end = (uint64_t)placing->span->position + placing->span->rows;
	uint64_t position = placing->span->position;
	struct row *ran = row_that_ran(placing->step->pool);

	position = position > keep ? position - keep : 0;
	end = end > keep ? end - keep : 0;
	for (; ran && position < end; position++) {
		const struct row *kept = attempt_row(placing->attempt, (uint32_t)position);

		if (kept && !kept->empty)
			attempt_put(placing->attempt, (uint32_t)position, row_hold(ran));
	}
}

/* ---- a step ------------------------------------------------------------- */

enum phase { ERASE, COMPUTE, LOOK_UP, THIN };

static void place_span(const struct placing *placing, enum phase phase)
{
	const struct r3ring_span *span = placing->span;
	bool computed = span->kind == R3RING_SPAN_COMPUTED;

	if (phase == ERASE && span->kind == R3RING_SPAN_EXTERNAL)
		placing_erase_keys(placing);
	if (phase == COMPUTE && computed) {
		place_computed(placing);
		placing_set_keys(placing);
	}
	if (phase == LOOK_UP && !computed)
		place_elsewhere(placing);
	if (phase == THIN && !step_was_cut(placing->step))
		thin(placing);
}

static uint32_t rows_counted(const struct r3ring_span *span)
{
	if (!(span->flags & R3RING_SPAN_DRAFT))
		return span->rows;
	if (span->accepted == R3RING_UNKNOWN_U32)
		return 0;
	return span->accepted < span->rows ? span->accepted : span->rows;
}

/* Nobody's span, or one whose place never came: its keys hold something unknown. */
static void place_nowhere(const struct placing *placing)
{
	if (placing->span->kind != R3RING_SPAN_CACHED)
		placing_erase_keys(placing);
	if (placing->part)
		part_tear(placing->part, placing->channel, R3RING_MISSING_SPANS);
	else if (placing->span->kind == R3RING_SPAN_COMPUTED &&
		 !(placing->step->head.flags & R3RING_STEP_WARMUP))
		placing->assembler->stats.rows_unattributed += placing->span->rows;
}

/* Of the turn's part, made when there is none; NULL for nobody's span, or one whose place
 * never came, or without memory. */
static struct attempt *turn_attempt(struct turn *turn, const struct step *step,
				    const struct r3ring_span *span)
{
	if (step->head.flags & (R3RING_STEP_WARMUP | R3RING_STEP_SPANS_FOLLOW) || !turn->part)
		return NULL;
	if (!turn->attempt || turn->attempt->number != span->attempt)
		turn->attempt = part_attempt(turn->part, span->attempt);
	return turn->attempt;
}

/* @first: phase of the step. */
static void place_phase(struct r3ring_assembler *assembler, struct channel *channel,
			const struct step *step, enum phase first, enum phase phase)
{
	const bool warmup = step->head.flags & R3RING_STEP_WARMUP;
	struct placing placing = {
		.assembler = assembler,
		.channel = channel,
		.step = step,
		.appends = spans_may_append(assembler, step),
	};

	for (uint32_t i = 0, key = 0; i < step->map.spans; key += placing.span->keys, i++) {
		struct turn *turn;

		/* They have no keys. */
		if (phase == COMPUTE && placing.appends)
			i = spans_append(assembler, channel->order, step, i, phase == first);
		if (i == step->map.spans)
			return;
		turn = &channel->order[i];
		placing.span = &step->map.span[i];
		if (span_is_miss(placing.span))
			continue;
		placing.key = step->map.keys ? step->map.key + key : NULL;
		placing.since = step->map.since[i];
		placing.counted = rows_counted(placing.span);
		placing.part = warmup ? NULL : turn->part;
		placing.attempt = turn_attempt(turn, step, placing.span);
		if (!placing.attempt) {
			if (phase == first)
				place_nowhere(&placing);
			continue;
		}
		if (phase == first)
			attempt_run(placing.attempt, ++assembler->touches, &step->head,
				    placing.span);
		place_span(&placing, phase);
	}
}

void step_place(struct r3ring_assembler *assembler, struct channel *channel, struct step *step)
{
	const bool computed = step->map.kinds == R3RING_SPAN_COMPUTED;
	const enum phase first = computed && !step->map.keys ? COMPUTE : ERASE;
	const enum phase last = computed ? COMPUTE : LOOK_UP;
	const bool lost = order_follow(channel, &step->map) < 0;

	/* Which slots it wrote is not known, and its own cached spans would see it too. */
	if (!step->map_known || lost || step->head.flags & R3RING_STEP_SPANS_FOLLOW)
		key_store_forget_slots(&channel->keys);
	if (lost) {
		requests_gap(channel, R3RING_MISSING_SPANS);
		return;
	}
	step_claims(step);
	/* Of one whose map is not, what it ran itself is in doubt. */
	if (step->map_known && step_map_settled(step))
		keys_begin(channel, step);
	for (enum phase phase = first; phase <= last; phase++)
		place_phase(assembler, channel, step, first, phase);
	if (assembler->onlooker.ctx)
		place_phase(assembler, channel, step, first, THIN);
}
