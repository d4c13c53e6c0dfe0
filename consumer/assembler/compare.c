/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of two passes over one token, under the same weights: they must agree. */
#include <string.h>

#include "consumer/assembler/rows.h"

uint32_t rows_differing(const struct row *row, const struct row *other)
{
	const struct row_pool *pool = row_tile(row)->pool;
	uint32_t count = 0;

	if (row_tile(other)->pool != pool || row->empty || other->empty)
		return 0;
	for (uint32_t layer = 0; layer < pool->layers; layer++)
		count += row_cell_valid(row, layer) && row_cell_valid(other, layer) &&
			 memcmp(row_ids(row, layer), row_ids(other, layer),
				pool->top_k * sizeof(uint16_t)) != 0;
	return count;
}

bool row_has_more(const struct row *row, const struct row *other)
{
	const struct row_pool *pool = row_tile(row)->pool;

	if (row_tile(other)->pool != pool || row->empty)
		return row_has_any(other);
	for (uint32_t layer = 0; layer < pool->layers; layer++)
		if (row_cell_valid(other, layer) && !row_cell_valid(row, layer))
			return true;
	return false;
}
