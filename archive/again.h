/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a channel of an archive tells twice: behind a daemon's end in good order the next generation
 * begins the requests that live again, and tells the step that was open from its beginning, under
 * the number that it had.
 */
#ifndef ARCHIVE_AGAIN_H
#define ARCHIVE_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/record.h>

#include "archive/reader.h"

struct archive_told_again {
	uint64_t steps, rows; /* announced */
	uint64_t attempts;    /* begun */
};

/* A channel's. Zeroed it is a new one. */
struct archive_again {
	uint64_t generation, newest; /* step, of the newest generation that had one */
	uint64_t told;               /* the newest that the one before told of */
	bool carrying;               /* nothing came behind SCHEMA yet but what lives on */
};

/* Takes the channel's next record, and adds to @told. */
void archive_again_take(struct archive_again *again, const struct archive_item *item,
			const struct r3ring_record *record, struct archive_told_again *told);

#endif
