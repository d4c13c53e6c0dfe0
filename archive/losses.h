/* SPDX-License-Identifier: Apache-2.0 */
/* What a channel of an archive lost, by its entries. */
#ifndef ARCHIVE_LOSSES_H
#define ARCHIVE_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/reader.h"
#include "consumer/channel_losses.h"

/* Zeroed it is a new one. */
struct archive_losses {
	bool said; /* its generation: */
	uint64_t generation;
	uint8_t uuid[16];
	struct channel_losses of;
};

/*
 * Takes the channel's next entry, of any kind.
 *
 * @record: what a RECORD was decoded to; NULL where that failed, or of other kinds.
 * @counts: as channel_losses_gap().
 */
void archive_losses_take(struct archive_losses *losses, const struct archive_item *item,
			 const struct r3ring_record *record, bool counts);

#endif
