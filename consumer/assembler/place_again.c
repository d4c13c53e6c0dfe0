/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans that come later than their step was settled: its rows leave the positions they got
 * and are placed again.
 */
#include <stdlib.h>

#include "consumer/assembler/assembler.h"

/* The part's rows of a step, out of their positions again. Returns how many. */
static uint32_t take_back(struct part *part, struct step *step, uint64_t generation)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < part->attempts; i++) {
		struct attempt *attempt = part->attempt[i];

		for (uint32_t position = 0; position < attempt->positions; position++) {
			struct row *placed = attempt->row[position];
			uint32_t number;

			if (!placed || !row_is_of(placed, step, generation))
				continue;
			number = row_number(placed);
			row_drop(step->row[number]);
			step->row[number] = placed;
			step->head.weight_version = row_tile(placed)->weight_version;
			attempt->row[position] = NULL;
			count++;
		}
	}
	return count;
}

/* Its keys may be others' since: what it set under wrong ones goes, and nothing is set. What it
 * names may be found all the same. */
static uint32_t keys_leave(struct channel *channel, struct step *step)
{
	uint32_t count =
		key_store_forget_step(&channel->keys, step->head.step, channel->generation);

	if (step->map.keys && step->head.key_kind == R3RING_KEYS_BLOCK_HASH &&
	    step->head.step <= channel->settled_step)
		key_store_doubt(&channel->keys, channel->weight_version);
	for (uint32_t i = 0; i < step->map.spans; i++)
		step->map.span[i].keys = 0;
	return count;
}

void spans_place_again(struct r3ring_assembler *assembler, struct channel *channel,
		       const struct r3ring_record *record)
{
	struct r3ring_record plain = *record;
	struct step step = {
		.head = {.step = record->u.spans.head.step},
		.pool = channel->pool,
		.rows = channel->schema.max_rows,
		.map_known = true,
	};
	uint32_t known;

	step.tables = calloc(step.rows, sizeof(*step.row));
	if (!step.tables)
		return;
	step.row = step.tables;
	/* Of several records each counts by itself: their rows have places already. */
	plain.u.spans.head.flags = 0;
	step_spans(&step, 0, &plain);
	known = keys_leave(channel, &step);
	for (uint32_t i = 0; step.map_known && i < step.map.spans; i++) {
		struct part *part = part_of(channel, step.map.span[i].request);

		if (part)
			known += take_back(part, &step, channel->generation);
	}
	if (step.map_known)
		step_claims_again(channel, &step);
	if (known)
		step_place(assembler, channel, &step);
	step_release(&step);
}
