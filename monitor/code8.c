/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/code8.h"

#define EXACT 32u     /* values below are their own code */
#define MANTISSAS 16u /* codes between a power of two and the next */

uint8_t code8_of(double value)
{
	uint32_t whole, shift;

	if (value >= CODE8_MAX)
		return UINT8_MAX;
	whole = value > 0 ? (uint32_t)(value + 0.5) : 0;
	if (whole < EXACT)
		return (uint8_t)whole;
	shift = 27u - (uint32_t)__builtin_clz(whole);
	/* The half that rounds may carry into the next power of two: so does the code. */
	whole = (whole + (1u << shift) / 2) >> shift;
	return (uint8_t)(shift * MANTISSAS + whole);
}

uint32_t code8_value(uint8_t code)
{
	uint32_t shift = code / MANTISSAS;

	return code < EXACT ? code : (MANTISSAS + code % MANTISSAS) << (shift - 1);
}

double code8_encode(const double *values, size_t count, uint8_t *codes)
{
	double most = 0, unit = 1;

	for (size_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	while (most / unit > CODE8_MAX)
		unit *= 2;
	for (size_t i = 0; i < count; i++)
		codes[i] = code8_of(values[i] / unit);
	return unit;
}
