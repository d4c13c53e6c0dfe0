/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that go on where their attempt's end, which nearly all do that were computed: nothing
 * stands at their positions that they could differ from.
 */
#include "consumer/assembler/placing.h"

/* What the spans of a step have in common. */
struct appending {
	struct row *const *row; /* from row `first` to `end` of the whole step */
	uint32_t first;
	uint64_t end;
	uint32_t most; /* positions */
};

static struct appending appending_of(const struct r3ring_assembler *assembler,
				     const struct step *step)
{
	return (struct appending){
		.row = step->row,
		.first = step->head.row_begin,
		.end = (uint64_t)step->head.row_begin + step->tiled,
		.most = assembler->options.max_tokens,
	};
}

bool spans_may_append(const struct r3ring_assembler *assembler, const struct step *step)
{
	return !(step->head.flags & (R3RING_STEP_SPANS_FOLLOW | R3RING_STEP_WARMUP)) &&
	       !step->position && !assembler->onlooker.ctx;
}

static inline bool append(const struct appending *step, const struct r3ring_span *span,
			  struct attempt *attempt)
{
	const uint32_t rows = span->rows, positions = attempt->positions;
	const uint64_t end = (uint64_t)positions + rows;
	struct row *const *row;
	struct row **to = attempt->row;

	if (span->position != positions || end > attempt->capacity || end > step->most ||
	    span->row < step->first || (uint64_t)span->row + rows > step->end)
		return false;
	attempt->positions = (uint32_t)end;
	row = step->row + (span->row - step->first);
	for (uint32_t i = 0; i < rows; i++)
		to[positions + i] = row_hold(row[i]);
	return true;
}

bool span_append(struct r3ring_assembler *assembler, const struct step *step,
		 const struct r3ring_span *span, struct attempt *attempt)
{
	const struct appending appending = appending_of(assembler, step);

	if (!append(&appending, span, attempt))
		return false;
	assembler->stats.rows_placed += span->rows;
	return true;
}

/* Whether all that there may be to do for the span is to append its rows. */
static inline bool is_append(const struct r3ring_span *span, const struct turn *turn)
{
	return span->kind == R3RING_SPAN_COMPUTED && !(span->flags & R3RING_SPAN_DRAFT) &&
	       !span->keys && turn->attempt && turn->attempt->number == span->attempt;
}

uint32_t spans_append(struct r3ring_assembler *assembler, const struct turn *order,
		      const struct step *step, uint32_t i, bool touch)
{
	const struct appending appending = appending_of(assembler, step);
	const struct r3ring_span *span = step->map.span;
	const uint32_t spans = step->map.spans;
	uint64_t touches = assembler->touches, rows = 0;

	for (; i < spans && is_append(&span[i], &order[i]) &&
	       append(&appending, &span[i], order[i].attempt);
	     i++) {
		if (touch)
			attempt_run(order[i].attempt, ++touches, &step->head, &span[i]);
		rows += span[i].rows;
	}
	assembler->touches = touches;
	assembler->stats.rows_placed += rows;
	return i;
}
