/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of expert ids as JSON text, written fast.
 */
#ifndef TOOLS_ID_MATRIX_H
#define TOOLS_ID_MATRIX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes ids[rows][columns] as an array of arrays; a missing id is -1. Not for
 * a stream that another thread writes to. Errors stay with the stream (ferror).
 */
void id_matrix_write(FILE *out, const uint16_t *ids, size_t rows, size_t columns);

#endif
