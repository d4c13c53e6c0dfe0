/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks under one instance's name that run different models at the same time: whatever shows a
 * load names the model that it is of, and the rank and the model that are left out.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/system/serve_stage.h"

#define FIRST "gpt-oss-20b"
#define SECOND "qwen3-235b"
#define FIRST_EXPERTS 32
#define SECOND_EXPERTS 128

static struct command engine[2];
static char instance[64];

static void stop(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (engine[i].pid)
			command_interrupt(&engine[i]);
		command_free(&engine[i]);
	}
	serve_stage_stop();
}

TestSuite(two_models, .init = serve_stage_start, .fini = stop, .timeout = 300);

/* Until it is interrupted. */
static void start_rank(unsigned int rank, const char *model)
{
	const char number[] = {(char)('0' + rank), '\0'};

	command_start(&engine[rank], stage.tool.daemon.dir,
		      ARGS("produce", "--instance", instance, "--rank", number, "--model", model,
			   "--text", "LICENSE", "--requests", "100000", "--rate", "20", "--hidden",
			   "16"));
}

static bool leaves_one_out(const json_t *answer, const void *unused)
{
	const json_t *one = json_array_get(at(answer, "instances", NULL), 0);

	(void)unused;
	return json_array_size(at(one, "left_out", NULL)) == 1 && is_in_state(answer, "live");
}

static void serve_both(void)
{
	snprintf(instance, sizeof(instance), "%s-mix", serve_stage_instance());
	command_start(&stage.server, stage.tool.daemon.dir,
		      ARGS("serve", "--instance", instance, "--unix", stage.path));
	cr_assert(command_tells(&stage.server, "listening on"));
	start_rank(0, FIRST);
	start_rank(1, SECOND);
	cr_assert(becomes("/v1/channels", leaves_one_out, NULL));
}

static bool is_first(const char *model)
{
	cr_assert(model);
	cr_assert_neq(!strstr(model, FIRST), !strstr(model, SECOND), "%s", model);
	return strstr(model, FIRST);
}

/* Of who shows @model, the other rank is left out, by its name and its model's. */
static void expect_left_out(const json_t *list, const char *model)
{
	bool first = is_first(model);
	const json_t *one = json_array_get(list, 0);
	char channel[80];

	cr_assert_eq(json_array_size(list), 1);
	snprintf(channel, sizeof(channel), "%s/%u", instance, first);
	cr_expect_str_eq(json_string_value(at(one, "channel", NULL)), channel);
	cr_expect_eq(is_first(json_string_value(at(one, "model", NULL))), !first);
}

Test(two_models, the_service_names_both_and_says_which_rank_is_left_out)
{
	struct http_reply reply;
	const json_t *one;
	const char *told;
	char line[256];
	bool first;

	serve_both();
	reply = ask("GET", "/v1/channels", NULL);
	one = json_array_get(at(reply.json, "instances", NULL), 0);
	first = is_first(json_string_value(at(one, "model", NULL)));
	expect_left_out(at(one, "left_out", NULL), json_string_value(at(one, "model", NULL)));
	json_decref(reply.json);

	reply = ask("GET", "/v1/load", NULL);
	cr_expect_eq(reply.status, 503);
	told = json_string_value(at(reply.json, "error", "message"));
	cr_assert(told);
	cr_expect(strstr(told, FIRST) && strstr(told, SECOND), "%s", told);
	snprintf(line, sizeof(line), "%s/%u of ", instance, first);
	cr_expect(strstr(told, line), "%s", told);
	json_decref(reply.json);

	told = http_exchange(
		http_dial_path(stage.path),
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	snprintf(line, sizeof(line),
		 "\nr3ring_engine_channel_left_out{engine=\"%s\",channel=\"%s/%u\",model=\"",
		 instance, instance, first);
	cr_expect(strstr(told, line), "%s", line);
	snprintf(line, sizeof(line), "\nr3ring_engine_model_info{engine=\"%s\",model=\"", instance);
	cr_expect(strstr(told, line), "%s", line);
}

Test(two_models, top_heads_a_load_with_its_own_model_and_names_the_rank_that_is_left_out)
{
	const json_t *followed;
	const char *line, *model;
	json_t *json;

	serve_both();
	cr_assert_eq(
		tool_stage_tool(&stage.tool, ARGS("top", "--jsonl", "--count", "4", "--interval",
						  "0.5", "--instance", instance)),
		0, "%s", stage.tool.tool.err);
	line = strrchr(stage.tool.tool.out, '\n');
	while (line > stage.tool.tool.out && line[-1] != '\n')
		line--;
	json = json_loads(line, 0, NULL);
	cr_assert(json, "%s", line);
	followed = at(json, "followed", NULL);
	model = json_string_value(at(followed, "model", NULL));
	expect_left_out(at(followed, "left_out", NULL), model);
	cr_expect_eq(json_integer_value(at(json, "load", "experts")),
		     is_first(model) ? FIRST_EXPERTS : SECOND_EXPERTS);
	json_decref(json);

	cr_assert_eq(tool_stage_tool(&stage.tool, ARGS("top", "--once", "--interval", "1.5",
						       "--instance", instance, "--size", "40x160")),
		     0, "%s", stage.tool.tool.err);
	cr_expect(strstr(stage.tool.tool.out, "RANKS OF DIFFERENT MODELS: "), "%s",
		  stage.tool.tool.out);
	model = strstr(stage.tool.tool.out, "x32 top-") ? FIRST " is shown" : SECOND " is shown";
	cr_expect(strstr(stage.tool.tool.out, model), "%s", stage.tool.tool.out);
}
