/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The colours of every heatmap: from dark blue to light yellow, even to the eye, also to
 * one that sees no hues: equal steps of the value are equal steps of lightness and of
 * colour.
 */
#ifndef REPORT_COLOUR_H
#define REPORT_COLOUR_H

#include <stdint.h>

#define COLOUR_STEPS 253u /* of the scale; a value of 0 has the first, the largest the last */

/* What a picture's dots are. */
enum colour_index {
	COLOUR_NONE = 0, /* nothing at all: grey, which the scale has not */
	COLOUR_FIRST = 1,
	COLOUR_PAPER = COLOUR_FIRST + COLOUR_STEPS,
	COLOUR_INK,
	COLOURS,
};

struct colour {
	uint8_t red, green, blue;
};

/* The sRGB colours of all indexes. */
void colour_palette(struct colour palette[COLOURS]);

/* The index for @value of a scale from 0 to @top, rounded to the nearest step; beyond @top
 * its last. COLOUR_NONE for 0 and below, and for no number. */
uint8_t colour_of(double value, double top);

#endif
