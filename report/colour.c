/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line through Oklab of constant chroma, its lightness and its hue rising evenly: so
 * each step is as long as any other.
 *
 * Source: Ottosson, A perceptual color space for image processing, 2020
 * (https://bottosson.github.io/posts/oklab/); the transfer function: IEC 61966-2-1 (sRGB).
 */
#include <math.h>

#include "report/colour.h"

#define LIGHTNESS_FROM 0.25
#define LIGHTNESS_TO 0.93
#define CHROMA 0.085
#define HUE_FROM 5.0 /* radians: blue */
#define HUE_TO 1.8   /* yellow, by way of green */

static double cube(double x)
{
	return x * x * x;
}

/* A linear share of light as a byte. */
static uint8_t encoded(double light)
{
	double value;

	light = fmin(fmax(light, 0), 1);
	value = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
	return (uint8_t)lround(255 * value);
}

static struct colour of_oklab(double lightness, double a, double b)
{
	double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
	double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
	double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);

	return (struct colour){
		.red = encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
		.green = encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
		.blue = encoded(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
	};
}

void colour_palette(struct colour palette[COLOURS])
{
	palette[COLOUR_NONE] = (struct colour){0x8c, 0x8c, 0x8c};
	for (uint32_t i = 0; i < COLOUR_STEPS; i++) {
		double share = (double)i / (COLOUR_STEPS - 1);
		double hue = HUE_FROM + share * (HUE_TO - HUE_FROM);

		palette[COLOUR_FIRST + i] =
			of_oklab(LIGHTNESS_FROM + share * (LIGHTNESS_TO - LIGHTNESS_FROM),
				 CHROMA * cos(hue), CHROMA * sin(hue));
	}
	palette[COLOUR_PAPER] = (struct colour){0xff, 0xff, 0xff};
	palette[COLOUR_INK] = (struct colour){0x20, 0x20, 0x20};
}

uint8_t colour_of(double value, double top)
{
	double share;

	if (!(value > 0) || !(top > 0))
		return COLOUR_NONE;
	share = value < top ? value / top : 1;
	return (uint8_t)(COLOUR_FIRST + lround(share * (COLOUR_STEPS - 1)));
}
