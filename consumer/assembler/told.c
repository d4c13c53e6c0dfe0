/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps told of an attempt that ran it, so that two channels can be asked whether they ran
 * one: all ranks of an engine run the same steps, under the same numbers, and are told of the same
 * spans.
 */
#include <stdlib.h>

#include "consumer/assembler/requests.h"

static bool goes_on_with(const struct told *told, uint64_t step, uint32_t position, uint32_t rows)
{
	return step == told->step + told->steps && rows == told->rows &&
	       position == told->position + (uint64_t)told->steps * rows;
}

static struct told *told_new(struct attempt *attempt)
{
	const uint32_t room = attempt->told_room ? 2 * attempt->told_room : 2;
	struct told *grown;

	if (attempt->tolds < attempt->told_room)
		return &attempt->told[attempt->tolds++];
	grown = realloc(attempt->told, room * sizeof(*grown));
	if (!grown)
		return NULL;
	request_account(attempt->request, attempt->told_room * sizeof(*grown),
			room * sizeof(*grown));
	attempt->told = grown;
	attempt->told_room = room;
	return &attempt->told[attempt->tolds++];
}

void attempt_tell(struct attempt *attempt, uint64_t step, uint32_t position, uint32_t rows)
{
	struct told *last = attempt->tolds ? &attempt->told[attempt->tolds - 1] : NULL;

	/* Another span of the step, or one that was told again. */
	if (last && step < last->step + last->steps)
		return;
	if (last && goes_on_with(last, step, position, rows)) {
		last->steps++;
		return;
	}
	last = told_new(attempt);
	if (last)
		*last = (struct told){step, 1, position, rows};
	else
		attempt->told_apart = true;
}

static uint64_t end_of(const struct told *told)
{
	return told->step + told->steps;
}

/* Of steps that both told: whether each says of both the same rows. */
static bool agree(const struct told *told, const struct told *other)
{
	const uint64_t first = told->step > other->step ? told->step : other->step;

	if (told->rows != other->rows)
		return false;
	return told->position + (first - told->step) * told->rows ==
	       other->position + (first - other->step) * other->rows;
}

enum telling attempts_told(const struct attempt *attempt, const struct attempt *other)
{
	enum telling telling = TOLD_NOTHING;
	uint32_t i = 0, j = 0;

	if (attempt->told_apart || other->told_apart)
		return TOLD_NOTHING;
	while (i < attempt->tolds && j < other->tolds) {
		const struct told *told = &attempt->told[i], *its = &other->told[j];

		if (told->step < end_of(its) && its->step < end_of(told)) {
			if (!agree(told, its))
				return TOLD_OTHERS;
			telling = TOLD_ONE;
		}
		if (end_of(told) <= end_of(its))
			i++;
		else
			j++;
	}
	return telling;
}
