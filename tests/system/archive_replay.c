/* SPDX-License-Identifier: Apache-2.0 */
/* An archive that goes through a daemon again: its readers get what was recorded. */
#include <criterion/criterion.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/archive_story.h"
#include "tests/support/tool_stage.h"

#define TOLD_MAX 256u

/* A row that a story told: which token's it is, and which step and row its ids are of. */
struct told_row {
	const char *request;
	uint32_t position;
	uint64_t generation, step;
	uint32_t row;
	unsigned int found; /* layers of it that came */
};

static struct test_daemon daemon_a;
static struct command tool;
static struct archive_builder builder;
static struct story story;
static struct told_row told[TOLD_MAX];
static unsigned int told_count;

/* What a dump says of it. */
static struct heard {
	unsigned int layers, wrong, unowned;
	uint64_t lost_steps, lost_rows, partial, begun, ended;
	struct told_row *owner[64]; /* of the present step's rows */
} heard;

static const char *instance(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "replay-%d", getpid());
	return name;
}

static const char *channel_of(unsigned int rank)
{
	static char name[40];

	snprintf(name, sizeof(name), "%s/%u", instance(), rank);
	return name;
}

/* ---- telling ----------------------------------------------------------- */

static void tell_rows(const char *request, uint32_t position, uint32_t rows)
{
	for (uint32_t i = 0; i < rows; i++) {
		cr_assert_lt(told_count, TOLD_MAX);
		told[told_count++] = (struct told_row){
			request, position + i, story.generation, story.step, i, 0};
	}
}

static void run(uint64_t handle, const char *request, uint32_t position, uint32_t rows)
{
	story_step(&story, handle, position, rows);
	tell_rows(request, position, rows);
}

static void begin(void)
{
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/3");
	story_request(&story, 1, "a", 4);
	run(1, "a", 0, 4);
}

/* ---- hearing ----------------------------------------------------------- */

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static struct told_row *find(const char *request, json_int_t position)
{
	for (unsigned int i = 0; request && i < told_count; i++) {
		if (!strcmp(told[i].request, request) && told[i].position == position)
			return &told[i];
	}
	return NULL;
}

static void hear_spans(const json_t *object)
{
	size_t index;
	json_t *span;

	json_array_foreach (json_object_get(object, "spans"), index, span) {
		const char *request = json_string_value(json_object_get(span, "request"));

		for (json_int_t i = 0; i < integer(span, "rows"); i++)
			heard.owner[integer(span, "row") + i] =
				find(request, integer(span, "position") + i);
	}
}

static void hear_layer(const json_t *object)
{
	uint32_t layer = (uint32_t)integer(object, "layer") - 1;
	size_t row;
	json_t *ids;

	json_array_foreach (json_object_get(object, "ids"), row, ids) {
		struct told_row *owner = heard.owner[(size_t)integer(object, "row") + row];
		size_t k;
		json_t *id;

		heard.layers++;
		heard.unowned += !owner;
		if (!owner)
			continue;
		owner->found++;
		json_array_foreach (ids, k, id)
			heard.wrong += json_integer_value(id) != story_id(owner->generation,
									  owner->step, owner->row,
									  layer, (uint32_t)k);
	}
}

static void hear_line(const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	const char *event = json_string_value(json_object_get(object, "event"));

	if (!strcmp(type, "step"))
		memset(heard.owner, 0, sizeof(heard.owner));
	if (!strcmp(type, "step") || !strcmp(type, "spans"))
		hear_spans(object);
	if (!strcmp(type, "layer"))
		hear_layer(object);
	if (!strcmp(type, "lost")) {
		heard.lost_steps += (uint64_t)integer(object, "steps");
		heard.lost_rows += (uint64_t)integer(object, "rows");
	}
	if (!strcmp(type, "step_end"))
		heard.partial += json_array_size(json_object_get(object, "missing")) > 0;
	if (!strcmp(type, "request")) {
		heard.begun += !strcmp(event, "begin");
		heard.ended += !strcmp(event, "end");
	}
}

/* Runs the tool to its end; its code. */
static int use_tool(const char *const *args)
{
	command_free(&tool);
	return command_run(&tool, daemon_a.dir, args);
}

static void hear(unsigned int rank)
{
	char *line, *rest = NULL;

	heard = (struct heard){0};
	cr_assert_eq(use_tool(ARGS("dump", channel_of(rank), "--json")), 0, "%s", tool.err);
	for (line = strtok_r(tool.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *object = json_loads(line, 0, NULL);

		cr_assert_not_null(object, "%s", line);
		hear_line(object);
		json_decref(object);
	}
}

/* All that was told came, layers of it each, and with the ids of its step and row. */
static void expect_all(unsigned int layers)
{
	cr_expect_eq(heard.wrong, 0);
	for (unsigned int i = 0; i < told_count; i++)
		cr_expect_eq(told[i].found, layers, "%s, position %u: %u layers", told[i].request,
			     told[i].position, told[i].found);
}

static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
}

static void stop(void)
{
	command_free(&tool);
	test_daemon_close(&daemon_a);
	builder_close(&builder);
}

/* ---- tests ------------------------------------------------------------- */

Test(archive_replay, gives_each_position_of_each_request_the_ids_it_had)
{
	struct story *const all[] = {&story};

	begin();
	story_request(&story, 2, "b", 2);
	run(2, "b", 0, 2);
	run(1, "a", 4, 1);
	story_keyframe(&story);
	story_next_segment(all, 1);
	run(1, "a", 5, 1);
	story_end(&story, 1, 7);
	run(2, "b", 2, 1);
	story_end(&story, 2, 4);
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max")), 0,
		"%s", tool.err);
	cr_expect(strstr(tool.out, "2 requests, 5 steps, 9 rows, 27 rows x layers"), "%s",
		  tool.out);
	hear(3);
	expect_all(STORY_LAYERS);
	cr_expect_eq(heard.layers, 9 * STORY_LAYERS);
	cr_expect_eq(heard.unowned, 0);
	cr_expect_eq(heard.begun, 2);
	cr_expect_eq(heard.ended, 2);
	cr_expect_eq(heard.lost_steps, 0);
	stop();
}

Test(archive_replay, what_was_lost_is_lost_again_and_keeps_the_numbers_of_steps)
{
	begin();
	story_lost(&story, 5, 17, R3RING_CAUSE_QUEUE_FULL);
	run(1, "a", 4, 1);
	/* Records of two steps that the recorder lost. */
	story.absent = true;
	story_step(&story, 1, 5, 1);
	story_step(&story, 1, 6, 1);
	story.absent = false;
	builder_gap(&builder, 0, story.seq - 9, story.seq, ARCHIVE_GAP_OVERRUN);
	run(1, "a", 7, 1);
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max",
				   "--json")),
		     0, "%s", tool.err);
	cr_expect(strstr(tool.out, "\"lost_steps\": 7"), "%s", tool.out);
	cr_expect(strstr(tool.out, "\"gaps\": 1"), "%s", tool.out);
	hear(3);
	expect_all(STORY_LAYERS);
	cr_expect_eq(heard.lost_steps, 7);
	cr_expect_eq(heard.lost_rows, 17);
	cr_expect_eq(story.step, 10);
	stop();
}

Test(archive_replay, a_step_without_its_end_gives_no_layers)
{
	begin();
	story_step_begin(&story, 1, 4, 1);
	story_layer(&story, 0, 1);
	run(1, "a", 5, 1);
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max")), 0,
		"%s", tool.err);
	hear(3);
	expect_all(STORY_LAYERS);
	cr_expect_eq(heard.layers, 5 * STORY_LAYERS);
	cr_expect_eq(heard.partial, 1);
	stop();
}

Test(archive_replay, spans_that_came_late_come_late_again)
{
	const struct r3ring_span span = {
		.request = 1, .position = 40, .rows = 1, .accepted = R3RING_UNKNOWN_U32};
	struct r3ring_record record = {.type = R3RING_SPANS};

	begin();
	story_step(&story, 1, 4, 1); /* as it was guessed */
	record.u.spans.head.step = story.step;
	record.u.spans.head.spans = 1;
	record.u.spans.head.flags = R3RING_SPANS_REPLACE;
	record.u.spans.spans = &span;
	story_record(&story, &record, story.step, 0, 0);
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max")), 0,
		"%s", tool.err);
	cr_expect_eq(use_tool(ARGS("dump", channel_of(3), "--json")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, "\"type\":\"spans\""), "%s", tool.out);
	cr_expect(strstr(tool.out, "\"position\":40"), "%s", tool.out);
	stop();
}

Test(archive_replay, a_request_alone_is_the_only_one_with_a_name)
{
	begin();
	story_request(&story, 2, "b", 2);
	run(2, "b", 0, 2);
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max",
				   "--request", "b")),
		     0, "%s", tool.err);
	hear(3);
	cr_expect_eq(heard.begun, 1);
	cr_expect_eq(heard.wrong, 0);
	cr_expect_eq(heard.unowned, 4 * STORY_LAYERS);
	cr_expect_eq(told[4].found, STORY_LAYERS);
	stop();
}

Test(archive_replay, nothing_is_fed_where_no_request_that_is_asked_for_is_there)
{
	begin();
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max",
				   "--request", "nosuch")),
		     1, "%s", tool.err);
	cr_expect(strstr(tool.err, "request \"nosuch\" is not in the archive: nothing is replayed"),
		  "%s", tool.err);
	cr_expect_eq(test_shm_names(instance()), 0);
}

Test(archive_replay, a_request_that_is_not_there_is_told_and_a_failure)
{
	begin();
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max",
				   "--request", "a", "--request", "nosuch")),
		     1, "%s", tool.err);
	cr_expect(strstr(tool.err, "request \"nosuch\" is not in the archive"), "%s", tool.err);
	cr_expect_null(strstr(tool.err, "\"a\""), "%s", tool.err);
	hear(3);
	cr_expect_eq(heard.begun, 1);
	stop();
}

Test(archive_replay, its_layers_are_bound_like_those_of_an_engine)
{
	begin();
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max")), 0,
		"%s", tool.err);
	cr_expect_eq(use_tool(ARGS("status")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, "bound: layers 1-3 since"), "%s", tool.out);
	stop();
}

Test(archive_replay, generations_and_channels_follow_each_other)
{
	begin();
	story_closed(&story);
	story_generation(&story, 2);
	story_request(&story, 1, "second", 3);
	run(1, "second", 0, 3);
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "100")), 0,
		"%s", tool.err);
	cr_expect(strstr(tool.out, "1 channels, 2 generations"), "%s", tool.out);
	hear(3);
	cr_expect_eq(heard.wrong, 0);
	cr_expect_eq(told[4].found, STORY_LAYERS);
	stop();
}

Test(archive_replay, a_damaged_archive_is_replayed_around_the_damage_and_fails)
{
	struct story *const all[] = {&story};
	struct builder_bytes bytes;

	begin();
	story_next_segment(all, 1);
	story_step(&story, 1, 4, 1);
	story_next_segment(all, 1);
	run(1, "a", 5, 1);
	builder_segment_end(&builder, true);
	bytes = builder_read(builder_path(&builder, "00000002.r3seg"));
	bytes.at[bytes.len - 200] ^= 1;
	builder_write(builder_path(&builder, "00000002.r3seg"), bytes.at, bytes.len);
	free(bytes.at);
	start();
	cr_expect_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max")),
		1);
	cr_expect(strstr(tool.err, "00000002.r3seg"), "%s", tool.err);
	hear(3);
	expect_all(STORY_LAYERS);
	cr_expect_eq(heard.lost_steps, 1);
	stop();
}

Test(archive_replay, says_what_it_cannot_do)
{
	begin();
	builder_segment_end(&builder, true);
	start();
	cr_expect_eq(use_tool(ARGS("replay", builder.dir)), 2);
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", "x", "--rate", "0")), 2);
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", "no/good")), 2);
	cr_expect_eq(use_tool(ARGS("replay", "/nowhere", "--instance", instance())), 1);
	cr_expect(strstr(tool.err, "/nowhere"), "%s", tool.err);
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--source",
				   "other")),
		     1);
	cr_expect(strstr(tool.err, "no channel of other"), "%s", tool.err);
	test_daemon_stop(&daemon_a);
	cr_expect_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance())), 3);
	stop();
}
