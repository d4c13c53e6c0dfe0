/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "archive/index_columns.h"

#define NEVER UINT64_MAX
#define COLUMN(member, none, carried)                                                              \
	{                                                                                          \
#member, offsetof(struct index_part, member),                                      \
			sizeof(((struct index_part *)0)->member), none, carried                    \
	}

const struct index_column index_columns[INDEX_COLUMNS] = {
	COLUMN(generation, NEVER, false),
	COLUMN(first_step, 0, false),
	COLUMN(last_step, 0, false),
	COLUMN(first_position, UINT64_MAX, false),
	COLUMN(end_position, 0, false),
	COLUMN(rows, NEVER, false),
	COLUMN(layer_rows, NEVER, false),
	COLUMN(carried_rows, NEVER, true),
	COLUMN(carried_layer_rows, NEVER, true),
	COLUMN(weight_min, UINT64_MAX, false),
	COLUMN(weight_max, NEVER, false),
	COLUMN(first_offset, NEVER, false),
	COLUMN(last_offset, NEVER, false),
	COLUMN(begin_ns, 0, false),
	COLUMN(end_ns, 0, false),
	COLUMN(prompt_tokens, R3RING_UNKNOWN_U32, false),
	COLUMN(accepted_tokens, R3RING_UNKNOWN_U32, false),
	COLUMN(attempts, NEVER, false),
	COLUMN(end_reason, 0, false),
};

uint64_t index_column_value(const struct index_part *part, const struct index_column *column)
{
	uint64_t value = 0;

	/* Little-endian, as all of an archive. */
	memcpy(&value, (const uint8_t *)part + column->offset, column->bytes);
	return value;
}
