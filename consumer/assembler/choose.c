/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows count at a position: of which attempt, and which of its passes. */
#include "consumer/assembler/choose.h"
#include "consumer/assembler/assembler.h"

const struct layer_map *map_of(const struct r3ring_assembled *assembled, const struct row *row)
{
	for (uint32_t i = 0; i < assembled->maps; i++)
		if (assembled->map[i].pool == row_tile(row)->pool)
			return &assembled->map[i];
	return NULL;
}

static const struct channel *channel_of(const struct r3ring_assembled *assembled,
					const struct tile *tile)
{
	return assembled->assembler->channel[tile->pool->channel];
}

/* Whether @row is of a pass before that of @other: steps are those of their engine. */
static bool is_before(const struct r3ring_assembled *assembled, const struct row *row,
		      const struct row *other)
{
	const struct tile *tile = row_tile(row), *its = row_tile(other);

	if (channels_share_engine(channel_of(assembled, tile), channel_of(assembled, its)))
		return tile->step < its->step;
	return tile->weight_version < its->weight_version;
}

/* The one that counts, where passes are of different weights, to the front. */
static void chosen_add(const struct r3ring_assembled *assembled, struct chosen *chosen,
		       struct row *row)
{
	bool latest = assembled->policy == R3RING_ROWS_LATEST;
	uint32_t place = chosen->rows++;

	while (place && !row_is_no_pass(row) &&
	       (row_is_no_pass(chosen->row[place - 1]) ||
		(latest ? is_before(assembled, chosen->row[place - 1], row)
			: is_before(assembled, row, chosen->row[place - 1])))) {
		chosen->row[place] = chosen->row[place - 1];
		chosen->map[place] = chosen->map[place - 1];
		place--;
	}
	chosen->row[place] = row;
	chosen->map[place] = map_of(assembled, row);
}

/* Another pass does not stand in for what was lost of the one that counts. */
static void add_contradictions(const struct r3ring_assembled *assembled,
			       const struct attempt *attempt, uint32_t position,
			       struct chosen *chosen)
{
	for (uint32_t i = 0; i < attempt->contradictions && chosen->rows < ROWS_MAX; i++) {
		struct row *row = attempt->contradiction[i].row;

		if (attempt->contradiction[i].position != position)
			continue;
		chosen->instead |= (uint64_t)attempt->contradiction[i].instead << chosen->rows;
		chosen->row[chosen->rows] = row;
		chosen->map[chosen->rows++] = map_of(assembled, row);
	}
}

static bool rows_of_pass(const struct r3ring_assembled *assembled, const struct pass *pass,
			 uint32_t position, struct chosen *chosen)
{
	const struct part *part;
	const struct attempt *attempt;

	for (part = assembled->request->part; part; part = part->next) {
		attempt = part_find_attempt(part, pass->number);
		if (attempt && attempt_row(attempt, position) && chosen->rows < ROWS_MAX)
			chosen_add(assembled, chosen, attempt_row(attempt, position));
	}
	chosen->passes = chosen->rows;
	for (part = assembled->request->part; part && chosen->rows; part = part->next) {
		attempt = part_find_attempt(part, pass->number);
		if (attempt)
			add_contradictions(assembled, attempt, position, chosen);
	}
	if (chosen->rows)
		chosen->pass = pass;
	return chosen->rows > 0;
}

/* A pass that sampled consumed all tokens before the last. */
static bool must_have_run(const struct pass *pass, uint32_t position)
{
	return pass->sampled != R3RING_UNKNOWN_U32 && pass->sampled > pass->prompt &&
	       position + 1 < pass->sampled;
}

static bool has_row(const struct r3ring_assembled *assembled, const struct pass *pass,
		    uint32_t position)
{
	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct attempt *attempt = part_find_attempt(part, pass->number);

		if (attempt && attempt_row(attempt, position))
			return true;
	}
	return false;
}

/* Tokens that an attempt was fed may have been run by those before it that are not known. */
static bool is_of_orphan(const struct r3ring_assembled *assembled, const struct pass *pass,
			 uint32_t position)
{
	return pass->orphan && (!assembled->counts || position < pass->prompt);
}

/* Why it is not known whether a pass over the position counts, behind what is known to be kept; 0 where
 * none does. An attempt whose end was heard ran what it has rows of. */
static uint8_t cause_behind(const struct r3ring_assembled *assembled, const struct pass *pass,
			    uint32_t position)
{
	if (pass->cut_off == R3RING_MISSING_SPANS && !has_row(assembled, pass, position) &&
	    !pass_may_have_run(assembled, pass, position))
		return 0;
	return pass->cut_off;
}

/* Whether what the attempt ran of a token that it kept may have been thrown away. */
static bool is_doubtful(const struct r3ring_assembled *assembled, const struct pass *pass,
			uint32_t position)
{
	return position >= pass->sure && position < pass->kept &&
	       has_row(assembled, pass, position);
}

/* Whether no later pass counts. @lost: cause, where this one, or one before it, may have been lost. */
static bool pass_is_first(const struct r3ring_assembled *assembled, const struct pass *pass,
			  uint32_t position, struct chosen *chosen, uint8_t *lost)
{
	const bool orphan = is_of_orphan(assembled, pass, position);

	*lost = 0;
	if (position >= pass->most)
		return false;
	if (is_doubtful(assembled, pass, position)) {
		*lost = pass->doubt;
		return true;
	}
	if (!orphan && position < pass->kept && rows_of_pass(assembled, pass, position, chosen))
		return true;
	if (!orphan && position >= pass->kept)
		*lost = cause_behind(assembled, pass, position);
	else if (orphan || pass_may_have_run(assembled, pass, position))
		*lost = R3RING_MISSING_GAP;
	/* A later pass over the token is not the one that sampled. */
	return *lost || (!orphan && position < pass->kept && must_have_run(pass, position));
}

/* Both return the cause where the pass that counts may be one that was lost, else 0. */
static uint8_t choose_first(const struct r3ring_assembled *assembled, uint32_t position,
			    struct chosen *chosen)
{
	uint8_t lost = 0;

	for (uint32_t i = 0; i < assembled->passes; i++)
		if (pass_is_first(assembled, &assembled->pass[i], position, chosen, &lost))
			return lost;
	return 0;
}

bool choose_may_be_first(const struct r3ring_assembled *assembled, uint16_t number,
			 uint32_t position)
{
	struct chosen chosen = {.rows = 0};
	uint8_t lost;

	for (uint32_t i = 0; i < assembled->passes; i++) {
		const struct pass *pass = &assembled->pass[i];

		if (pass->number >= number)
			return pass->number > number || !is_of_orphan(assembled, pass, position);
		if (pass_is_first(assembled, pass, position, &chosen, &lost))
			return false;
	}
	return true;
}

static uint8_t choose_latest(const struct r3ring_assembled *assembled, uint32_t position,
			     struct chosen *chosen)
{
	for (uint32_t i = assembled->passes; i-- > 0;) {
		const struct pass *pass = &assembled->pass[i];
		uint8_t lost = 0;

		if (position >= pass->most)
			continue;
		if (is_doubtful(assembled, pass, position))
			lost = pass->doubt;
		else if (position >= pass->kept)
			lost = cause_behind(assembled, pass, position);
		else if (rows_of_pass(assembled, pass, position, chosen))
			return 0;
		else if (pass_may_have_run(assembled, pass, position))
			lost = R3RING_MISSING_GAP;
		if (lost)
			return lost;
		if (is_of_orphan(assembled, pass, position))
			return R3RING_MISSING_GAP;
	}
	return 0;
}

/* @lost: cause, where it may have been run all the same. */
static uint8_t cause_of_none(const struct r3ring_assembled *assembled, uint32_t position,
			     uint8_t lost)
{
	if (assembled->info.flags & R3RING_ASSEMBLED_EVICTED)
		return R3RING_MISSING_EVICTED;
	if (position + 1 == assembled->info.tokens)
		return R3RING_MISSING_NOT_FED;
	for (const struct part *part = assembled->request->part; part; part = part->next)
		if (part->gap)
			return part->gap;
	if (assembled->lacks_shard)
		return R3RING_MISSING_OTHER_SHARDS;
	return lost ? lost : R3RING_MISSING_NOT_RUN;
}

void choose(const struct r3ring_assembled *assembled, uint32_t position, struct chosen *chosen)
{
	uint8_t lost;

	chosen->pass = NULL;
	chosen->rows = 0;
	chosen->passes = 0;
	chosen->instead = 0;
	lost = assembled->policy == R3RING_ROWS_FIRST ? choose_first(assembled, position, chosen)
						      : choose_latest(assembled, position, chosen);
	chosen->cause = chosen->rows ? R3RING_MISSING_OTHER_LAYERS
				     : cause_of_none(assembled, position, lost);
}

struct row *whole_row(const struct chosen *chosen)
{
	struct row *row = chosen->rows == 1 ? chosen->row[0] : NULL;

	if (!row || row->empty || row_is_marred(row) || !chosen->map[0] || !chosen->map[0]->same)
		return NULL;
	return row;
}
