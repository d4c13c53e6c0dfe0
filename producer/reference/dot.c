/* SPDX-License-Identifier: Apache-2.0 */
/* Integer matrix times vector; one body, compiled for several processors. */
#include "producer/reference/dot.h"

#if defined(__GNUC__) && !defined(__clang__)
#define VECTORISED __attribute__((optimize("O3")))
#else
#define VECTORISED
#endif

#define DOT_ROWS_BODY                                                                              \
	for (uint32_t r = 0; r < rows; r++, matrix += columns) {                                   \
		int32_t sum = 0;                                                                   \
                                                                                                   \
		for (uint32_t i = 0; i < columns; i++)                                             \
			sum += matrix[i] * vector[i];                                              \
		out[r] = sum;                                                                      \
	}

VECTORISED static void dot_rows_plain(int32_t *restrict out, const int16_t *restrict matrix,
				      uint32_t rows, const int16_t *restrict vector,
				      uint32_t columns){DOT_ROWS_BODY}

#if defined(__x86_64__)
VECTORISED
	__attribute__((target("avx2"))) static void dot_rows_avx2(int32_t *restrict out,
								  const int16_t *restrict matrix,
								  uint32_t rows,
								  const int16_t *restrict vector,
								  uint32_t columns){DOT_ROWS_BODY}

VECTORISED __attribute__((target("avx512bw"))) static void dot_rows_avx512(
	int32_t *restrict out, const int16_t *restrict matrix, uint32_t rows,
	const int16_t *restrict vector, uint32_t columns){DOT_ROWS_BODY}
#endif

dot_rows_fn dot_rows_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512bw"))
		return dot_rows_avx512;
	if (__builtin_cpu_supports("avx2"))
		return dot_rows_avx2;
#endif
	return dot_rows_plain;
}
