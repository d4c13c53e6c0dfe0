/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "report/font.h"
#include "report/picture.h"

int picture_make(struct picture *picture, uint32_t width, uint32_t height)
{
	uint8_t *dot = malloc((size_t)width * height);

	if (!dot)
		return -ENOMEM;
	memset(dot, COLOUR_PAPER, (size_t)width * height);
	*picture = (struct picture){width, height, dot};
	return 0;
}

void picture_free(struct picture *picture)
{
	free(picture->dot);
	*picture = (struct picture){0};
}

void picture_fill(struct picture *picture, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
		  uint8_t colour)
{
	if (x >= picture->width || y >= picture->height)
		return;
	if (width > picture->width - x)
		width = picture->width - x;
	if (height > picture->height - y)
		height = picture->height - y;
	for (uint32_t row = y; row < y + height; row++)
		memset(picture->dot + (size_t)row * picture->width + x, colour, width);
}

/* ---- text ------------------------------------------------------------------ */

static void put_letter(struct picture *picture, uint32_t x, uint32_t y, uint32_t scale, char letter)
{
	const uint8_t *glyph = font_glyph(letter);

	for (uint32_t row = 0; row < FONT_HEIGHT; row++) {
		for (uint32_t column = 0; column < FONT_WIDTH; column++) {
			if (glyph[row] >> (FONT_WIDTH - 1 - column) & 1)
				picture_fill(picture, x + column * scale, y + row * scale, scale,
					     scale, COLOUR_INK);
		}
	}
}

void picture_text(struct picture *picture, uint32_t x, uint32_t y, uint32_t scale, const char *text)
{
	for (; *text; text++) {
		/* One '?' for each character of UTF-8. */
		if ((*text & 0xC0) == 0x80)
			continue;
		put_letter(picture, x, y, scale, *text);
		x += (FONT_WIDTH + 1) * scale;
	}
}

uint32_t picture_text_width(const char *text, uint32_t scale)
{
	uint32_t letters = 0;

	for (; *text; text++)
		letters += (*text & 0xC0) != 0x80;
	return letters * (FONT_WIDTH + 1) * scale;
}

/* ---- PNG --------------------------------------------------------------------- */

int picture_write_png(const struct picture *picture, FILE *out, struct r3ring_error *err)
{
	struct colour palette[COLOURS];
	png_image image = {
		.version = PNG_IMAGE_VERSION,
		.width = picture->width,
		.height = picture->height,
		.format = PNG_FORMAT_RGB_COLORMAP,
		.colormap_entries = COLOURS,
	};

	colour_palette(palette);
	if (png_image_write_to_stdio(&image, out, 0, picture->dot, (png_int_32)picture->width,
				     palette))
		return 0;
	return r3ring_error_set(err, -EIO, "PNG of %u x %u: %s", picture->width, picture->height,
				image.message);
}
