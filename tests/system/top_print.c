/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring top without a terminal: a frame as text, and lines of JSON. */
#include <criterion/criterion.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/tool_stage.h"

#define ROWS 4u

static struct tool_stage stage;

static void start(void)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "seen");
}

static void stop(void)
{
	command_free(&stage.tool);
	tool_stage_close(&stage);
}

TestSuite(top_print, .init = start, .fini = stop);

/* Steps of nobody's request; then one that announces itself as warm-up, and one whose last
 * two rows are padding. */
static void run_steps(unsigned int steps)
{
	struct r3ring_step odd = {
		.size = sizeof(odd),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.flags = R3RING_STEP_WARMUP,
	};

	for (unsigned int i = 0; i < steps; i++)
		cr_assert_eq(engine_step(&stage.engine, 0, ROWS), i + 1);
	for (int padding = 0; padding < 2; padding++) {
		int64_t step = r3ring_step_begin(stage.engine.producer, &odd, NULL);

		cr_assert_gt(step, 0);
		for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
			engine_capture(&stage.engine, step, layer, ROWS);
		engine_end(&stage.engine);
		odd.flags = 0;
		odd.valid_end = ROWS - 2;
	}
}

static const json_t *at(const json_t *json, const char *key)
{
	const json_t *found = json_object_get(json, key);

	cr_assert_not_null(found, "no \"%s\"", key);
	return found;
}

/* By the rule that the engine makes its ids by. */
static void expect_counts(const json_t *layer, uint32_t index, unsigned int steps)
{
	const json_t *counts = at(layer, "counts");
	double expected[ENGINE_EXPERTS] = {0};

	for (uint64_t step = 1; step <= steps; step++)
		for (uint32_t i = 0; i < ROWS * ENGINE_TOP_K; i++)
			expected[engine_id(step, index, i / ENGINE_TOP_K, i % ENGINE_TOP_K)]++;
	for (uint32_t i = 0; i < (ROWS - 2) * ENGINE_TOP_K; i++)
		expected[engine_id(steps + 2, index, i / ENGINE_TOP_K, i % ENGINE_TOP_K)]++;
	cr_assert_eq(json_array_size(counts), ENGINE_EXPERTS);
	for (size_t expert = 0; expert < ENGINE_EXPERTS; expert++)
		cr_expect_eq(json_number_value(json_array_get(counts, expert)), expected[expert],
			     "layer %u, expert %zu", index, expert);
}

static json_t *last_line(const char *text)
{
	const char *line = text, *next;
	json_t *json;

	while ((next = strchr(line, '\n')) && next[1])
		line = next + 1;
	json = json_loads(line, 0, NULL);
	cr_assert_not_null(json, "no JSON: %s", line);
	return json;
}

Test(top_print, failure_28_a_line_of_json_has_the_load_without_warm_up_and_padding)
{
	enum { STEPS = 6 };
	const json_t *layers;
	json_t *line;

	run_steps(STEPS);
	cr_assert_eq(tool_stage_tool(&stage, ARGS("top", "--jsonl", "--count", "2", "--interval",
						  "0.3", "--counts", "--window", "3600")),
		     0, "%s", stage.tool.err);
	line = last_line(stage.tool.out);
	cr_expect_str_eq(json_string_value(at(at(line, "daemon"), "state")), "live");
	cr_expect(json_is_false(at(at(line, "lost"), "anything")));
	cr_expect_str_eq(json_string_value(at(at(line, "followed"), "instance")),
			 engine_instance(stage.daemon.dir, "seen"));
	layers = at(at(line, "load"), "layers");
	cr_assert_eq(json_array_size(layers), ENGINE_LAYERS);
	for (uint32_t i = 0; i < ENGINE_LAYERS; i++)
		expect_counts(json_array_get(layers, i), i, STEPS);
	json_decref(line);
}

/* The first line with a load. */
static json_t *first_load(const char *const *args)
{
	json_t *line = NULL;

	command_free(&stage.tool);
	command_start(&stage.tool, stage.daemon.dir, args);
	cr_assert(command_prints(&stage.tool, "\"window\":", 1), "%s", stage.tool.err);
	command_interrupt(&stage.tool);
	for (char *text = strtok(stage.tool.out, "\n"); text && !line; text = strtok(NULL, "\n")) {
		if (strstr(text, "\"window\":"))
			line = json_loads(text, 0, NULL);
	}
	cr_assert_not_null(line);
	return line;
}

static void expect_window(const char *const *args, const char *window, unsigned int steps)
{
	json_t *line = first_load(args);
	const json_t *load = at(line, "load"), *followed = at(line, "followed");

	cr_expect_str_eq(json_string_value(at(load, "window")), window);
	cr_expect_eq(json_integer_value(at(load, "steps")), steps);
	cr_expect_str_eq(json_string_value(at(followed, "state")), "live");
	/* Of each step its begin, its layers and its end. */
	cr_expect_geq(json_integer_value(at(followed, "records")), steps * (ENGINE_LAYERS + 2));
	json_decref(line);
}

Test(top_print, the_window_that_an_option_names_is_shown_from_the_first_load_on)
{
	run_steps(6);
	expect_window(ARGS("top", "--jsonl", "--interval", "0.05", "--window-steps", "3"), "steps",
		      3);
	expect_window(ARGS("top", "--jsonl", "--interval", "0.05", "--window-steps", "3",
			   "--window", "3600"),
		      "time", 7);
	cr_assert_eq(tool_stage_tool(&stage, ARGS("top", "--once", "--interval", "0.05",
						  "--window-steps", "3")),
		     0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, "last 3 steps"), "%s", stage.tool.out);
}

Test(top_print, a_line_of_json_names_the_channel_its_rates_and_its_readers)
{
	const json_t *channel, *reader;
	json_t *line;

	run_steps(3);
	cr_assert_eq(tool_stage_tool(&stage,
				     ARGS("top", "--jsonl", "--count", "3", "--interval", "0.3")),
		     0);
	line = last_line(stage.tool.out);
	channel = json_array_get(at(line, "channels"), 0);
	cr_expect_str_eq(json_string_value(at(channel, "channel")),
			 tool_stage_channel(&stage, "seen"));
	cr_expect_eq(json_integer_value(at(channel, "steps")), 5);
	cr_expect_eq(json_number_value(at(at(channel, "rates"), "steps_per_s")), 0);
	reader = json_array_get(at(channel, "readers"), 0);
	cr_expect_str_eq(json_string_value(at(reader, "mode")), "lossy",
			 "it never holds a writer up");
	cr_expect_gt(json_integer_value(at(reader, "pid")), 1);
	cr_expect_str_eq(json_string_value(at(reader, "label")), "top");
	json_decref(line);
}

static void run_model(const char *model)
{
	struct command engine;

	cr_assert_eq(command_run(&engine, stage.daemon.dir,
				 ARGS("produce", "--instance",
				      engine_instance(stage.daemon.dir, "other"), "--model", model,
				      "--text", "/usr/include/stdio.h", "--requests", "2",
				      "--max-steps", "3", "--hidden", "16")),
		     0, "%s", engine.err);
	command_free(&engine);
}

Test(top_print, an_engine_that_comes_back_with_another_model_is_followed)
{
	struct command engine;

	run_model("gpt-oss-20b");
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("top", "--jsonl", "--interval", "0.1", "--instance",
			   engine_instance(stage.daemon.dir, "other")));
	cr_expect(command_prints(&stage.tool, "\"experts\":32,", 1));
	/* Until it is interrupted: top may look late. */
	command_start(&engine, stage.daemon.dir,
		      ARGS("produce", "--instance", engine_instance(stage.daemon.dir, "other"),
			   "--model", "qwen3-235b", "--text", "/usr/include/stdio.h", "--requests",
			   "100000", "--rate", "20", "--hidden", "16"));
	cr_expect(command_prints(&stage.tool, "\"experts\":128,", 1));
	command_interrupt(&engine);
	command_free(&engine);
}

Test(top_print, one_frame_goes_into_a_pipe_as_plain_text)
{
	run_steps(6);
	cr_assert_eq(tool_stage_tool(&stage,
				     ARGS("top", "--once", "--interval", "0.2", "--size", "24x80")),
		     0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, "\nr3ring top "), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, "nothing lost"), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, tool_stage_channel(&stage, "seen")), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, "layers by max of "), "%s", stage.tool.out);
	for (const char *c = stage.tool.out; *c; c++)
		cr_assert(*c == '\n' || (unsigned char)*c >= 32);
}

Test(top_print, without_a_daemon_one_frame_is_refused_and_lines_say_so)
{
	json_t *line;

	test_daemon_kill(&stage.daemon);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("top", "--once")), 3);
	cr_expect(strstr(stage.tool.err, "no daemon"), "%s", stage.tool.err);
	cr_expect_eq(tool_stage_tool(&stage,
				     ARGS("top", "--jsonl", "--count", "1", "--interval", "0.1")),
		     0);
	line = last_line(stage.tool.out);
	cr_expect_str_eq(json_string_value(at(at(line, "daemon"), "state")), "no daemon");
	cr_expect(json_is_null(at(line, "load")));
	json_decref(line);
	test_daemon_restart(&stage.daemon, NULL);
}

Test(top_print, an_engine_that_is_not_there_is_nothing_to_connect_to)
{
	cr_expect_eq(tool_stage_tool(&stage, ARGS("top", "--once", "--instance", "nobody",
						  "--interval", "0.1")),
		     3);
	cr_expect(strstr(stage.tool.err, "no channel of nobody"), "%s", stage.tool.err);
}

Test(top_print, command_lines_that_make_no_sense_are_refused_by_name)
{
	const struct {
		const char *args[4];
		const char *part;
	} wrong[] = {
		{{"--once", "--jsonl"}, "either --once or --jsonl"},
		{{"--size", "24x80"}, "--size is for --once"},
		{{"--once", "--size", "24"}, "ROWSxCOLUMNS"},
		{{"--once", "--size", "0x80"}, "ROWSxCOLUMNS"},
		{{"--count", "3"}, "are for --jsonl"},
		{{"--interval", "0"}, "--interval"},
		{{"--window", "-1"}, "--window"},
		{{"--window-steps", "0"}, "--window-steps"},
		{{"--instance", "a/b"}, "a/b"},
		{{"surplus"}, "too much"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *args[] = {"top", wrong[i].args[0], wrong[i].args[1], wrong[i].args[2],
				      NULL};

		cr_expect_eq(tool_stage_tool(&stage, args), 2, "%s", wrong[i].args[0]);
		cr_expect(strstr(stage.tool.err, wrong[i].part), "%s: %s", wrong[i].args[0],
			  stage.tool.err);
	}
}
