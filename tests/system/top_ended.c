/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring top of engines and ranks that have ended: said so, and neither old nor silent. */
#include <criterion/criterion.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/tool_stage.h"

#define ROWS 4u

static struct tool_stage stage;
static struct engine second; /* rank 1 */

static void start(void)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "ends");
}

static void stop(void)
{
	command_free(&stage.tool);
	engine_close(&second);
	tool_stage_close(&stage);
}

TestSuite(top_ended, .init = start, .fini = stop);

/* Lines of JSON that go on until the test has seen enough of them. */
static void start_lines(void)
{
	command_start(&stage.tool, stage.daemon.dir, ARGS("top", "--jsonl", "--interval", "0.1"));
}

/* The newest line that has @part in it; ends the test if none comes. */
static json_t *await_line(const char *part)
{
	const char *line, *next;
	json_t *json;

	cr_assert(command_prints(&stage.tool, part, 1), "never: %s", part);
	command_interrupt(&stage.tool);
	line = strstr(stage.tool.out, part);
	while (line > stage.tool.out && line[-1] != '\n')
		line--;
	next = strchr(line, '\n');
	json = json_loadb(line, next ? (size_t)(next - line) : strlen(line), 0, NULL);
	cr_assert_not_null(json, "no JSON: %s", line);
	return json;
}

static const json_t *at(const json_t *json, const char *key, const char *second_key)
{
	const json_t *found = json_object_get(json_object_get(json, key), second_key);

	cr_assert_not_null(found, "no \"%s.%s\"", key, second_key);
	return found;
}

static const char *one_frame(void)
{
	cr_assert_eq(tool_stage_tool(&stage, ARGS("top", "--once", "--interval", "0.2")), 0, "%s",
		     stage.tool.err);
	return stage.tool.out;
}

Test(top_ended, an_engine_that_ended_is_said_to_have_and_its_last_load_stays)
{
	json_t *line;

	engine_step(&stage.engine, 0, ROWS);
	start_lines();
	cr_assert(command_prints(&stage.tool, "\"state\":\"live\",\"error\"", 1));
	engine_close(&stage.engine);
	line = await_line("\"state\":\"ended\",\"error\"");
	cr_expect_eq(json_integer_value(at(line, "load", "steps")), 1);
	json_decref(line);
	command_free(&stage.tool);
	cr_expect(strstr(one_frame(), "| ENDED ("), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, "\nENDED: "), "%s", stage.tool.out);
	cr_expect_null(strstr(stage.tool.out, "OLD"), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, " ended "), "%s", stage.tool.out);
}

/* The rank that runs on has a step after the other one's end, so its load is the younger. */
Test(top_ended, a_rank_that_ended_does_not_make_the_others_load_old)
{
	const json_t *channel;
	json_t *line;

	cr_assert_eq(engine_open_rank(&second, stage.daemon.dir,
				      engine_instance(stage.daemon.dir, "ends"),
				      (struct engine_rank){.rank = 1}, ROWS, NULL),
		     0);
	engine_step(&second, 0, ROWS);
	engine_step(&stage.engine, 0, ROWS);
	start_lines();
	cr_assert(command_prints(&stage.tool, "\"load\":{\"channels\":2,", 1));
	engine_close(&second);
	engine_step(&stage.engine, 0, ROWS);
	line = await_line("\"load\":{\"channels\":1,");
	cr_expect_str_eq(json_string_value(at(line, "followed", "state")), "live");
	channel = json_array_get(json_object_get(line, "channels"), 1);
	cr_expect_str_eq(json_string_value(json_object_get(channel, "state")), "ended");
	cr_expect_lt(json_number_value(at(line, "load", "age_ms")),
		     json_number_value(json_object_get(channel, "last_step_age_ms")));
	json_decref(line);
	command_free(&stage.tool);
	cr_expect(strstr(one_frame(), " ended "), "%s", stage.tool.out);
	cr_expect_null(strstr(stage.tool.out, "ENDED"), "%s", stage.tool.out);
}
