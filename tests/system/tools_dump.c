/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of a channel. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/dump_tally.h"

static struct tool_stage stage;

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

Test(tools_dump, json_has_every_id_and_names_the_request)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "dump");
	tool_stage_run(&stage, "dump", 20);
	cr_expect_eq(
		tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "dump"), "--json")),
		0, "%s", stage.tool.err);
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.steps, 20);
	cr_expect_eq(tally.attributed, 20);
	cr_expect_eq(tally.layers, 20 * ENGINE_LAYERS);
	cr_expect_eq(tally.wrong_ids, 0);
	cr_expect_eq(tally.gaps, 0);
	cr_expect_eq(tally.first_seq, 1);
	tool_stage_close(&stage);
}

Test(tools_dump, a_layer_alone_is_that_of_the_models_number)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "layer");
	tool_stage_run(&stage, "layer", 3);
	tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "layer"), "--json",
				     "--layer", "4"));
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.layers, 3);
	cr_expect_eq(tally.wrong_ids, 0);
	cr_expect_eq(tally.steps, 3);
	cr_expect_null(strstr(stage.tool.out, "\"layer\":5,\"kind\":\"moe\",\"row\""));
	tool_stage_close(&stage);
}

Test(tools_dump, a_layer_that_the_model_does_not_have_is_refused)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "nolayer");
	tool_stage_run(&stage, "nolayer", 1);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "nolayer"),
						  "--layer", "4711")),
		     1);
	cr_expect(strstr(stage.tool.err, "no layer 4711"), "%s", stage.tool.err);
	tool_stage_close(&stage);
}

Test(tools_dump, counts_are_those_of_the_records)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "count");
	tool_stage_run(&stage, "count", 10);
	cr_expect_eq(tool_stage_tool(&stage,
				     ARGS("dump", tool_stage_channel(&stage, "count"), "--count")),
		     0);
	cr_expect(
		strstr(stage.tool.out, "layer                  50  rows 200, ids 1200, missing 0"),
		"%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, "step_end               10  complete 10, partial 0"), "%s",
		  stage.tool.out);
	cr_expect(strstr(stage.tool.out, "losses\n  none\n"), "%s", stage.tool.out);
	tool_stage_close(&stage);
}

Test(tools_dump, it_begins_at_the_sequence_that_was_asked_for)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "from");
	tool_stage_run(&stage, "from", 5);
	tool_stage_tool(&stage,
			ARGS("dump", tool_stage_channel(&stage, "from"), "--json", "--from", "7"));
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.first_seq, 7);
	command_free(&stage.tool);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "from"),
						  "--json", "--from", "latest")),
		     0);
	cr_expect_str_empty(stage.tool.out);
	command_free(&stage.tool);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "from"),
						  "--json", "--from", "100000")),
		     2);
	cr_expect(strstr(stage.tool.err, "100000"), "%s", stage.tool.err);
	tool_stage_close(&stage);
}

Test(tools_dump, a_channel_that_is_not_there_is_named)
{
	tool_stage_start(&stage, NULL);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("dump", "none/3")), 3);
	cr_expect(strstr(stage.tool.err, "none/3"), "%s", stage.tool.err);
}

Test(tools_dump, failure_20_losses_come_with_their_cause)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "lost");
	cr_expect_lt(engine_begin(&stage.engine, 0, 65), 0);
	tool_stage_run(&stage, "lost", 1);
	tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "lost"), "--json"));
	tally = dump_tally(stage.tool.out);
	cr_assert_not_null(tally.lost);
	cr_expect_str_eq(json_string_value(json_object_get(tally.lost, "cause")), "too_big");
	cr_expect_eq(integer(tally.lost, "steps"), 1);
	cr_expect_eq(integer(tally.lost, "rows"), 65);
	dump_tally_free(&tally);
	command_free(&stage.tool);
	tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, "lost"), "--count"));
	cr_expect(strstr(stage.tool.out, "too_big            steps 1, rows 65"), "%s",
		  stage.tool.out);
	command_free(&stage.tool);
	tool_stage_tool(&stage, ARGS("status"));
	cr_expect(strstr(stage.tool.out, "lost: too_big 1 steps (65 rows)"), "%s", stage.tool.out);
	tool_stage_close(&stage);
}
