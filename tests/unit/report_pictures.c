/* SPDX-License-Identifier: Apache-2.0 */
/* Colours, and heatmaps as a PNG reader has them. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "report/heatmap.h"
#include "report/html.h"

/* ---- colours ---------------------------------------------------------------- */

static double light_of(uint8_t value)
{
	double share = value / 255.0;

	return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4);
}

/* From sRGB to Oklab: the way that the palette was not made. */
static void oklab_of(struct colour colour, double lab[3])
{
	double r = light_of(colour.red), g = light_of(colour.green), b = light_of(colour.blue);
	double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
	double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
	double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);

	lab[0] = 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
	lab[1] = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s;
	lab[2] = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
}

static double distance(struct colour one, struct colour other)
{
	double a[3], b[3];

	oklab_of(one, a);
	oklab_of(other, b);
	return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
		    (a[2] - b[2]) * (a[2] - b[2]));
}

Test(report_pictures, equal_steps_of_the_scale_are_equal_to_the_eye)
{
	struct colour palette[COLOURS];
	const uint32_t step = 28; /* 9 of them; bytes are too coarse for single ones */
	double first;

	colour_palette(palette);
	first = distance(palette[COLOUR_FIRST], palette[COLOUR_FIRST + step]);
	cr_assert_gt(first, 0.05);
	for (uint32_t i = 0; i + step < COLOUR_STEPS; i += step)
		cr_expect_float_eq(
			distance(palette[COLOUR_FIRST + i], palette[COLOUR_FIRST + i + step]),
			first, 0.05 * first, "from %u on", i);
}

Test(report_pictures, the_scale_gets_lighter_with_each_step_so_that_grey_print_shows_it_too)
{
	struct colour palette[COLOURS];
	double before = 0, lab[3];

	colour_palette(palette);
	/* Bytes are too coarse for single steps. */
	for (uint32_t i = 0; i < COLOUR_STEPS; i += 3) {
		oklab_of(palette[COLOUR_FIRST + i], lab);
		cr_expect_gt(lab[0], before, "step %u", i);
		before = lab[0];
		cr_expect_gt(distance(palette[COLOUR_FIRST + i], palette[COLOUR_NONE]), 0.05,
			     "step %u looks like nothing", i);
	}
}

Test(report_pictures, a_value_has_the_nearest_step_and_nothing_has_none)
{
	cr_expect_eq(colour_of(0, 2), COLOUR_NONE);
	cr_expect_eq(colour_of(-1, 2), COLOUR_NONE);
	cr_expect_eq(colour_of((double)NAN, 2), COLOUR_NONE);
	cr_expect_eq(colour_of(1, 0), COLOUR_NONE);
	cr_expect_eq(colour_of(1e-9, 2), 1);
	cr_expect_eq(colour_of(0.5, 2), 1 + 63);
	cr_expect_eq(colour_of(1, 2), 1 + 126);
	cr_expect_eq(colour_of(2, 2), 253);
	cr_expect_eq(colour_of(3, 2), 253);
}

/* ---- heatmaps ------------------------------------------------------------------ */

static void name(const void *ctx, uint32_t at, char text[HEATMAP_NAME])
{
	(void)ctx;
	snprintf(text, HEATMAP_NAME, "%u", at);
}

static struct heatmap heatmap_of(const double *value, uint32_t rows, uint32_t columns)
{
	return (struct heatmap){
		.title = "t\xc3\xaftle",
		.explained = "explained",
		.down = "layer",
		.across = "expert",
		.unit = "x mean",
		.none = "none",
		.rows = rows,
		.columns = columns,
		.value = value,
		.top = 2,
		.name_row = name,
		.name_column = name,
	};
}

/* Red, green, blue of each dot, as libpng reads them. */
static struct colour *read_png(const char *data, size_t bytes, png_image *image)
{
	struct colour *dot;

	*image = (png_image){.version = PNG_IMAGE_VERSION};
	cr_assert(png_image_begin_read_from_memory(image, data, bytes), "%s", image->message);
	image->format = PNG_FORMAT_RGB;
	dot = malloc(PNG_IMAGE_SIZE(*image));
	cr_assert(dot && png_image_finish_read(image, NULL, dot, 0, NULL), "%s", image->message);
	return dot;
}

static void expect_cell(const struct colour *dot, const png_image *image,
			const struct heatmap_place *place, uint32_t row, uint32_t column,
			uint8_t index)
{
	struct colour palette[COLOURS];

	colour_palette(palette);
	for (uint32_t y = 0; y < place->cell_height; y++)
		for (uint32_t x = 0; x < place->cell_width; x++)
			cr_assert_eq(
				memcmp(dot +
					       (size_t)(place->top + row * place->cell_height + y) *
						       image->width +
					       place->left + column * place->cell_width + x,
				       &palette[index], sizeof(*palette)),
				0, "row %u, column %u, dot %u, %u", row, column, x, y);
}

Test(report_pictures, every_dot_of_a_cell_has_its_colour_when_the_png_is_read)
{
	static const double value[] = {0, 0.5, 1, 2, 1.5, 0.004, 0.002, 5};
	/* 1 + round(252 * value / 2), by hand. */
	static const uint8_t index[] = {0, 64, 127, 253, 190, 2, 1, 253};
	struct heatmap heat = heatmap_of(value, 2, 4);
	struct heatmap_place place = heatmap_place(&heat);
	struct picture picture;
	struct r3ring_error err = {0};
	struct colour *dot;
	png_image image;
	char *png = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&png, &bytes);

	cr_assert_eq(heatmap_draw(&heat, &picture), 0);
	cr_assert_eq(picture_write_png(&picture, out, &err), 0, "%s", err.text);
	fclose(out);
	dot = read_png(png, bytes, &image);
	cr_assert_eq(image.width, place.width);
	cr_assert_eq(image.height, place.height);
	for (uint32_t i = 0; i < 8; i++)
		expect_cell(dot, &image, &place, i / 4, i % 4, index[i]);
	free(dot);
	free(png);
	picture_free(&picture);
}

Test(report_pictures, the_largest_models_have_a_dot_for_each_expert_at_least)
{
	static double value[92 * 896];
	struct heatmap heat = heatmap_of(value, 92, 896);
	struct heatmap_place place = heatmap_place(&heat);
	struct picture picture;

	cr_assert_eq(place.cell_width, 1);
	cr_assert_eq(place.cell_height, 6);
	cr_assert_geq(place.width, place.left + 896);
	cr_assert_geq(place.height, place.top + 92 * 6);
	cr_assert_eq(heatmap_draw(&heat, &picture), 0);
	picture_free(&picture);
}

Test(report_pictures, a_scale_that_begins_at_one_has_its_first_colour_there)
{
	static const double value[] = {0, 1, 1.5, 2};
	struct heatmap heat = heatmap_of(value, 1, 4);

	heat.base = 1;
	cr_expect_eq(heatmap_colour(&heat, 0), COLOUR_NONE);
	cr_expect_eq(heatmap_colour(&heat, 1), COLOUR_FIRST);
	cr_expect_eq(heatmap_colour(&heat, 1.5), 1 + 126);
	cr_expect_eq(heatmap_colour(&heat, 2), 253);
}

Test(report_pictures, what_lies_beyond_the_edges_is_left_out)
{
	struct picture picture;

	cr_assert_eq(picture_make(&picture, 10, 8), 0);
	picture_fill(&picture, 8, 6, 100, 100, COLOUR_INK);
	picture_fill(&picture, 10, 0, 1, 1, COLOUR_INK);
	picture_fill(&picture, 0, UINT32_MAX, 1, 1, COLOUR_INK);
	picture_text(&picture, 6, 4, 3, "a long text");
	cr_expect_eq(picture.dot[7 * 10 + 9], COLOUR_INK);
	cr_expect_eq(picture.dot[0], COLOUR_PAPER);
	picture_free(&picture);
}

/* ---- text -------------------------------------------------------------------------- */

static void expect_html(const char *text, const char *expected)
{
	char *html = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&html, &bytes);

	html_text(out, text);
	fclose(out);
	cr_expect_str_eq(html, expected);
	free(html);
}

Test(report_pictures, text_of_strangers_is_text_in_a_page)
{
	expect_html("plain \xc3\xa9 \xf0\x9f\x99\x82", "plain \xc3\xa9 \xf0\x9f\x99\x82");
	expect_html("<script>\"&'", "&lt;script&gt;&quot;&amp;&#39;");
	expect_html("\xff\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect_html("a\nb\x1b[0m\x7f", "a\xef\xbf\xbd"
				       "b\xef\xbf\xbd[0m\xef\xbf\xbd");
	/* U+202E turns the direction of writing round, U+0085 is a new line. */
	expect_html("\xe2\x80\xae\xc2\x85", "\xef\xbf\xbd\xef\xbf\xbd");
}

static void expect_number(uint64_t number, const char *expected)
{
	char *html = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&html, &bytes);

	html_number(out, number);
	fclose(out);
	cr_expect_str_eq(html, expected);
	free(html);
}

Test(report_pictures, numbers_are_told_in_groups_of_three)
{
	expect_number(0, "0");
	expect_number(999, "999");
	expect_number(1000, "1,000");
	expect_number(12003004, "12,003,004");
	expect_number(UINT64_MAX, "18,446,744,073,709,551,615");
}
