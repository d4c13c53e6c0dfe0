/* SPDX-License-Identifier: Apache-2.0 */
/* One position gets a row: which of two passes over it counts, and what the other one says. */
#include "consumer/assembler/placing.h"

/* The other one is kept beside it: the row may be behind a key too, and is right there. */
void placing_contradict(const struct placing *placing, uint32_t position, struct row *row,
			bool instead)
{
	struct r3ring_assembler *assembler = placing->assembler;
	struct attempt *attempt = placing->attempt;
	struct row *kept = attempt_row(attempt, position);
	uint32_t cells = rows_differing(kept, row);

	if (!cells && (assembler->onlooker.ctx ||
		       (!row_has_more(kept, row) && !(instead && row_has_more(row, kept)))))
		return;
	assembler->stats.conflicts += cells;
	attempt_contradict(attempt, position, row, instead);
}

/* New weights over a token that was run before, whether that is known or not. */
static bool is_recomputed(const struct r3ring_assembler *assembler, const struct row *kept,
			  const struct row *row)
{
	return row_tile(kept)->weight_version != row_tile(row)->weight_version &&
	       assembler->options.policy == R3RING_ROWS_FIRST &&
	       !(row_is_no_pass(kept) && kept->cause == R3RING_MISSING_SPANS);
}

/* The step that was open when a daemon ended is told from its beginning by the generation that goes
 * on: what that says of it counts. */
static bool is_told_again(const struct placing *placing, const struct row *kept,
			  const struct row *row)
{
	const struct tile *its = row_tile(kept), *tile = row_tile(row);

	return tile->step == its->step && tile->generation == placing->channel->generation &&
	       its->generation != tile->generation &&
	       its->generation == former_of(placing->channel);
}

static void tell_onlooker(const struct placing *placing, uint32_t position, const struct row *row,
			  const struct row *kept)
{
	const struct onlooker *onlooker = &placing->assembler->onlooker;
	const struct placed_row placed = {
		.part = placing->part,
		.attempt = placing->attempt,
		.row = row,
		.former = kept && is_told_again(placing, kept, row) ? kept : NULL,
		.position = position,
		.cached = placing->span->kind == R3RING_SPAN_CACHED,
	};

	onlooker->placed(onlooker->ctx, &placed);
}

/* Whether the row that is there counts, and not @row. */
static bool stays(const struct placing *placing, uint32_t position, struct row *kept,
		  struct row *row)
{
	struct r3ring_assembler *assembler = placing->assembler;

	if (kept == row || row_is_no_pass(row))
		return true;
	if (is_told_again(placing, kept, row))
		return false;
	if (!is_recomputed(assembler, kept, row)) {
		if (row_is_no_pass(kept) ||
		    row_tile(kept)->weight_version != row_tile(row)->weight_version)
			return false;
		placing_contradict(placing, position, row, false);
	}
	if (!assembler->onlooker.ctx)
		attempt_recompute(placing->attempt, position, row);
	return true;
}

/* Positions far beyond all others take memory for those between, more than there may be. */
static bool may_reach(const struct placing *placing, uint32_t position)
{
	const struct memory *memory = &placing->assembler->memory;

	if (memory_may_take(memory, attempt_growth(placing->attempt, position)))
		return true;
	part_tear(placing->part, placing->channel, R3RING_MISSING_EVICTED);
	return false;
}

void placing_put(const struct placing *placing, uint32_t position, struct row *row)
{
	struct r3ring_assembler *assembler = placing->assembler;
	struct attempt *attempt = placing->attempt;
	struct row *kept;

	if (position >= assembler->options.max_tokens) {
		assembler->stats.rows_beyond++;
		attempt->request->cut = true;
		return;
	}
	if ((position >= attempt->capacity && !may_reach(placing, position)) ||
	    attempt_reach(attempt, position) < 0)
		return;
	kept = attempt->row[position];
	if (kept && stays(placing, position, kept, row))
		return;
	if (assembler->onlooker.ctx)
		tell_onlooker(placing, position, row, kept);
	attempt_put(attempt, position, row_hold(row));
	assembler->stats.rows_placed++;
}
