/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of the colours of colour.h: dots, rectangles, text; written as PNG. */
#ifndef REPORT_PICTURE_H
#define REPORT_PICTURE_H

#include <stdio.h>

#include <r3ring/error.h>

#include "report/colour.h"

struct picture {
	uint32_t width, height;
	uint8_t *dot; /* [height][width] enum colour_index */
};

/* An empty sheet of paper. Returns 0 or -ENOMEM; pairs with picture_free(). */
int picture_make(struct picture *picture, uint32_t width, uint32_t height);
void picture_free(struct picture *picture);

/* What lies beyond the edges is left out. */
void picture_fill(struct picture *picture, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
		  uint8_t colour);

/* Text of ASCII, each dot of its letters @scale wide; @x, @y: its upper left. */
void picture_text(struct picture *picture, uint32_t x, uint32_t y, uint32_t scale,
		  const char *text);
/* How wide it is. */
uint32_t picture_text_width(const char *text, uint32_t scale);

/* Returns 0, -ENOMEM or -EIO, with the reason. */
int picture_write_png(const struct picture *picture, FILE *out, struct r3ring_error *err);

#endif
