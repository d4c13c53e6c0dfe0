/* SPDX-License-Identifier: Apache-2.0 */
/* The hot loop of a router: a matrix of small integers times a vector. */
#ifndef PRODUCER_REFERENCE_DOT_H
#define PRODUCER_REFERENCE_DOT_H

#include <stdint.h>

/*
 * out[r] = sum over i of matrix[r][i] * vector[i], exactly. Values are those of
 * an int8, @columns is at most 65536.
 */
typedef void (*dot_rows_fn)(int32_t *out, const int16_t *matrix, uint32_t rows,
			    const int16_t *vector, uint32_t columns);

/* The fastest version for this processor. */
dot_rows_fn dot_rows_best(void);

#endif
