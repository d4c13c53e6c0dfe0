/* SPDX-License-Identifier: Apache-2.0 */
/* A channel in the tally of a segment: its steps that are not over, and their spans. */
#ifndef ARCHIVE_INDEX_OPEN_H
#define ARCHIVE_INDEX_OPEN_H

#include "archive/index_tally.h"

struct tally_open {
	struct index_open is;
	struct index_part *part; /* SPAN; NULL: not looked for yet */
	bool carried;            /* from the segment before */
};

struct tally_channel {
	const char *name;
	uint64_t generation;
	uint8_t uuid[16];
	struct tally_open *open; /* [count], in the order of what told of it */
	uint32_t count, capacity;
};

/* Adds it to the channel. Returns 0 or -ENOMEM. */
int tally_open_add(struct tally_channel *channel, const struct index_open *is,
		   struct index_part *part);

/* The entry that announced a step; NULL: it is not open. */
const struct tally_open *tally_open_step(const struct tally_channel *channel, uint64_t step);

/* Drops the spans of a request in a step; whether there were any. */
bool tally_open_drop_spans(struct tally_channel *channel, uint64_t step, uint64_t handle);

/* A step is over: drops all of it, and of those that can no longer get spans. */
void tally_open_end(struct tally_channel *channel, uint64_t step);

/* How many of [row, row + rows) are in the span. */
uint32_t tally_open_overlap(const struct index_open *span, uint32_t row, uint32_t rows);

/* Remembers the rows of a LAYER record for spans that are still to come. Returns 0 or
 * -ENOMEM. */
int tally_open_keep_layer(struct tally_channel *channel, uint64_t step, uint32_t row,
			  uint32_t rows);

/* Counts for @part what came of a span before anybody knew whose rows they are. */
void tally_open_count_layers(const struct tally_channel *channel, const struct index_open *span,
			     struct index_part *part);

#endif
