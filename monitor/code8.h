/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts in a byte: small ones exactly, larger ones to 1/32 of themselves; for what is kept
 * of the past, and looked at.
 *
 *	code		0..31	32..47		48..63		...	240..255
 *	stands for	0..31	32, 34, .. 62	64, 68, .. 124		(16 + code % 16) << 14
 */
#ifndef MONITOR_CODE8_H
#define MONITOR_CODE8_H

#include <stddef.h>
#include <stdint.h>

#define CODE8_MAX (31u << 14)

/* The code nearest to @value, halves upwards; that of CODE8_MAX beyond it. */
uint8_t code8_of(double value);

uint32_t code8_value(uint8_t code);

/*
 * Encodes @count values. Returns the unit that they are told in: 1, or the power of two by
 * which the largest of them was divided to be no more than CODE8_MAX.
 */
double code8_encode(const double *values, size_t count, uint8_t *codes);

#endif
