/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of `r3ring top` that are longer than the screen. */
#include <criterion/criterion.h>

#include <string.h>

#include "tests/support/top_stage.h"

static struct top_stage stage;
static struct page_part part;

static void make(enum top_page page)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"readers\":["
			       "{\"pid\":101},{\"pid\":102},{\"pid\":103},{\"pid\":104},"
			       "{\"pid\":105},{\"pid\":106},{\"pid\":107}]}]}");
	stage.frame.page = page;
	stage.frame.keys = true;
	stage.frame.part = &part;
}

static void free_stage(void)
{
	top_stage_free(&stage);
}

TestSuite(top_page, .fini = free_stage);

static void expect_begin(uint32_t row, const char *begin)
{
	cr_expect_eq(strncmp(top_stage_row(&stage, row), begin, strlen(begin)), 0,
		     "row %u is no \"%s\":\n%s", row, begin, stage.text);
}

Test(top_page, it_is_shown_from_where_it_was_scrolled_to_and_says_so)
{
	make(TOP_HELP);
	top_stage_draw(&stage, 10, 80);
	expect_begin(2, "q          quit");
	expect_begin(9, "rows 1-7 of ");
	part.first = 2;
	top_stage_draw(&stage, 10, 80);
	expect_begin(2, "i          the next instance");
	expect_begin(9, "rows 3-9 of ");
}

Test(top_page, it_ends_with_its_last_row_however_far_it_was_scrolled)
{
	make(TOP_HELP);
	part.first = 1000;
	top_stage_draw(&stage, 10, 80);
	cr_expect(strstr(top_stage_row(&stage, 8), "Nothing that is done here"), "%s", stage.text);
	cr_expect_eq(part.first, part.all - 7);
}

Test(top_page, one_that_has_room_is_shown_from_its_beginning_with_the_keys)
{
	make(TOP_HELP);
	part.first = 5;
	top_stage_draw(&stage, 50, 80);
	expect_begin(2, "q          quit");
	expect_begin(49, "q back ");
}

Test(top_page, the_head_of_a_table_stays_while_its_lines_are_scrolled)
{
	make(TOP_TABLE);
	part.first = 1000;
	top_stage_draw(&stage, 8, 80);
	expect_begin(2, "CHANNEL");
	cr_expect(strstr(top_stage_row(&stage, 6), "reader 107 "), "%s", stage.text);
	expect_begin(7, "rows 5-8 of 8");
}
