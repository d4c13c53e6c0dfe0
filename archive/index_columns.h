/* SPDX-License-Identifier: Apache-2.0 */
/* Which member of a part is in which column. */
#ifndef ARCHIVE_INDEX_COLUMNS_H
#define ARCHIVE_INDEX_COLUMNS_H

#include "archive/index_tally.h"

struct index_column {
	const char *name;
	uint16_t offset, bytes; /* of the member */
	uint64_t none;          /* the value that is NULL in the table */
	bool carried;           /* comes from what the segment before announced */
};

#define INDEX_COLUMNS 19u

extern const struct index_column index_columns[INDEX_COLUMNS];

/* The member's value. */
uint64_t index_column_value(const struct index_part *part, const struct index_column *column);

#endif
