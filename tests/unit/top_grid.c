/* SPDX-License-Identifier: Apache-2.0 */
/* The grid that a frame is drawn onto: what is shown of which text. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/top_grid.h"

static struct grid grid;

static void open_grid(const char *locale, uint32_t rows, uint32_t columns)
{
	cr_assert_not_null(setlocale(LC_CTYPE, locale));
	cr_assert_eq(grid_make(&grid, rows, columns), 0);
}

static void expect(const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	grid_dump(&grid, out);
	fclose(out);
	cr_expect_str_eq(text, expected);
	free(text);
}

static void close_grid(void)
{
	grid_free(&grid);
}

TestSuite(top_grid, .fini = close_grid);

Test(top_grid, text_ends_where_the_row_does)
{
	open_grid("C.UTF-8", 2, 8);
	cr_expect_eq(grid_text(&grid, 0, 5, GRID_BAD, "abcdef"), 8);
	cr_expect_eq(grid_text(&grid, 1, 20, GRID_BAD, "abc"), 20);
	grid_text(&grid, 7, 0, GRID_BAD, "abc");
	expect("     abc\n");
	cr_expect_eq(grid_at(&grid, 0, 5)->style, GRID_BAD);
	cr_expect_eq(grid_at(&grid, 0, 4)->style, GRID_PLAIN);
}

Test(top_grid, a_field_says_that_it_was_cut)
{
	open_grid("C.UTF-8", 2, 20);
	cr_expect_eq(grid_field(&grid, 0, 0, 6, GRID_PLAIN, "instance"), 6);
	grid_field(&grid, 0, 7, 8, GRID_PLAIN, "instance");
	grid_field(&grid, 1, 17, 8, GRID_PLAIN, "instance");
	expect("insta~ instance\n                 in~\n");
}

/* Escapes, C1 controls, right-to-left overrides, bytes that are no UTF-8, and what is not seen: a
 * soft hyphen and a filler, which have a width, and a tag. */
Test(top_grid, what_would_steer_a_terminal_is_shown_and_not_sent)
{
	open_grid("C.UTF-8", 1, 60);
	grid_text(&grid, 0, 0, GRID_PLAIN,
		  "a\x1b[2Jb\tc\x7f"
		  "d\xc2\x9b"
		  "e\xe2\x80\xae"
		  "f\xff"
		  "g\xcc\x81"
		  "h\xc2\xad"
		  "i\xe3\x85\xa4"
		  "j\xf3\xa0\x81\x81"
		  "k");
	expect("a\\x1b[2Jb\\x09c\\x7fd?e?f?g?h?i?j?k\n");
}

Test(top_grid, wide_characters_take_two_columns_or_none)
{
	open_grid("C.UTF-8", 2, 6);
	cr_expect_eq(grid_text(&grid, 0, 0, GRID_PLAIN, "a模b"), 4);
	cr_expect_eq(grid_at(&grid, 0, 2)->text, 0);
	cr_expect_eq(grid_text(&grid, 1, 3, GRID_PLAIN, "ab模"), 5, "half of it would not do");
	expect("a模b\n   ab\n");
	grid_text(&grid, 0, 2, GRID_PLAIN, "x");
	expect("a xb\n   ab\n");
}

Test(top_grid, a_plain_locale_gets_plain_characters)
{
	open_grid("C", 2, 20);
	cr_expect_not(grid.utf8);
	grid_text(&grid, 0, 0, GRID_PLAIN, "a\xe6\xa8\xa1z");
	for (uint32_t level = 0; level <= 10; level++)
		grid_heat(&grid, 1, level, level);
	expect("a???z\n .:-=+*#@@@\n");
}

Test(top_grid, heat_is_told_by_character_and_style)
{
	open_grid("C.UTF-8", 1, 12);
	for (uint32_t level = 0; level <= 8; level++)
		grid_heat(&grid, 0, level, level);
	grid_heat(&grid, 0, 12, 1);
	grid_heat(&grid, 1, 0, 1);
	expect(" ▁▂▃▄▅▆▇█\n");
	cr_expect_eq(grid_at(&grid, 0, 8)->style, GRID_STYLES - 1);
}

Test(top_grid, a_grid_that_grows_keeps_what_it_has_and_is_blank_below)
{
	open_grid("C.UTF-8", 1, 4);
	grid_text(&grid, 0, 0, GRID_BAD, "abcd");
	cr_assert_eq(grid_grow(&grid, 2), 0);
	cr_expect_eq(grid.rows, 3);
	grid_text(&grid, 2, 3, GRID_BAD, "x");
	expect("abcd\n\n   x\n");
}
