/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is one token of one request. Where two COMPUTED spans of a step claim it nobody can say
 * whose it is: it is missing for both. The producer refuses such maps, but spans may come late,
 * or from a ring or an archive that is wrong.
 */
#include <stdlib.h>

#include <uthash.h>

#include "consumer/assembler/assembler.h"

static bool has_rows(const struct r3ring_span *span)
{
	return span->kind == R3RING_SPAN_COMPUTED && span->rows;
}

static uint64_t end_of(const struct r3ring_span *span)
{
	return (uint64_t)span->row + span->rows;
}

/* Nearly all maps are in the order of their rows, where one look at each span tells. */
static bool are_apart(const struct map *map)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < map->spans; i++) {
		if (!has_rows(&map->span[i]))
			continue;
		if (map->span[i].row < end)
			return false;
		end = end_of(&map->span[i]);
	}
	return true;
}

/* Its place among the step's, which begin at `row_begin` and end at `rows`. */
static uint32_t place_of(const struct step *step, uint64_t row)
{
	const uint32_t first = step->head.row_begin;

	if (row <= first)
		return 0;
	return row - first < step->rows ? (uint32_t)(row - first) : step->rows;
}

/* [rows + 1] how many more spans claim a row than the one before it; NULL without memory. */
static int32_t *count_changes(const struct step *step)
{
	const struct map *map = &step->map;
	int32_t *change = calloc((size_t)step->rows + 1, sizeof(*change));

	for (uint32_t i = 0; change && i < map->spans; i++) {
		if (!has_rows(&map->span[i]))
			continue;
		change[place_of(step, map->span[i].row)]++;
		change[place_of(step, end_of(&map->span[i]))]--;
	}
	return change;
}

/* Keeps who it was, so that a reader is told where. */
static void row_conflict(struct row *row)
{
	if (!row || row->empty)
		return;
	row->empty = 1;
	row->cause = R3RING_CAUSE_CONFLICT;
}

void step_claims(struct step *step)
{
	int32_t *change, claims = 0;

	if (are_apart(&step->map))
		return;
	change = count_changes(step);
	/* Without memory it is not known which. */
	for (uint32_t i = 0; i < step->rows; i++) {
		claims += change ? change[i] : 2;
		if (claims > 1)
			row_conflict(step->row[i]);
	}
	free(change);
}

/* ---- of a step that was settled ------------------------------------------- */

static bool attempt_ran_again(const struct attempt *attempt, const struct row *row)
{
	for (uint32_t i = 0; i < attempt->contradictions; i++)
		if (attempt->contradiction[i].row == row)
			return true;
	for (uint32_t i = 0; i < attempt->recomputed; i++)
		if (attempt->newest[i] == row)
			return true;
	return false;
}

/* Whether the part has the row as another pass over one of its positions. */
static bool part_ran_again(const struct part *part, const struct row *row)
{
	for (uint32_t i = 0; part && i < part->attempts; i++)
		if (attempt_ran_again(part->attempt[i], row))
			return true;
	return false;
}

/* Whether a request that claims the row had it before, first or as another pass. */
static bool was_the_claimer_s(const struct channel *channel, const struct step *step,
			      const struct row *row)
{
	const uint32_t number = row_number(row);

	if (step->row[number])
		return true;
	for (uint32_t i = 0; i < step->map.spans; i++) {
		const struct r3ring_span *span = &step->map.span[i];

		if (has_rows(span) && number >= span->row && number < end_of(span) &&
		    part_ran_again(part_of(channel, span->request), row))
			return true;
	}
	return false;
}

/* Rows that others have got: one that is claimed is theirs no more than the span's, unless a cache
 * found for them what the span's own request had run. */
static void part_yield(const struct channel *channel, struct part *part, const struct step *step,
		       const int32_t *claims)
{
	for (uint32_t i = 0; i < part->attempts; i++) {
		struct attempt *attempt = part->attempt[i];

		for (uint32_t position = 0; position < attempt->positions; position++) {
			struct row *row = attempt->row[position];

			if (row && row_is_of(row, step, channel->generation) &&
			    claims[row_number(row)] &&
			    !(position < attempt->found && was_the_claimer_s(channel, step, row)))
				row_conflict(row);
		}
	}
}

void step_claims_again(const struct channel *channel, const struct step *step)
{
	int32_t *claims = count_changes(step);
	struct part *part, *next;
	bool others = false;

	if (!claims)
		return;
	for (uint32_t i = 1; i < step->rows; i++)
		claims[i] += claims[i - 1];
	for (uint32_t i = 0; i < step->rows && !others; i++)
		others = claims[i] && !step->row[i];
	if (others)
		HASH_ITER (hh, channel->parts, part, next)
			part_yield(channel, part, step, claims);
	free(claims);
}
