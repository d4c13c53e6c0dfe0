/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of a LAYER record into rows: where the assembler's time goes. */
#ifndef CONSUMER_ASSEMBLER_FILL_H
#define CONSUMER_ASSEMBLER_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Puts ids[rows][top_k] at element @place of each row's ids; to[rows], NULL for a row
 * that has none.
 *
 * @loose: up to ROW_STORE bytes behind a row's new ids may be overwritten: the layer that
 *         lies there comes later, or the row ends there.
 */
void fill_rows(uint16_t *const *to, size_t place, const uint16_t *ids, uint32_t rows,
	       uint32_t top_k, bool loose);

/* Whether any id is no expert. */
bool fill_any_stranger(const uint16_t *ids, size_t count, uint32_t experts);

#endif
