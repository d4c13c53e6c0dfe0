/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame of `r3ring top` says of load that is not that of now. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/top_shown.h"

TestSuite(top_past, .fini = top_shown_free);

Test(top_past, failure_28_load_that_is_old_is_said_to_be)
{
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	stage.frame.now_ns += 2900000000ull;
	top_stage_draw(&stage, 24, 80);
	expect_not_shown("OLD");
	stage.frame.now_ns += 1100000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | OLD (4 s): layers even; worst "
						   "layer 4: 2.00x mean");
	expect_shown("OLD: 4");
}

Test(top_past, load_of_an_engine_that_ended_is_said_to_be_and_not_called_old)
{
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	stage.frame.ended = true;
	stage.frame.now_ns += 4000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | ENDED (4 s): layers even; worst "
						   "layer 4: 2.00x mean");
	expect_shown("ENDED: 4");
	expect_not_shown("OLD");
}

Test(top_past, an_engine_that_ended_without_a_step_is_said_to_have)
{
	top_stage_make(&stage, TOP_QUIET);
	stage.frame.ended = true;
	top_stage_draw(&stage, 24, 80);
	expect_shown("no load to show: the engine has ended");
}
