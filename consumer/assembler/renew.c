/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines that get new weights in place run what they had run anew, from the first token. Where
 * those may have come in records that were lost, how far an attempt was seen to run since does not
 * tell how far it had come before. Of what it may have run before, the first pass that is seen under
 * the new weights is not known to be the first one.
 */
#include "consumer/assembler/assembler.h"

void channel_goes_blind(struct channel *channel)
{
	if (channel->blind || !channel->ran)
		return;
	channel->blind = true;
	channel->blind_step = channel->settled_step;
	channel->blind_era = channel->era;
	channel->blind_weights = channel->weight_version;
}

/* ---- how far an attempt may have come ---------------------------------------- */

/* Tokens that it was begun with, at most; unknown where its prompt may not count those that were kept. */
static uint64_t fed_at_most(const struct part *part, const struct attempt *attempt)
{
	const struct attempt *first = part_find_attempt(part, 0), *before;

	if (!attempt->prompt || !attempt->number)
		return attempt->prompt ? attempt->prompt : R3RING_UNKNOWN_U32;
	before = part_find_attempt(part, (uint16_t)(attempt->number - 1));
	if (before && before->accepted != R3RING_UNKNOWN_U32)
		return before->accepted > attempt->prompt ? before->accepted : attempt->prompt;
	return first && first->prompt && first->prompt < attempt->prompt ? attempt->prompt
									 : R3RING_UNKNOWN_U32;
}

static uint32_t seen_end(const struct attempt *attempt)
{
	return attempt->ran > attempt->positions ? attempt->ran : attempt->positions;
}

/* Steps before @step in which the attempt may have run unseen. */
static uint64_t steps_unseen(const struct channel *channel, const struct attempt *attempt,
			     uint64_t step)
{
	uint64_t behind = attempt->last_step;

	if (!attempt->first_step || attempt->carried) {
		if (attempt->behind_era != channel->era)
			return UINT64_MAX;
		behind = attempt->behind_step;
	}
	return behind < step ? step - behind - 1 : 0;
}

/* A step takes the last token of what was fed, or the one that was sampled, unless there are drafts. */
static uint32_t end_unseen(const struct channel *channel, const struct part *part,
			   const struct attempt *attempt, uint64_t step)
{
	const uint64_t fed = fed_at_most(part, attempt),
		       steps = steps_unseen(channel, attempt, step);
	const uint64_t each = channel->drafts ? channel->schema.max_rows : 1;
	uint64_t end = seen_end(attempt), decoding = steps;

	if (!steps)
		return (uint32_t)end;
	if (end < fed) {
		end = fed;
		decoding--;
	}
	if (fed == R3RING_UNKNOWN_U32 || decoding >= UINT32_MAX ||
	    decoding * each >= UINT32_MAX - end)
		return UINT32_MAX;
	return (uint32_t)(end + decoding * each);
}

static void run_before(struct attempt *attempt, uint32_t end)
{
	if (end > attempt->run_before)
		attempt->run_before = end;
}

void attempt_begin_seen(const struct channel *channel, struct attempt *attempt)
{
	attempt->behind_step = channel->settled_step;
	attempt->behind_era = (uint32_t)channel->era;
}

void attempt_begin_unseen(const struct channel *channel, const struct part *part,
			  struct attempt *attempt)
{
	/* Of another engine nothing lives on. */
	const bool is_new = channel->blind_era != channel->era && !generation_goes_on(channel);

	if (!channel->blind)
		return;
	attempt->behind_step = is_new ? 0 : channel->blind_step;
	attempt->behind_era = (uint32_t)(is_new ? channel->era : channel->blind_era);
	if (channel->blind_weights != channel->weight_version)
		run_before(attempt, end_unseen(channel, part, attempt, channel->settled_step + 1));
}

/* ---- new weights ---------------------------------------------------------------- */

/* Whether the step is the first of its engine that is seen. */
static bool is_first(const struct channel *channel)
{
	return !channel->settled_step && !generation_goes_on(channel);
}

/* Whether the engine may have got new weights since the step before, or since it began. */
static bool is_renewed(const struct channel *channel, const struct step *step)
{
	if (is_first(channel))
		return step->head.step != 1;
	return step->head.weight_version != channel->weight_version;
}

static void part_renew(const struct channel *channel, const struct part *part,
		       const struct step *step)
{
	struct attempt *newest = part_newest(part);

	if (!newest)
		return;
	newest->renewed |= attempt_is_open(newest);
	if (!channel->ran || step->head.weight_version == channel->weight_version)
		return;
	run_before(newest, attempt_is_open(newest)
				   ? end_unseen(channel, part, newest, step->head.step)
				   : seen_end(newest));
}

void channel_follow_weights(struct channel *channel, const struct step *step)
{
	struct part *part, *next;

	if (!is_renewed(channel, step))
		return;
	channel->steady = false;
	HASH_ITER (hh, channel->parts, part, next) {
		part_renew(channel, part, step);
	}
	HASH_ITER (hh, channel->suspended, part, next) {
		part_renew(channel, part, step);
	}
}
