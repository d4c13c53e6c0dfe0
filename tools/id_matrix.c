/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of expert ids as JSON text.
 */
#include <r3ring/record.h>

#include "tools/id_matrix.h"

static void write_id(FILE *out, uint16_t id)
{
	char digits[8];
	size_t first = sizeof(digits);

	if (id == R3RING_MISSING) {
		fwrite_unlocked("-1", 1, 2, out);
		return;
	}
	do {
		digits[--first] = (char)('0' + id % 10);
		id = (uint16_t)(id / 10);
	} while (id);
	fwrite_unlocked(digits + first, 1, sizeof(digits) - first, out);
}

static void write_row(FILE *out, const uint16_t *ids, size_t columns)
{
	putc_unlocked('[', out);
	for (size_t column = 0; column < columns; column++) {
		if (column)
			putc_unlocked(',', out);
		write_id(out, ids[column]);
	}
	putc_unlocked(']', out);
}

void id_matrix_write(FILE *out, const uint16_t *ids, size_t rows, size_t columns)
{
	putc_unlocked('[', out);
	for (size_t row = 0; row < rows; row++) {
		if (row)
			putc_unlocked(',', out);
		write_row(out, ids + row * columns, columns);
	}
	putc_unlocked(']', out);
}
