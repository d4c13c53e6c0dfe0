/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/memory.h"
#include "consumer/signature/marks.h"

#define BLOCK_POSITIONS 64u
#define BLOCK_BYTES (2 * sizeof(uint64_t))

static uint32_t blocks_for(const struct marks *marks, uint32_t position)
{
	uint32_t blocks = marks->blocks ? marks->blocks : 1;

	while (blocks <= position / BLOCK_POSITIONS)
		blocks *= 2;
	return blocks;
}

uint64_t marks_bytes(const struct marks *marks)
{
	return heap_bytes(marks->blocks * BLOCK_BYTES);
}

uint64_t marks_growth(const struct marks *marks, uint32_t position)
{
	return heap_bytes(blocks_for(marks, position) * BLOCK_BYTES) - marks_bytes(marks);
}

int marks_reach(struct marks *marks, uint32_t position)
{
	const uint32_t blocks = blocks_for(marks, position);
	uint64_t *bits = marks->bits;

	if (blocks == marks->blocks)
		return 0;
	bits = realloc(bits, blocks * BLOCK_BYTES);
	if (!bits)
		return -ENOMEM;
	memset(bits + marks->blocks * 2, 0, (blocks - marks->blocks) * BLOCK_BYTES);
	marks->bits = bits;
	marks->blocks = blocks;
	return 0;
}

enum mark marks_get(const struct marks *marks, uint32_t position)
{
	const uint32_t block = position / BLOCK_POSITIONS;
	const uint64_t bit = UINT64_C(1) << (position % BLOCK_POSITIONS);

	if (block >= marks->blocks)
		return MARK_NONE;
	if (marks->bits[block * 2 + 1] & bit)
		return MARK_WHOLE;
	return marks->bits[block * 2] & bit ? MARK_PART : MARK_NONE;
}

void marks_set(struct marks *marks, uint32_t position, enum mark mark)
{
	uint64_t *block = &marks->bits[position / BLOCK_POSITIONS * 2];
	const uint64_t bit = UINT64_C(1) << (position % BLOCK_POSITIONS);

	marks->part -= (block[0] & bit) != 0;
	marks->whole -= (block[1] & bit) != 0;
	block[0] = mark == MARK_PART ? block[0] | bit : block[0] & ~bit;
	block[1] = mark == MARK_WHOLE ? block[1] | bit : block[1] & ~bit;
	marks->part += mark == MARK_PART;
	marks->whole += mark == MARK_WHOLE;
}

void marks_cut(struct marks *marks, uint32_t end)
{
	for (uint32_t position = end; position < marks->end; position++)
		if (marks_get(marks, position) != MARK_NONE)
			marks_set(marks, position, MARK_NONE);
	if (marks->end > end)
		marks->end = end;
}

uint64_t marks_missing(const struct marks *marks)
{
	return marks->end - marks->whole;
}
