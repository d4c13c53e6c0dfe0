/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an archive lacks, its replay lacks, and says so: an archive is replayed, the replay
 * recorded, and both are exported; each cell of the second is that of the first, or missing
 * for a cause that is told.
 */
#include <criterion/criterion.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/archive_story.h"
#include "tests/support/tool_stage.h"

#define IDLE "1"

static struct test_daemon daemon_a;
static struct command recorder, tool;
static struct archive_builder builder, again; /* of the second its directory alone */
static struct story story;

static const char *instance(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "lossy-%d", getpid());
	return name;
}

static void start(int level)
{
	builder_open(&builder, level);
	builder_open(&again, 0);
	test_daemon_start(&daemon_a, NULL);
}

static void stop(void)
{
	command_free(&recorder);
	command_free(&tool);
	test_daemon_close(&daemon_a);
	builder_close(&builder);
	builder_close(&again);
}

/* Runs the tool to its end; its code. */
static int use_tool(const char *const *args)
{
	command_free(&tool);
	return command_run(&tool, daemon_a.dir, args);
}

/* ---- telling ----------------------------------------------------------- */

/* A request "a" with a prompt of four tokens, which were run. */
static void begin(void)
{
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/3");
	story_request(&story, 1, "a", 4);
	story_step(&story, 1, 0, 4);
}

/* It has so many tokens, of which the last was never fed. */
static void end(uint32_t tokens)
{
	story_end(&story, 1, tokens);
	story_closed(&story);
	builder_segment_end(&builder, true);
}

/* Steps that the recorder did not get, with a position each. */
static void miss(uint32_t position, uint32_t steps, enum archive_gap_cause cause)
{
	const uint64_t from = story.seq + 1;

	story.absent = true;
	for (uint32_t i = 0; i < steps; i++)
		story_step(&story, 1, position + i, 1);
	story.absent = false;
	builder_gap(&builder, 0, from, story.seq, cause);
}

static void lose(uint64_t steps, enum r3ring_cause cause, bool unknown)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = (struct r3ring_lost_record){
		.from_step = story.step + 1,
		.to_step = story.step + steps,
		.steps = steps,
		.rows = steps,
		.layer_rows = steps * STORY_LAYERS,
		.cause = cause,
		.spans_unknown = unknown,
	};
	story.step += steps;
	story_record(&story, &record, story.step, 0, 0);
}

/* ---- comparing --------------------------------------------------------- */

/* "ID POSITION" to what the export says of it; to be released. */
static json_t *export(const char *dir)
{
	json_t *rows = json_object();
	char *line, *rest = NULL;

	cr_assert_eq(use_tool(ARGS("export", dir, "--format", "jsonl", "-o", "-", "--missing", "-1",
				   "--include", "aborted", "--include", "unfinished", "--include",
				   "guessed")),
		     0, "%s: %s", dir, tool.err);
	for (line = strtok_r(tool.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *row = json_loads(line, 0, NULL);
		char key[80];

		cr_assert_not_null(row, "%s", line);
		snprintf(key, sizeof(key), "%s %lld",
			 json_string_value(json_object_get(row, "request_id")),
			 json_integer_value(json_object_get(row, "position")));
		json_object_set_new(rows, key, row);
	}
	return rows;
}

/* Why the cell is missing; NULL: it is not. */
static const char *cause_of(const json_t *row, const char *layer)
{
	if (!row)
		return "absent";
	return json_string_value(json_object_get(json_object_get(row, "missing"), layer));
}

static void count(json_t *pairs, const char *pair)
{
	json_object_set_new(pairs, pair,
			    json_integer(json_integer_value(json_object_get(pairs, pair)) + 1));
}

static void compare_cell(json_t *pairs, const json_t *first, const json_t *second,
			 const char *layer)
{
	const char *was = cause_of(first, layer), *is = cause_of(second, layer);
	char pair[80];

	snprintf(pair, sizeof(pair), "%s>%s", was ? was : "ok", is ? is : "ok");
	if (!was && !is)
		snprintf(pair, sizeof(pair), "%s",
			 json_equal(json_object_get(json_object_get(first, "routes"), layer),
				    json_object_get(json_object_get(second, "routes"), layer))
				 ? "same"
				 : "WRONG");
	count(pairs, pair);
}

/* How often a cell of the first is what in the second, as sorted JSON; to be freed. */
static char *compare(json_t *first, json_t *second)
{
	json_t *pairs = json_object(), *row;
	const char *key;
	char *text;

	json_object_foreach (first, key, row) {
		for (int layer = 1; layer <= (int)STORY_LAYERS; layer++) {
			char name[8];

			snprintf(name, sizeof(name), "%d", layer);
			compare_cell(pairs, row, json_object_get(second, key), name);
		}
		json_object_del(second, key);
	}
	json_object_foreach (second, key, row)
		count(pairs, "absent>told");
	text = json_dumps(pairs, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(pairs);
	json_decref(first);
	json_decref(second);
	return text;
}

/* Replays the archive, which ends with @code, records that, and compares the exports. What
 * the replay said at its end is tool_said. */
static char *tool_said;
static const char *rate = "max"; /* of steps a second */

static void expect(int code, const char *pairs)
{
	char *found;

	command_start(
		&recorder, daemon_a.dir,
		ARGS("record", "--instance", instance(), "-o", again.dir, "--until-idle", IDLE));
	cr_assert_eq(
		use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", rate)),
		code, "%s", tool.err);
	tool_said = strdup(tool.out);
	cr_assert_eq(command_wait(&recorder), 0, "%s", recorder.err);
	cr_assert_eq(use_tool(ARGS("verify", again.dir)), 0, "%s", tool.err);
	found = compare(export(builder.dir), export(again.dir));
	cr_expect_str_eq(found, pairs, "%s\n%s", found, tool_said);
	free(found);
}

static void expect_said(const char *what)
{
	cr_expect(strstr(tool_said, what), "%s: %s", what, tool_said);
}

static void finish(void)
{
	free(tool_said);
	tool_said = NULL;
	stop();
}

TestSuite(archive_replay_losses, .fini = finish);

/* ---- tests ------------------------------------------------------------- */

Test(archive_replay_losses, what_is_whole_is_the_same)
{
	start(3);
	begin();
	story_step(&story, 1, 4, 1);
	end(6);
	expect(0, "{\"same\":15}");
}

Test(archive_replay_losses, what_was_rotated_out_is_lost_and_not_said_to_be_never_run)
{
	struct story *const all[] = {&story};

	start(3);
	builder.segment_flags = ARCHIVE_SEGMENT_ROTATES;
	begin();
	story_next_segment(all, 1);
	story_step(&story, 1, 4, 2);
	end(7);
	unlink(builder_path(&builder, "00000001.r3seg"));
	expect(0, "{\"gap>too_big\":12,\"same\":6}");
	expect_said("1 generations begin in their middle, behind 7 records");
}

Test(archive_replay_losses, a_loss_without_spans_keeps_its_cause_where_it_can)
{
	start(3);
	begin();
	lose(2, R3RING_CAUSE_QUEUE_FULL, true);
	story_step(&story, 1, 6, 1);
	end(8);
	expect(0, "{\"queue_full>queue_full\":6,\"same\":15}");
	expect_said("2 steps (2 rows) that the archive does not have");
}

Test(archive_replay_losses, one_for_want_of_a_daemon_does_too)
{
	start(3);
	begin();
	lose(1, R3RING_CAUSE_DAEMON_RESTART, true);
	end(6);
	expect(0, "{\"daemon_restart>daemon_restart\":3,\"same\":12}");
}

Test(archive_replay_losses, one_for_another_cause_is_lost_all_the_same)
{
	start(3);
	begin();
	lose(1, R3RING_CAUSE_RING_FULL, true);
	story_step(&story, 1, 5, 1);
	end(7);
	expect(0, "{\"ring_full>ring_full\":3,\"same\":15}");
}

Test(archive_replay_losses, a_dropped_step_has_its_spans_and_its_cause)
{
	start(3);
	begin();
	story_step_begin(&story, 1, 4, 1);
	story.step--;
	lose(1, R3RING_CAUSE_BUFFER_FULL, false);
	story_step(&story, 1, 5, 1);
	end(7);
	expect(0, "{\"buffer_full>buffer_full\":3,\"same\":15}");
}

Test(archive_replay_losses, a_lapped_recorders_gap_is_a_loss)
{
	start(3);
	begin();
	miss(4, 2, ARCHIVE_GAP_OVERRUN);
	story_step(&story, 1, 6, 1);
	end(8);
	expect(0, "{\"gap>too_big\":6,\"same\":15}");
	expect_said("2 steps (0 rows) that the archive does not have");
	expect_said("  2 of these as too_big, which here means that the archive does not say why");
	expect_said("1 gaps in the recording, 10 records");
}

Test(archive_replay_losses, so_is_one_at_the_end)
{
	start(3);
	begin();
	miss(4, 2, ARCHIVE_GAP_OVERRUN);
	end(7);
	expect(0, "{\"gap>too_big\":6,\"same\":12}");
}

/* Its second generation is not in the archive at all, where the request went on. */
Test(archive_replay_losses, a_generation_that_was_missed_is_told_in_the_next)
{
	static const uint8_t none[16];

	start(3);
	begin();
	/* So that the recorder is there before the first generation ends. */
	rate = "1";
	story_step(&story, 1, 4, 1);
	story_step(&story, 1, 5, 1);
	story_closed(&story);
	builder_generation(&builder, 0, 2, none, 0, false);
	builder_entry(&builder, (struct archive_entry){.kind = ARCHIVE_GAP},
		      &(struct archive_gap){.from_seq = 1, .cause = ARCHIVE_GAP_STOPPED},
		      sizeof(struct archive_gap));
	story_generation(&story, 3);
	story_request(&story, 1, "b", 2);
	story_step(&story, 1, 0, 2);
	end(3);
	expect(0, "{\"same\":21}");
	expect_said("1 steps (0 rows) that the archive");
	expect_said("1 generations are not there");
}

Test(archive_replay_losses, layers_that_a_step_did_not_have_are_missing_again)
{
	struct r3ring_missing_layer missing = {
		.layer_id = 2, .cause = R3RING_CAUSE_COPY_FAILED, .expected = 1};
	struct r3ring_record record = {.type = R3RING_STEP_END};

	start(3);
	begin();
	story_step_begin(&story, 1, 4, 1);
	story_layer(&story, 0, 1);
	story_layer(&story, 2, 1);
	record.u.step_end.head.step = story.step;
	record.u.step_end.head.status = R3RING_STEP_PARTIAL;
	record.u.step_end.head.missing = 1;
	record.u.step_end.missing = &missing;
	story_record(&story, &record, story.step, 0, 0);
	end(6);
	expect(0, "{\"copy_failed>not_captured\":1,\"same\":14}");
	expect_said("1 layers of steps are missing");
}

/* What nobody said the end of may not be whole. */
Test(archive_replay_losses, a_step_without_end_has_no_layers)
{
	const uint64_t from = 9;

	start(3);
	begin();
	story_step_begin(&story, 1, 4, 1);
	cr_assert_eq(story.seq, from - 1);
	story_layer(&story, 0, 1);
	story.absent = true;
	story_layer(&story, 1, 1);
	story_layer(&story, 2, 1);
	story_step_end(&story, 1);
	story.absent = false;
	builder_gap(&builder, 0, from + 1, story.seq, ARCHIVE_GAP_OVERRUN);
	story_step(&story, 1, 5, 1);
	end(7);
	expect(0, "{\"gap>not_captured\":2,\"ok>not_captured\":1,\"same\":15}");
}

Test(archive_replay_losses, layers_that_the_recorder_left_out_are_missing_and_counted)
{
	start(3);
	begin();
	story_step_begin(&story, 1, 4, 1);
	story_layer(&story, 0, 1);
	for (int i = 0; i < 2; i++)
		builder_entry(&builder,
			      (struct archive_entry){.kind = ARCHIVE_SKIPPED,
						     .type = R3RING_LAYER,
						     .seq = ++story.seq,
						     .step = story.step,
						     .units = ++story.units},
			      NULL, 0);
	story_step_end(&story, 1);
	end(6);
	expect(0, "{\"gap>not_captured\":2,\"same\":13}");
	expect_said("2 layer records were left out by record --layers");
	expect_said("2 layers of steps are missing");
}

Test(archive_replay_losses, a_request_without_end_is_aborted_and_told)
{
	start(3);
	begin();
	miss(4, 1, ARCHIVE_GAP_LATE);
	story_step(&story, 1, 5, 1);
	builder_segment_end(&builder, true);
	expect(0, "{\"gap>too_big\":3,\"same\":12}");
	expect_said("1 attempts of requests have no end");
}

/* An attempt's end; the daemon knows no better with END_UNKNOWN. */
static void end_attempt(uint64_t handle, enum r3ring_end_reason reason)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.event = R3RING_REQUEST_END,
		.reason = (uint8_t)reason,
		.accepted_tokens = reason == R3RING_END_UNKNOWN ? R3RING_UNKNOWN_U32 : 4,
	};
	story_record(&story, &record, 0, 0, 0);
}

static json_int_t replayed(const char *what)
{
	json_t *object;
	json_int_t count;

	cr_assert_eq(use_tool(ARGS("replay", builder.dir, "--instance", instance(), "--rate", "max",
				   "--json")),
		     0, "%s", tool.err);
	object = json_loads(tool.out, 0, NULL);
	cr_assert_not_null(object);
	count = json_integer_value(json_object_get(object, what));
	json_decref(object);
	return count;
}

Test(archive_replay_losses, an_attempt_that_was_preempted_has_its_end)
{
	start(3);
	begin();
	end_attempt(1, R3RING_END_PREEMPTED);
	builder_segment_end(&builder, true);
	cr_expect_eq(replayed("unfinished"), 0, "%s", tool.out);
}

/* The second attempt of "a", of the request that @first began. */
static void begin_again(uint64_t handle, uint64_t first)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.prompt_tokens = 4,
		.accepted_tokens = R3RING_UNKNOWN_U32,
		.attempt = 1,
		.since_first = (uint32_t)(handle - first),
		.event = R3RING_REQUEST_BEGIN,
		.id_len = 1,
	};
	record.u.request.id = "a";
	record.u.request.session = record.u.request.turn = record.u.request.sample = "";
	story_record(&story, &record, 0, 0, 0);
}

/* The first handle that the replay's second attempts tell, one behind the other. */
static void expect_firsts(const char *firsts)
{
	char found[64] = "", channel[64], *line, *rest = NULL;

	snprintf(channel, sizeof(channel), "%s/3", instance());
	cr_assert_eq(replayed("requests"), 4);
	cr_assert_eq(use_tool(ARGS("dump", channel, "--json")), 0, "%s", tool.err);
	for (line = strtok_r(tool.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *object = json_loads(line, 0, NULL);
		char *first = json_dumps(json_object_get(object, "first_handle"), JSON_ENCODE_ANY);

		if (json_integer_value(json_object_get(object, "attempt")) == 1 && first)
			strcat(strcat(found, first), " ");
		free(first);
		json_decref(object);
	}
	cr_expect_str_eq(found, firsts);
}

/* Two of one id: of the second its first attempt was lost, which the replay cannot know. */
Test(archive_replay_losses, a_later_attempt_is_of_no_other_request_than_it_was)
{
	start(3);
	begin();
	end_attempt(1, R3RING_END_PREEMPTED);
	story_request(&story, 2, "b", 4);
	miss(4, 1, ARCHIVE_GAP_OVERRUN);
	begin_again(9, 3);
	begin_again(10, 1);
	builder_segment_end(&builder, true);
	expect_firsts("null 1 ");
}

Test(archive_replay_losses, one_of_an_unknown_end_is_aborted)
{
	start(3);
	begin();
	end_attempt(1, R3RING_END_UNKNOWN);
	builder_segment_end(&builder, true);
	cr_expect_eq(replayed("unfinished"), 1, "%s", tool.out);
}

static void lose_several(enum r3ring_cause cause)
{
	start(3);
	begin();
	lose(3, cause, true);
	end(8);
}

Test(archive_replay_losses, steps_that_are_told_for_another_cause_than_theirs_are_counted)
{
	lose_several(R3RING_CAUSE_RING_FULL);
	cr_expect_eq(replayed("lost_as_too_big"), 2, "%s", tool.out);
}

Test(archive_replay_losses, those_that_were_too_big_are_not)
{
	lose_several(R3RING_CAUSE_TOO_BIG);
	cr_expect_eq(replayed("lost_as_too_big"), 0, "%s", tool.out);
}

Test(archive_replay_losses, each_channel_has_its_own)
{
	static struct story other;

	start(3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&other, &builder, 1, "small/4");
	story_begin(&story, &builder, 0, "small/3");
	story_request(&story, 1, "a", 4);
	story_request(&other, 1, "b", 4);
	story_step(&story, 1, 0, 4);
	story_step(&other, 1, 0, 4);
	miss(4, 1, ARCHIVE_GAP_OVERRUN);
	story_step(&other, 1, 4, 1);
	story_end(&other, 1, 6);
	end(6);
	expect(0, "{\"gap>too_big\":3,\"same\":27}");
}
