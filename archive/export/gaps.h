/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the recorder lost records: what began and ended there left no trace, so that only the
 * place can be told.
 */
#ifndef ARCHIVE_EXPORT_GAPS_H
#define ARCHIVE_EXPORT_GAPS_H

#include "archive/export/export.h"
#include "archive/losses.h"

/* What a channel was seen to do last, by the assembler's number of it. */
struct export_channel_seen {
	uint64_t step, time_ns;
	struct archive_losses losses;
	uint32_t open; /* index + 1 of the gap told whose end is not known yet; 0: none */
};

struct export_gaps {
	struct export_channel_seen *seen; /* [channels] */
	uint32_t channels;
	bool begun;           /* an entry was seen */
	bool lacks_beginning; /* what is gone before it no recorder removed: it is damage */
};

void export_gaps_free(struct export_gaps *gaps);

/* Takes any entry: the first one says what is gone before it. */
void export_gaps_begin(struct export_gaps *gaps, const struct archive_item *item,
		       struct export_losses *losses);

/* What all channels lost by their own word, to @losses. */
void export_gaps_sum(const struct export_gaps *gaps, struct export_losses *losses);

/* Takes a record, a gap or a generation of channel @channel. Returns 0 or -ENOMEM. */
int export_gaps_note(struct export_gaps *gaps, uint32_t channel, const struct archive_item *item,
		     struct export_losses *losses);

#endif
