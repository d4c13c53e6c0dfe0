/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of a LAYER record into tiles, and of tiles into rows: where the assembler's time goes. */
#ifndef CONSUMER_ASSEMBLER_FILL_H
#define CONSUMER_ASSEMBLER_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/assembler/rows.h"

/*
 * Copies a layer's ids of rows to where they belong. Returns whether any that found a place is
 * none of @experts, at most 65535.
 *
 * @tile:  the first of a step's, in their order, by `next`; NULL: there is no place.
 * @first: row of the step.
 */
bool tiles_fill(struct tile *tile, uint32_t layer, uint32_t first, uint32_t rows,
		const uint16_t *ids, uint32_t experts);

/*
 * Copies @rows cells of @top_k ids, each from its place to @apart ids behind the one before.
 *
 * @from:  [rows] places in @ids.
 * @loose: 16 bytes of a cell may be read, and 16 bytes written: what lies behind it there is
 *         written later.
 */
void ids_gather(uint16_t *to, size_t apart, const uint16_t *ids, const uint32_t *from,
		uint32_t rows, uint32_t top_k, bool loose);

#endif
