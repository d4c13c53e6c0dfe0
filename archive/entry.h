/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a block: whether they are ones that can be. */
#ifndef ARCHIVE_ENTRY_H
#define ARCHIVE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format.h"

/* Bytes of an entry with its head and its padding. */
uint64_t archive_entry_bytes(const struct archive_entry *entry);

/* Whether others are read by it, as in format.h. */
bool archive_entry_is_state(const struct archive_entry *entry);

/* What is in a block. */
struct archive_content {
	uint32_t records; /* RECORD and SKIPPED, without those repeated */
	bool state;       /* entries that others are read by, as in format.h */
};

/*
 * Checks the @count entries in @bytes, which they have to fill exactly: kinds, sizes,
 * padding, what their payloads must have. Record payloads are not decoded.
 * @content: receives what they are.
 * Returns NULL, or what is wrong ("has ...").
 */
const char *archive_entries_check(const uint8_t *bytes, uint32_t size, uint32_t count,
				  struct archive_content *content);

#endif
