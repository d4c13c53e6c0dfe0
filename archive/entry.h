/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a block: whether they are ones that can be. */
#ifndef ARCHIVE_ENTRY_H
#define ARCHIVE_ENTRY_H

#include <stdint.h>

#include "archive/format.h"

/* Bytes of an entry with its head and its padding. */
uint64_t archive_entry_bytes(const struct archive_entry *entry);

/*
 * Checks the @count entries in @bytes, which they have to fill exactly: kinds, sizes,
 * padding, what their payloads must have. Record payloads are not decoded.
 * @records: receives how many of them are RECORD or SKIPPED, without those repeated.
 * Returns NULL, or what is wrong ("has ...").
 */
const char *archive_entries_check(const uint8_t *bytes, uint32_t size, uint32_t count,
				  uint64_t *records);

#endif
