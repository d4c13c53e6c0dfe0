/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a request is given out: what its ranks know together of how far an attempt was run
 * is taken back where one of them alone did not know.
 */
#include "consumer/assembler/assembler.h"

/* ---- past an end ---------------------------------------------------------- */

uint32_t instance_kept(const struct r3ring_assembler *assembler, const struct part *part,
		       uint16_t number)
{
	const uint32_t instance = assembler->channel[part->channel]->instance;
	uint32_t kept = R3RING_UNKNOWN_U32;

	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *attempt = part_find_attempt(other, number);

		if (attempt && attempt->accepted != R3RING_UNKNOWN_U32 &&
		    assembler->channel[other->channel]->instance == instance &&
		    (kept == R3RING_UNKNOWN_U32 || attempt->accepted > kept))
			kept = attempt->accepted;
	}
	return kept;
}

uint32_t instance_end(const struct r3ring_assembler *assembler, const struct part *part,
		      uint16_t number)
{
	const uint32_t instance = assembler->channel[part->channel]->instance;
	const uint32_t kept = instance_kept(assembler, part, number);
	uint32_t end = R3RING_UNKNOWN_U32;

	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *attempt = part_find_attempt(other, number);
		uint32_t sampled = attempt ? instance_kept(assembler, other, number)
					   : R3RING_UNKNOWN_U32;

		if (assembler->channel[other->channel]->instance == instance || !other->attempts ||
		    other->attempt[other->attempts - 1]->number < number)
			continue;
		if (kept != R3RING_UNKNOWN_U32)
			return kept;
		/* Of two, the one that samples begins where the other ended. */
		if (sampled != R3RING_UNKNOWN_U32 && sampled > attempt->prompt &&
		    attempt->prompt < end)
			end = attempt->prompt;
	}
	return end;
}

/* What an instance ran past its own end is not the pass over a token that another instance
 * went on with. */
static void cut_past_ends(const struct r3ring_assembler *assembler, const struct request *request)
{
	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++) {
			uint32_t end = instance_end(assembler, part, part->attempt[i]->number);

			if (end != R3RING_UNKNOWN_U32)
				attempt_cut(part->attempt[i], end);
		}
}

/* ---- past an end that was lost -------------------------------------------- */

/* Whether a rank of the part's instance heard the attempt end; or, @idle, end for good with nothing
 * run behind its prompt. */
static bool instance_ended(const struct r3ring_assembler *assembler, const struct part *part,
			   uint16_t number, bool idle)
{
	const uint32_t instance = assembler->channel[part->channel]->instance;

	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *attempt = part_find_attempt(other, number);

		if (attempt && attempt->ended && !attempt_is_open(attempt) &&
		    assembler->channel[other->channel]->instance == instance &&
		    (!idle || (attempt->given_up && attempt->positions <= attempt->prompt)))
			return true;
	}
	return false;
}

/* From where on the attempt's rows may be past its end, which was lost, and the tokens those that
 * another instance chose anew: it may have gone on with the attempt, and nobody told how far. */
static uint32_t instance_doubt(const struct r3ring_assembler *assembler, const struct part *part,
			       const struct attempt *attempt)
{
	const uint32_t instance = assembler->channel[part->channel]->instance;
	uint32_t from = R3RING_UNKNOWN_U32;

	if (instance_ended(assembler, part, attempt->number, false))
		return from;
	for (const struct part *other = part->request->part; other; other = other->next) {
		const struct attempt *its = part_find_attempt(other, attempt->number);
		uint32_t prompt = its ? its->prompt : attempt->prompt;

		if (assembler->channel[other->channel]->instance != instance && other->attempts &&
		    other->attempt[other->attempts - 1]->number >= attempt->number &&
		    instance_kept(assembler, other, attempt->number) == R3RING_UNKNOWN_U32 &&
		    !instance_ended(assembler, other, attempt->number, true) && prompt < from)
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
				    : instance_doubt(assembler, part, attempt);

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
