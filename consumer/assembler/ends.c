/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a request is given out: what its ranks know together of how far an attempt was run
 * is taken back where one of them alone did not know.
 */
#include "consumer/assembler/assembler.h"

/* ---- past an end ---------------------------------------------------------- */

static bool share_engine(const struct r3ring_assembler *assembler, const struct part *part,
			 const struct part *other)
{
	return channels_share_engine(assembler->channel[part->channel],
				     assembler->channel[other->channel]);
}

static bool has_come_to(const struct part *part, uint16_t number)
{
	return part->attempts && part->attempt[part->attempts - 1]->number >= number;
}

uint32_t kept_by_engine(const struct r3ring_assembler *assembler, const struct part *part,
			uint16_t number)
{
	uint32_t kept = R3RING_UNKNOWN_U32;

	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *attempt = part_find_attempt(other, number);

		if (attempt && attempt->accepted != R3RING_UNKNOWN_U32 &&
		    share_engine(assembler, part, other) &&
		    (kept == R3RING_UNKNOWN_U32 || attempt->accepted > kept))
			kept = attempt->accepted;
	}
	return kept;
}

/* Whether an engine that returned so many tokens handed the attempt on to another: where it is not known how
 * many that one returned, it may have where it returned the first one only, as a prefill does. */
static bool handed_on(const struct attempt *attempt, uint32_t kept, uint32_t others)
{
	if (kept <= attempt->prompt)
		return false;
	return others == R3RING_UNKNOWN_U32 ? kept == attempt->prompt + 1 : others > kept;
}

/* Of two engines the one that goes on with an attempt feeds itself the last token that the other
 * returned. */
static uint32_t end_before(const struct r3ring_assembler *assembler, const struct attempt *attempt,
			   uint32_t kept, const struct part *other)
{
	if (!assembler->options.min_ends || !attempt)
		return kept;
	return handed_on(attempt, kept, kept_by_engine(assembler, other, attempt->number))
		       ? kept - 1
		       : kept;
}

/* Where its end was not heard: of two, the one that samples begins where the other ended. */
static uint32_t end_by_prompt(const struct attempt *attempt, const struct attempt *its)
{
	const bool counted = attempt && attempt->prompt && attempt->prompt < its->prompt;

	return counted ? its->prompt - 1 : its->prompt;
}

uint32_t end_on_engine(const struct r3ring_assembler *assembler, const struct part *part,
		       uint16_t number)
{
	const struct attempt *attempt = part_find_attempt(part, number);
	const uint32_t kept = kept_by_engine(assembler, part, number);
	uint32_t end = R3RING_UNKNOWN_U32;

	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *its = part_find_attempt(other, number);
		uint32_t sampled, limit = R3RING_UNKNOWN_U32;

		if (share_engine(assembler, part, other) || !has_come_to(other, number))
			continue;
		sampled = kept_by_engine(assembler, other, number);
		if (kept != R3RING_UNKNOWN_U32)
			limit = end_before(assembler, attempt, kept, other);
		else if (its && sampled != R3RING_UNKNOWN_U32 && sampled > its->prompt)
			limit = end_by_prompt(attempt, its);
		if (limit < end)
			end = limit;
	}
	return end;
}

/* What an engine ran past its own end is not the pass over a token that another went on with. */
static void cut_past_ends(const struct r3ring_assembler *assembler, const struct request *request)
{
	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++) {
			uint32_t end = end_on_engine(assembler, part, part->attempt[i]->number);

			if (end != R3RING_UNKNOWN_U32)
				attempt_cut(part->attempt[i], end);
		}
}

/* ---- past an end that was lost -------------------------------------------- */

/* Whether a rank of the part's engine heard the attempt end; or, @idle, end for good with nothing
 * run behind its prompt. */
static bool engine_ended(const struct r3ring_assembler *assembler, const struct part *part,
			 uint16_t number, bool idle)
{
	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *attempt = part_find_attempt(other, number);

		if (attempt && attempt->ended && !(attempt->given_up && attempt_is_open(attempt)) &&
		    share_engine(assembler, part, other) &&
		    (!idle || (attempt->given_up && attempt->positions <= attempt->prompt)))
			return true;
	}
	return false;
}

/* From where on the attempt's rows may be past its end, which was lost, and the tokens those that
 * another engine chose anew: it may have gone on with the attempt, and nobody told how far. */
static uint32_t engine_doubt(const struct r3ring_assembler *assembler, const struct part *part,
			     const struct attempt *attempt)
{
	uint32_t from = R3RING_UNKNOWN_U32;

	if (engine_ended(assembler, part, attempt->number, false))
		return from;
	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *its = part_find_attempt(other, attempt->number);
		uint32_t prompt = its ? its->prompt : attempt->prompt;

		if (!share_engine(assembler, part, other) && has_come_to(other, attempt->number) &&
		    kept_by_engine(assembler, other, attempt->number) == R3RING_UNKNOWN_U32 &&
		    !engine_ended(assembler, other, attempt->number, true) && prompt < from)
			from = prompt;
	}
	return from;
}

/* In the row's place: it stays the pass that it was, which was lost. */
static struct row *row_doubted(const struct row *row, uint8_t cause)
{
	const struct tile *tile = row_tile(row);
	struct row *lost = row_take_empty(tile->pool, cause);

	if (!lost)
		return NULL;
	row_tile(lost)->step = tile->step;
	row_tile(lost)->generation = tile->generation;
	row_tile(lost)->number = row_number(row);
	row_tile(lost)->weight_version = tile->weight_version;
	return lost;
}

/* Of the last attempt the length is a guess then, which is said: what lies behind is not lost. */
static bool is_last(const struct request *request, const struct attempt *attempt)
{
	for (const struct part *part = request->part; part; part = part->next)
		if (part->attempts && part->attempt[part->attempts - 1]->number > attempt->number)
			return false;
	return true;
}

static void doubt_past_lost_ends(const struct r3ring_assembler *assembler, const struct part *part,
				 struct attempt *attempt)
{
	uint32_t position = is_last(part->request, attempt)
				    ? attempt->positions
				    : engine_doubt(assembler, part, attempt);

	for (; position < attempt->positions; position++) {
		const struct row *row = attempt->row[position];

		if (row && !row->empty)
			attempt_put(attempt, position,
				    row_doubted(row, part->gap ? part->gap : R3RING_MISSING_GAP));
	}
}

/* ---- drafts of which one rank was not told ------------------------------- */

static bool run_same_rows(const struct channel *channel, const struct channel *other)
{
	const struct r3ring_coordinates *rank = &channel->schema.rank;
	const struct r3ring_coordinates *others = &other->schema.rank;

	return channel->instance == other->instance && rank->dp.index == others->dp.index &&
	       rank->sp.index == others->sp.index && rank->cp.index == others->cp.index;
}

/* Whether a stage that heard of all that the attempt ran has no row there. */
static bool was_not_run(const struct r3ring_assembler *assembler, const struct part *part,
			uint16_t number, uint32_t position)
{
	const struct channel *channel = assembler->channel[part->channel];

	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *attempt = part_find_attempt(other, number);

		if (other == part || other->gap || !attempt || attempt_row(attempt, position) ||
		    !run_same_rows(channel, assembler->channel[other->channel]))
			continue;
		if (attempt->accepted != R3RING_UNKNOWN_U32 ||
		    attempt != other->attempt[other->attempts - 1])
			return true;
	}
	return false;
}

/* Drafts that may have been accepted, for all that this rank was told. */
static void forget_not_run(const struct r3ring_assembler *assembler, const struct part *part,
			   struct attempt *attempt)
{
	for (uint32_t position = 0; position < attempt->positions; position++) {
		const struct row *row = attempt->row[position];

		if (row && row->empty && row->cause == R3RING_MISSING_SPANS &&
		    was_not_run(assembler, part, attempt->number, position))
			attempt_put(attempt, position, NULL);
	}
}

/* ---- a request ------------------------------------------------------------ */

void request_trim(const struct r3ring_assembler *assembler, const struct request *request)
{
	cut_past_ends(assembler, request);
	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; assembler->options.min_ends && i < part->attempts; i++)
			doubt_past_lost_ends(assembler, part, part->attempt[i]);
	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; assembler->stats.spans_late && i < part->attempts; i++)
			forget_not_run(assembler, part, part->attempt[i]);
}
