/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of `r3ring top`: which of several things is said, and where it is broken. */
#include <criterion/criterion.h>

#include <string.h>

#include "tests/unit/top_shown.h"

TestSuite(top_verdict, .fini = top_shown_free);

/* Of two GPUs the first has @first of 4000 tokens. */
static void make_gpus(double first)
{
	const double counts[4] = {first / 2, first / 2, 2000 - first / 2, 2000 - first / 2};

	top_stage_free(&stage);
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 1, 4, counts);
	top_stage_gpus(&stage, 2);
	top_stage_draw(&stage, 24, 80);
}

Test(top_verdict, gpus_are_uneven_from_where_the_alert_is_though_experts_are_even)
{
	make_gpus(3000);
	cr_expect_str_eq(
		top_stage_row(&stage, 0),
		"nothing lost | layers even; worst layer 3: 1.50x mean | GPUs even: 1.50x");
	cr_expect_eq(style_at(0, 60), GRID_GOOD);
	make_gpus(3040);
	cr_expect_str_eq(
		top_stage_row(&stage, 0),
		"nothing lost | layers even; worst layer 3: 1.52x mean | GPUs UNEVEN: 1.52x");
	cr_expect_eq(style_at(0, 60), GRID_WARN);
	cr_expect_eq(style_at(23, 0), GRID_WARN, "%s", stage.text);
}

/* As wide as a row, and a column wider; each clause begins a row, or stands behind a bar. */
Test(top_verdict, the_verdict_breaks_between_clauses_only)
{
	make_gpus(3040);
	top_stage_draw(&stage, 24, 74);
	cr_expect_str_eq(
		top_stage_row(&stage, 0),
		"nothing lost | layers even; worst layer 3: 1.52x mean | GPUs UNEVEN: 1.52x");
	top_stage_draw(&stage, 24, 73);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | layers even; worst layer 3: 1.52x mean");
	cr_expect_str_eq(top_stage_row(&stage, 1), "GPUs UNEVEN: 1.52x");
	top_stage_draw(&stage, 24, 40);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost");
	cr_expect_str_eq(top_stage_row(&stage, 1), "layers even; worst layer 3: 1.52x mean");
	cr_expect_str_eq(top_stage_row(&stage, 2), "GPUs UNEVEN: 1.52x");
	top_stage_draw(&stage, 24, 20);
	cr_expect_str_eq(top_stage_row(&stage, 1), "layers even; worst", "it is wider than a row");
	cr_expect_str_eq(top_stage_row(&stage, 2), "layer 3: 1.52x mean");
}

Test(top_verdict, a_window_without_tokens_is_not_called_even)
{
	const double counts[4] = {0};

	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 1, 4, counts);
	stage.frame.now_ns += 4000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | no load in this window");
}

/* A step in a hundred is lost just now; the load is even. */
static void make_losing(void)
{
	const double counts[4] = {1000, 1000, 1000, 1000};

	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{"
			       "\"ring_full\":{\"steps\":1,\"rows\":4}}}]}");
	top_stage_load(&stage, 3, 1, 4, counts);
	stage.losses.newest_ns = stage.frame.now_ns;
	stage.losses.seconds[0] = (struct losses_second){
		.second = stage.frame.now_ns / 1000000000u,
		.sum = {.steps = 100, .lost = 1},
	};
	stage.losses.seconds[0].sum.steps_of[R3RING_CAUSE_RING_FULL] = 1;
}

Test(top_verdict, what_is_being_lost_goes_before_what_is_old)
{
	make_losing();
	top_stage_draw(&stage, 24, 100);
	cr_expect_str_eq(top_stage_row(&stage, 0), "LOSING 1.0 % of steps (ring_full) | "
						   "layers even; worst layer 3: 1.00x mean");
	stage.frame.now_ns += 4000000000ull;
	top_stage_draw(&stage, 24, 100);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "LOSING 1.0 % of steps (ring_full) | no load for 4 s");
	stage.frame.now_ns += 7000000000ull;
	top_stage_draw(&stage, 24, 100);
	cr_expect_str_eq(top_stage_row(&stage, 0), "lost 1 step, none for 11 s | OLD (11 s): "
						   "layers even; worst layer 3: 1.00x mean");
}

Test(top_verdict, where_there_are_more_engines_it_says_whose_balance_it_is)
{
	const double counts[4] = {1000, 1000, 1000, 1000};

	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"b/0\"},{\"channel\":"
			       "\"a/0\"},{\"channel\":\"b/1\"},{\"channel\":\"ab/0\"}]}");
	top_stage_load(&stage, 3, 1, 4, counts);
	top_stage_draw(&stage, 24, 100);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | a: layers even; worst layer 3: "
						   "1.00x mean | 2 other engines");
	stage.frame.keys = true;
	stage.frame.instance = "b";
	top_stage_draw(&stage, 24, 100);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | b: layers even; worst layer 3: "
						   "1.00x mean | 2 other engines (key i)");
}
