/* SPDX-License-Identifier: Apache-2.0 */
/* From an engine through the recorder into an archive, and from there to readers again. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/archive_builder.h"
#include "tests/support/attribution.h"
#include "tests/support/attribution_lines.h"
#include "tests/support/tool_stage.h"

#define TEXT "LICENSE"
#define IDLE "1"

static struct test_daemon daemon_a;
static struct command recorder, tool;
static struct archive_builder archive; /* for its directory, which it removes */

static const char *name_of(const char *base)
{
	static char names[4][40];
	static unsigned int next;
	char *name = names[next++ % 4];

	snprintf(name, sizeof(names[0]), "%s-%d", base, getpid());
	return name;
}

static const char *channel_of(const char *base)
{
	static char names[2][48];
	static unsigned int next;
	char *name = names[next++ % 2];

	snprintf(name, sizeof(names[0]), "%s/0", name_of(base));
	return name;
}

static int use_tool(const char *const *args)
{
	command_free(&tool);
	return command_run(&tool, daemon_a.dir, args);
}

static void start_recorder(const char *base)
{
	command_start(&recorder, daemon_a.dir,
		      ARGS("record", "--instance", name_of(base), "-o", archive.dir, "--until-idle",
			   IDLE));
}

static void start(void)
{
	builder_open(&archive, 0);
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "16M", NULL});
}

static void stop(void)
{
	command_free(&recorder);
	command_free(&tool);
	test_daemon_close(&daemon_a);
	builder_close(&archive);
}

/* What the recorder wrote is true, the index too. */
static void expect_true(void)
{
	cr_expect_eq(command_wait(&recorder), 0, "%s", recorder.err);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir)), 0, "%s%s", tool.err, tool.out);
	cr_expect(strstr(tool.out, "all of it is true"), "%s", tool.out);
}

/* ---- a model over a text ----------------------------------------------- */

/* Where an object belongs: layers of a step are published as they become ready. */
static const char *place_of(const json_t *object)
{
	static char place[64];

	snprintf(place, sizeof(place), "%lld %s %lld %lld",
		 json_integer_value(json_object_get(object, "step")),
		 json_string_value(json_object_get(object, "type")),
		 json_integer_value(json_object_get(object, "layer")),
		 json_integer_value(json_object_get(object, "row")));
	return place;
}

/* The layers of a dump, and the tokens of its steps, by their place, without what is each
 * channel's own; to be released. */
static json_t *content_of(const char *channel)
{
	json_t *content = json_object();
	char *line, *rest = NULL;

	cr_assert_eq(use_tool(ARGS("dump", channel, "--json")), 0, "%s", tool.err);
	for (line = strtok_r(tool.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *object = json_loads(line, 0, NULL);
		const char *type = json_string_value(json_object_get(object, "type"));
		size_t index;
		json_t *span;

		json_object_del(object, "seq");
		json_object_del(object, "host_ns");
		json_array_foreach (json_object_get(object, "spans"), index, span)
			json_object_del(span, "handle");
		if (!strcmp(type, "layer") || !strcmp(type, "step"))
			json_object_set(content, place_of(object), object);
		json_decref(object);
	}
	return content;
}

Test(archive_recorded, a_models_steps_are_the_same_recorded_and_replayed)
{
	json_t *first, *again;

	start();
	start_recorder("model");
	cr_assert_eq(
		use_tool(ARGS("produce", "--instance", name_of("model"), "--model", "gpt-oss-20b",
			      "--text", TEXT, "--requests", "6", "--hidden", "16")),
		0, "%s", tool.err);
	expect_true();
	cr_assert_eq(use_tool(ARGS("replay", archive.dir, "--instance", name_of("again"), "--rate",
				   "max")),
		     0, "%s", tool.err);
	first = content_of(channel_of("model"));
	again = content_of(channel_of("again"));
	cr_expect_gt(json_object_size(first), 100);
	cr_expect_eq(json_object_size(first), json_object_size(again));
	cr_expect(json_equal(first, again));
	json_decref(first);
	json_decref(again);
	stop();
}

/* ---- recorded routing -------------------------------------------------- */

Test(archive_recorded, recorded_routing_comes_back_for_each_request_and_position)
{
	static struct recording recording;
	static struct attribution found;

	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	attribution_init(&found, &recording);
	start();
	start_recorder("trace");
	cr_assert_eq(use_tool(ARGS("produce", "--instance", name_of("trace"), "--trace",
				   RECORDING_HEADER, "--rate", "2000")),
		     0, "%s", tool.err);
	expect_true();
	cr_assert_eq(use_tool(ARGS("replay", archive.dir, "--instance", name_of("again"), "--rate",
				   "max")),
		     0, "%s", tool.err);
	cr_assert_eq(use_tool(ARGS("dump", channel_of("again"), "--json")), 0, "%s", tool.err);
	attribution_take_lines(&found, tool.out);
	cr_expect_eq(found.wrong, 0);
	cr_expect_eq(found.wrong_lines, 0);
	cr_expect_eq(found.right, (uint64_t)recording.rows * recording.layers);
	cr_expect_eq(attribution_not_once(&found), 0);
	attribution_free(&found);
	recording_free(&recording);
	stop();
}

/* ---- verifying --------------------------------------------------------- */

Test(archive_recorded, what_a_killed_recorder_left_is_told_until_the_next_one_goes_on)
{
	struct stat file;

	start();
	command_start(&recorder, daemon_a.dir,
		      ARGS("record", "--instance", name_of("killed"), "-o", archive.dir, "--sync",
			   "block"));
	cr_assert_eq(
		use_tool(ARGS("produce", "--instance", name_of("killed"), "--model", "gpt-oss-20b",
			      "--text", TEXT, "--requests", "2", "--hidden", "16")),
		0, "%s", tool.err);
	/* It writes a block that is not full after a second. */
	while (stat(builder_path(&archive, "00000001.r3seg"), &file) || file.st_size < 20000)
		cr_assert(!command_ended(&recorder), "%s", recorder.err);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir, "--json")), 0, "%s%s", tool.err,
		     tool.out);
	cr_expect(strstr(tool.out, "\"being_written\": true"), "%s", tool.out);
	kill(recorder.pid, SIGKILL);
	command_wait(&recorder);
	command_free(&recorder);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir, "--reindex")), 1);
	cr_expect(strstr(tool.err, "without having been closed"), "%s", tool.err);
	start_recorder("killed");
	expect_true();
	cr_expect(strstr(tool.out, "recorders went on 1 times"), "%s", tool.out);
	stop();
}

Test(archive_recorded, what_a_killed_recorder_left_can_be_closed_without_an_engine)
{
	struct builder_bytes whole;

	start();
	start_recorder("closed");
	cr_assert_eq(
		use_tool(ARGS("produce", "--instance", name_of("closed"), "--model", "gpt-oss-20b",
			      "--text", TEXT, "--requests", "1", "--hidden", "16")),
		0, "%s", tool.err);
	expect_true();
	/* As if killed while it wrote its last block. */
	whole = builder_read(builder_path(&archive, "00000001.r3seg"));
	cr_assert_eq(truncate(builder_path(&archive, "00000001.r3seg"), (off_t)whole.len - 40), 0);
	free(whole.at);
	test_daemon_stop(&daemon_a);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir)), 1);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir, "--close")), 0, "%s%s", tool.err,
		     tool.out);
	cr_expect(strstr(tool.err, "closed; 88 bytes that were not whole are cut"), "%s", tool.err);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir, "--close")), 0, "%s", tool.err);
	cr_expect_null(strstr(tool.err, "closed"), "%s", tool.err);
	stop();
}

Test(archive_recorded, verify_says_what_is_wrong_and_where)
{
	struct builder_bytes bytes;

	start();
	start_recorder("spoilt");
	cr_assert_eq(
		use_tool(ARGS("produce", "--instance", name_of("spoilt"), "--model", "gpt-oss-20b",
			      "--text", TEXT, "--requests", "1", "--hidden", "16")),
		0, "%s", tool.err);
	expect_true();
	bytes = builder_read(builder_path(&archive, "00000001.r3seg"));
	bytes.at[bytes.len / 2] ^= 4;
	builder_write(builder_path(&archive, "00000001.r3seg"), bytes.at, bytes.len);
	free(bytes.at);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir)), 1);
	cr_expect(strstr(tool.err, "segment 00000001.r3seg, byte "), "%s", tool.err);
	cr_expect(strstr(tool.out, "problems"), "%s", tool.out);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir, "--json")), 1);
	cr_expect(strstr(tool.out, "\"true\": false"), "%s", tool.out);
	cr_expect_eq(use_tool(ARGS("verify", "/nowhere")), 1);
	cr_expect_eq(use_tool(ARGS("verify")), 2);
	cr_expect_eq(use_tool(ARGS("verify", archive.dir, "more")), 2);
	stop();
}
