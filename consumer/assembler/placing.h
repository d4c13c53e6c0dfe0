/* SPDX-License-Identifier: Apache-2.0 */
/* A step's span at work: what place.c and its helpers hand each other. */
#ifndef CONSUMER_ASSEMBLER_PLACING_H
#define CONSUMER_ASSEMBLER_PLACING_H

#include "consumer/assembler/assembler.h"

struct placing {
	struct r3ring_assembler *assembler;
	struct channel *channel;
	const struct step *step;
	const struct r3ring_span *span;
	const uint64_t *key; /* [span->keys] */
	uint64_t since;      /* sequence of the record that told the span */
	struct part *part;   /* NULL: nobody's */
	struct attempt *attempt;
	uint32_t counted; /* leading rows that count */
	bool appends;     /* they may be appended to the attempt's */
};

/* Of those that this rank ran; beyond them for one that it did not. */
static inline uint64_t placing_row_of_rank(const struct placing *placing, uint32_t i)
{
	return (uint64_t)placing->span->row + i - placing->step->head.row_begin;
}

/* The span's row @i, NULL where it does not count or is not there. */
static inline struct row *placing_row(const struct placing *placing, uint32_t i)
{
	const uint64_t row = placing_row_of_rank(placing, i);

	return i < placing->counted && row < placing->step->rows ? placing->step->row[row] : NULL;
}

/* It names what a cache was asked for in vain, and nothing else. */
static inline bool span_is_miss(const struct r3ring_span *span)
{
	return span->kind == R3RING_SPAN_CACHED && !span->rows;
}

/* place_append.c */
/* Whether rows of the step may be appended at all: all spans are known, nobody looks on, and
 * nothing is known of the rows' positions that spans could differ from. */
bool spans_may_append(const struct r3ring_assembler *assembler, const struct step *step);
/* Appends the rows of a span that count all. False: their place is not behind the attempt's
 * last, or they may not be there. */
bool span_append(struct r3ring_assembler *assembler, const struct step *step,
		 const struct r3ring_span *span, struct attempt *attempt);
/* Places the spans from @i on for which there is no more to do than that. Returns the first
 * that is another. @touch: no earlier phase of the step did. */
uint32_t spans_append(struct r3ring_assembler *assembler, const struct turn *order,
		      const struct step *step, uint32_t i, bool touch);

/* place_row.c: @row, borrowed, is of a pass over the position; which one counts is decided here. */
void placing_put(const struct placing *placing, uint32_t position, struct row *row);
/* Another pass over the position: keeps it, borrowed, beside the one that counts where they
 * differ or may differ. @instead: it may be the one that a cache found. */
void placing_contradict(const struct placing *placing, uint32_t position, struct row *row,
			bool instead);

/* place_keys.c: what the span ran is behind its keys from here on; */
void placing_set_keys(const struct placing *placing);
/* or nothing that is known, since it was lost or loaded from elsewhere. */
void placing_erase_keys(const struct placing *placing);
/* What the engine had no block of before the step, whose map is known. */
void keys_begin(struct channel *channel, const struct step *step);
/* The key of the span's cached position @i, where the step may have found it; or NULL. */
struct key *placing_cached_key(const struct placing *placing, uint32_t i);

#endif
