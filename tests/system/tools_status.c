/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring status, and produce whose daemon is gone. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "channel/clock.h"
#include "monitor/daemon_status.h"
#include "tests/support/channel_status.h"
#include "tests/support/tool_stage.h"

#define LOOKS 2000 /* of 5 ms each: ten seconds */
#define LOOK_MS 5

static struct tool_stage stage;

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* The daemon's state, asked by this process. */
static json_t *ask_status(void)
{
	json_t *status;
	struct r3ring_error err;

	setenv("R3RING_RUNTIME_DIR", stage.daemon.dir, 1);
	cr_assert_eq(daemon_status_get(&status, &err), 0, "%s", err.text);
	return status;
}

static json_t *channel_of(const json_t *status, const char *name)
{
	json_t *channel;
	size_t i;

	json_array_foreach (json_object_get(status, "channels"), i, channel) {
		if (!strcmp(json_string_value(json_object_get(channel, "channel")), name))
			return channel;
	}
	return NULL;
}

/* Looks until a channel has @count layers bound; NULL when it never has. */
static json_t *await_bound(const char *name, size_t count)
{
	for (int i = 0; i < LOOKS; i++) {
		json_t *status = ask_status();
		const json_t *channel = channel_of(status, name);

		if (channel && json_array_size(json_object_get(channel, "bound_layers")) == count)
			return status;
		json_decref(status);
		poll(NULL, 0, LOOK_MS);
	}
	return NULL;
}

/* A text for `r3ring produce`, in the daemon's directory. */
static void write_text(char *path, size_t capacity)
{
	FILE *file;

	snprintf(path, capacity, "%s/text", stage.daemon.dir);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs("It was the best of times, it was the worst of times.\n", file);
	fclose(file);
}

Test(tools_status, failure_23_every_channel_says_whether_it_is_bound_to_what_and_since_when)
{
	char text[128];
	json_t *status;
	const json_t *bound, *unbound;

	tool_stage_start(&stage, NULL);
	write_text(text, sizeof(text));
	tool_stage_open(&stage, "unbound");
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("produce", "--instance", engine_instance(stage.daemon.dir, "bound"),
			   "--model", "gpt-oss-20b", "--text", text, "--requests", "1000", "--rate",
			   "20"));
	status = await_bound(tool_stage_channel(&stage, "bound"), 24);
	cr_assert_not_null(status, "never bound");
	bound = channel_of(status, tool_stage_channel(&stage, "bound"));
	unbound = channel_of(status, tool_stage_channel(&stage, "unbound"));
	cr_assert_not_null(unbound);
	cr_expect(json_is_string(json_object_get(bound, "bound_since")));
	cr_expect_eq(json_array_size(json_object_get(bound, "unbound_layers")), 0);
	cr_expect_eq(integer(bound, "producer_pid"), stage.tool.pid);
	cr_expect_str_eq(json_string_value(json_object_get(bound, "model")), "gpt-oss-20b");
	cr_expect_eq(json_array_size(json_object_get(unbound, "bound_layers")), 0);
	cr_expect_eq(json_array_size(json_object_get(unbound, "unbound_layers")), ENGINE_LAYERS);
	cr_expect(json_is_null(json_object_get(unbound, "bound_since")));
	json_decref(status);
	command_free(&stage.tool);
	tool_stage_close(&stage);
}

Test(tools_status, the_table_and_the_json_object_tell_of_every_channel)
{
	json_t *status;
	const json_t *channel;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "table");
	tool_stage_run(&stage, "table", 6);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("status")), 0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, "r3ringd " R3RING_VERSION), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, tool_stage_channel(&stage, "table")), "%s",
		  stage.tool.out);
	cr_expect(strstr(stage.tool.out, "lost: nothing"), "%s", stage.tool.out);
	command_free(&stage.tool);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("status", "--json")), 0);
	status = json_loads(stage.tool.out, 0, NULL);
	channel = channel_of(status, tool_stage_channel(&stage, "table"));
	cr_assert_not_null(channel, "%s", stage.tool.out);
	cr_expect_eq(integer(channel, "steps"), 6);
	cr_expect_eq(integer(channel, "rows"), 6 * TOOL_STAGE_ROWS);
	cr_expect_leq(json_number_value(json_object_get(channel, "steps_per_s")), 6.0,
		      "a rate of less than a second");
	cr_expect_eq(integer(json_object_get(status, "daemon"), "pid"), stage.daemon.pid);
	json_decref(status);
	command_free(&stage.tool);
	tool_stage_close(&stage);
}

static bool is_live(const json_t *channel)
{
	return strcmp(json_string_value(json_object_get(channel, "state")), "live") == 0;
}

static bool has_rate(const json_t *channel)
{
	return json_number_value(json_object_get(channel, "steps_per_s")) > 0;
}

static double rate_now(const char *base)
{
	json_t *status = ask_status();
	const json_t *channel = channel_of(status, tool_stage_channel(&stage, base));
	double rate = json_number_value(json_object_get(channel, "steps_per_s"));

	cr_assert_not_null(channel);
	json_decref(status);
	return rate;
}

/* The daemon's is of the newest second or more, the engine's of all; every second step is lost. */
Test(tools_status, its_steps_a_second_are_those_that_the_engine_begins_lost_ones_too)
{
	double told = 0, made = 0;
	uint64_t begun_ns;
	bool alike = false;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "pace");
	begun_ns = clock_now_ns();
	for (int steps = 2; steps < LOOKS && !alike; steps += 2) {
		engine_step(&stage.engine, 0, TOOL_STAGE_ROWS);
		cr_assert_lt(engine_begin(&stage.engine, 0, stage.engine.max_rows + 1), 0);
		poll(NULL, 0, 2 * LOOK_MS);
		told = rate_now("pace");
		made = steps / ((double)(clock_now_ns() - begun_ns) / 1e9);
		alike = told > 0.75 * made && told < 1.35 * made;
	}
	cr_expect(alike, "told %g, made %g", told, made);
	tool_stage_close(&stage);
}

Test(tools_status, an_engine_that_is_gone_makes_no_steps_a_second)
{
	bool live = true, rate = false;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "gone");
	for (int i = 0; i < LOOKS && live; i++) {
		const json_t *channel;
		json_t *status;

		if (rate)
			engine_close(&stage.engine);
		else
			engine_step(&stage.engine, 0, TOOL_STAGE_ROWS);
		status = ask_status();
		channel = channel_of(status, tool_stage_channel(&stage, "gone"));
		cr_assert_not_null(channel);
		live = is_live(channel);
		cr_expect(live || !has_rate(channel));
		rate |= has_rate(channel);
		json_decref(status);
		poll(NULL, 0, LOOK_MS);
	}
	cr_expect(rate && !live);
	tool_stage_close(&stage);
}

Test(tools_status, a_daemon_without_channels_is_no_failure)
{
	tool_stage_start(&stage, NULL);
	cr_expect_eq(tool_stage_tool(&stage, ARGS("status")), 0);
	cr_expect(strstr(stage.tool.out, "no channels"), "%s", stage.tool.out);
}

/* ---- produce ---------------------------------------------------------- */

Test(tools_produce, it_tells_what_no_daemon_took)
{
	const json_t *undelivered, *restart;
	json_t *summary;
	const char *instance;

	tool_stage_start(&stage, NULL);
	instance = engine_instance(stage.daemon.dir, "gone");
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("produce", "--instance", instance, "--model", "gpt-oss-20b", "--text",
			   "LICENSE", "--rate", "20", "--max-steps", "40", "--requests", "100",
			   "--json"));
	cr_assert(status_becomes(stage.daemon.dir, tool_stage_channel(&stage, "gone"),
				 status_is_there, 0),
		  "%s", stage.daemon.log);
	test_daemon_kill(&stage.daemon);
	cr_assert_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.err, "that none has taken are lost"), "%s", stage.tool.err);
	summary = json_loads(stage.tool.out, 0, NULL);
	undelivered = json_object_get(summary, "undelivered");
	restart = json_object_get(json_object_get(summary, "dropped"), "daemon_restart");
	cr_expect_eq(integer(summary, "steps"), 40);
	cr_expect(json_is_false(json_object_get(summary, "connected")));
	cr_expect_gt(integer(undelivered, "steps"), 0);
	cr_expect_gt(integer(undelivered, "rows"), 0);
	cr_expect_geq(integer(restart, "steps"), integer(undelivered, "steps"));
	cr_expect_gt(integer(summary, "never_begun"), 0);
	json_decref(summary);
	command_free(&stage.tool);
}
