/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame of `r3ring top` says of load that is not that of now. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/top_stage.h"

#define QUIET                                                                                      \
	"{\"daemon\":{\"pid\":7},\"channels\":[{\"channel\":\"a/0\",\"model\":\"m\","              \
	"\"state\":\"live\",\"generation\":3,\"steps\":10,\"bound_layers\":[3,4]}]}"

static const double counts[2 * 4] = {1000, 1000, 1000, 1000, 400, 2000, 1200, 400};

static struct top_stage stage;

static void free_stage(void)
{
	top_stage_free(&stage);
}

TestSuite(top_past, .fini = free_stage);

static void expect(const char *part)
{
	cr_expect(strstr(stage.text, part), "no \"%s\" in\n%s", part, stage.text);
}

static void expect_not(const char *part)
{
	cr_expect_not(strstr(stage.text, part), "\"%s\" in\n%s", part, stage.text);
}

Test(top_past, failure_28_load_that_is_old_is_said_to_be)
{
	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 2, 4, counts);
	stage.frame.now_ns += 2900000000ull;
	top_stage_draw(&stage, 24, 80);
	expect_not("OLD");
	stage.frame.now_ns += 1100000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | OLD (4 s): layers even; worst "
						   "layer 4: 2.00x mean");
	expect("OLD: 4");
}

Test(top_past, load_of_an_engine_that_ended_is_said_to_be_and_not_called_old)
{
	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 2, 4, counts);
	stage.frame.ended = true;
	stage.frame.now_ns += 4000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | ENDED (4 s): layers even; worst "
						   "layer 4: 2.00x mean");
	expect("ENDED: 4");
	expect_not("OLD");
}

Test(top_past, an_engine_that_ended_without_a_step_is_said_to_have)
{
	top_stage_make(&stage, QUIET);
	stage.frame.ended = true;
	top_stage_draw(&stage, 24, 80);
	expect("no load to show: the engine has ended");
}
