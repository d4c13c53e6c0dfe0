/* SPDX-License-Identifier: Apache-2.0 */
/* The tool on channels of a real daemon. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/channel_status.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tools/daemon_status.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ROWS 4
#define LOOKS 2000 /* of 5 ms each: ten seconds */
#define LOOK_MS 5

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct command tool;

static const char *channel_name(const char *base)
{
	return engine_channel(daemon_a.dir, base);
}

static void open_engine(const char *base)
{
	struct r3ring_error err = {0};

	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, base), 64, &err),
		0, "%s", err.text);
}

/* Runs steps, and waits until each of them can be read. */
static void run_steps(const char *base, unsigned int count)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "a \"request\""};
	static struct listener listener;
	int64_t handle = r3ring_request_begin(engine_a.producer, &request);

	cr_assert_gt(handle, 0);
	listener_open(&listener, daemon_a.dir, channel_name(base));
	for (unsigned int i = 0; i < count; i++) {
		int64_t step = engine_step(&engine_a, handle, ROWS);

		cr_assert(listener_read_until(&listener, listener_has_step, (uint64_t)step));
	}
	listener_close(&listener);
}

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool is_type(const json_t *object, const char *type)
{
	return !strcmp(json_string_value(json_object_get(object, "type")), type);
}

/* What came out of --json, and how much of it was right. */
struct tally {
	unsigned int objects, steps, layers, gaps, schemas;
	unsigned int wrong_ids, attributed;
	json_int_t first_seq, last_seq, last_generation;
	json_int_t first_lost, lost_records; /* what the gaps tell */
	json_t *lost;                        /* the newest LOST object */
};

static void tally_layer(struct tally *tally, const json_t *object)
{
	uint64_t step = (uint64_t)integer(object, "step");
	uint32_t layer = (uint32_t)(integer(object, "layer") - ENGINE_FIRST_LAYER);
	const json_t *rows = json_object_get(object, "ids");
	const json_t *row;
	size_t r;

	tally->layers++;
	json_array_foreach (rows, r, row) {
		const json_t *id;
		size_t k;

		json_array_foreach (row, k, id)
			tally->wrong_ids += json_integer_value(id) !=
					    engine_id(step, layer, (uint32_t)r, (uint32_t)k);
	}
}

static void tally_step(struct tally *tally, const json_t *object)
{
	const json_t *span = json_array_get(json_object_get(object, "spans"), 0);
	const char *request = json_string_value(json_object_get(span, "request"));

	tally->steps++;
	tally->attributed += request && !strcmp(request, "a \"request\"") &&
			     integer(span, "rows") == ROWS;
}

static void tally_object(struct tally *tally, json_t *object)
{
	tally->objects++;
	if (is_type(object, "gap")) {
		tally->gaps++;
		if (!tally->first_lost)
			tally->first_lost = integer(object, "from_seq");
		tally->lost_records += integer(object, "lost");
		cr_expect_eq(integer(object, "to_seq") - integer(object, "from_seq") + 1,
			     integer(object, "lost"));
		return;
	}
	if (!tally->first_seq)
		tally->first_seq = integer(object, "seq");
	tally->last_seq = integer(object, "seq");
	if (is_type(object, "layer"))
		tally_layer(tally, object);
	if (is_type(object, "step"))
		tally_step(tally, object);
	if (is_type(object, "schema")) {
		tally->schemas++;
		tally->last_generation = integer(object, "generation");
	}
	if (is_type(object, "lost")) {
		json_decref(tally->lost);
		tally->lost = json_incref(object);
	}
}

static struct tally tally_json(const char *text)
{
	struct tally tally = {0};

	while (*text) {
		const char *end = strchr(text, '\n');
		json_t *object = json_loadb(text, end ? (size_t)(end - text) : 0, 0, NULL);

		cr_assert(json_is_object(object), "no object: %.200s", text);
		tally_object(&tally, object);
		json_decref(object);
		text = end + 1;
	}
	return tally;
}

/* ---- dump ------------------------------------------------------------- */

Test(tools_dump, json_has_every_id_and_names_the_request)
{
	struct tally tally;

	test_daemon_start(&daemon_a, NULL);
	open_engine("dump");
	run_steps("dump", 20);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("dump", channel_name("dump"), "--json")),
		     0, "%s", tool.err);
	tally = tally_json(tool.out);
	cr_expect_eq(tally.steps, 20);
	cr_expect_eq(tally.attributed, 20);
	cr_expect_eq(tally.layers, 20 * ENGINE_LAYERS);
	cr_expect_eq(tally.wrong_ids, 0);
	cr_expect_eq(tally.gaps, 0);
	cr_expect_eq(tally.first_seq, 1);
	engine_close(&engine_a);
}

Test(tools_dump, a_layer_alone_is_that_of_the_models_number)
{
	struct tally tally;

	test_daemon_start(&daemon_a, NULL);
	open_engine("layer");
	run_steps("layer", 3);
	command_run(&tool, daemon_a.dir,
		    ARGS("dump", channel_name("layer"), "--json", "--layer", "4"));
	tally = tally_json(tool.out);
	cr_expect_eq(tally.layers, 3);
	cr_expect_eq(tally.wrong_ids, 0);
	cr_expect_eq(tally.steps, 3);
	cr_expect_null(strstr(tool.out, "\"layer\":5,\"kind\":\"moe\",\"row\""));
	engine_close(&engine_a);
}

Test(tools_dump, a_layer_that_the_model_does_not_have_is_refused)
{
	test_daemon_start(&daemon_a, NULL);
	open_engine("nolayer");
	run_steps("nolayer", 1);
	cr_expect_eq(command_run(&tool, daemon_a.dir,
				 ARGS("dump", channel_name("nolayer"), "--layer", "4711")),
		     1);
	cr_expect(strstr(tool.err, "no layer 4711"), "%s", tool.err);
	engine_close(&engine_a);
}

Test(tools_dump, counts_are_those_of_the_records)
{
	test_daemon_start(&daemon_a, NULL);
	open_engine("count");
	run_steps("count", 10);
	cr_expect_eq(
		command_run(&tool, daemon_a.dir, ARGS("dump", channel_name("count"), "--count")),
		0);
	cr_expect(strstr(tool.out, "layer                  50  rows 200, ids 1200, missing 0"),
		  "%s", tool.out);
	cr_expect(strstr(tool.out, "step_end               10  complete 10, partial 0"), "%s",
		  tool.out);
	cr_expect(strstr(tool.out, "losses\n  none\n"), "%s", tool.out);
	engine_close(&engine_a);
}

Test(tools_dump, it_begins_at_the_sequence_that_was_asked_for)
{
	struct tally tally;

	test_daemon_start(&daemon_a, NULL);
	open_engine("from");
	run_steps("from", 5);
	command_run(&tool, daemon_a.dir,
		    ARGS("dump", channel_name("from"), "--json", "--from", "7"));
	tally = tally_json(tool.out);
	cr_expect_eq(tally.first_seq, 7);
	command_free(&tool);
	cr_expect_eq(command_run(&tool, daemon_a.dir,
				 ARGS("dump", channel_name("from"), "--json", "--from", "latest")),
		     0);
	cr_expect_str_empty(tool.out);
	command_free(&tool);
	cr_expect_eq(command_run(&tool, daemon_a.dir,
				 ARGS("dump", channel_name("from"), "--json", "--from", "100000")),
		     2);
	cr_expect(strstr(tool.err, "100000"), "%s", tool.err);
	engine_close(&engine_a);
}

Test(tools_dump, a_channel_that_is_not_there_is_named)
{
	test_daemon_start(&daemon_a, NULL);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("dump", "none/3")), 3);
	cr_expect(strstr(tool.err, "none/3"), "%s", tool.err);
}

Test(tools_dump, failure_20_losses_come_with_their_cause)
{
	struct tally tally;

	test_daemon_start(&daemon_a, NULL);
	open_engine("lost");
	cr_expect_lt(engine_begin(&engine_a, 0, 65), 0);
	run_steps("lost", 1);
	command_run(&tool, daemon_a.dir, ARGS("dump", channel_name("lost"), "--json"));
	tally = tally_json(tool.out);
	cr_assert_not_null(tally.lost);
	cr_expect_str_eq(json_string_value(json_object_get(tally.lost, "cause")), "too_big");
	cr_expect_eq(integer(tally.lost, "steps"), 1);
	cr_expect_eq(integer(tally.lost, "rows"), 65);
	json_decref(tally.lost);
	command_free(&tool);
	command_run(&tool, daemon_a.dir, ARGS("dump", channel_name("lost"), "--count"));
	cr_expect(strstr(tool.out, "too_big            steps 1, rows 65"), "%s", tool.out);
	command_free(&tool);
	command_run(&tool, daemon_a.dir, ARGS("status"));
	cr_expect(strstr(tool.out, "lost: too_big 1 steps (65 rows)"), "%s", tool.out);
	engine_close(&engine_a);
}

/* ---- dump --follow ---------------------------------------------------- */

/* The daemon's state, asked by this process. */
static json_t *ask_status(void)
{
	json_t *status;
	struct r3ring_error err;

	setenv("R3RING_RUNTIME_DIR", daemon_a.dir, 1);
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

/* Looks until the output of a running command is @bytes long, or longer. */
static bool printed(const struct command *command, off_t bytes)
{
	struct stat status;

	for (int i = 0; i < LOOKS; i++) {
		if (!fstat(command->out_fd, &status) && status.st_size >= bytes)
			return true;
		poll(NULL, 0, LOOK_MS);
	}
	return false;
}

Test(tools_dump, following_waits_for_the_channel_and_loses_nothing_of_it)
{
	struct tally tally;

	test_daemon_start(&daemon_a, ARGS("--log-level", "debug"));
	command_start(&tool, daemon_a.dir,
		      ARGS("dump", channel_name("later"), "--from", "latest", "--follow",
			   "--until-idle", "1", "--json"));
	cr_assert(test_daemon_said(&daemon_a, "there is no channel later"));
	open_engine("later");
	run_steps("later", 10);
	cr_expect_eq(command_wait(&tool), 0, "%s", tool.err);
	tally = tally_json(tool.out);
	cr_expect_eq(tally.first_seq, 1);
	cr_expect_eq(tally.steps, 10);
	cr_expect_eq(tally.layers, 10 * ENGINE_LAYERS);
	cr_expect_eq(tally.wrong_ids, 0);
	engine_close(&engine_a);
}

/* A channel found too late to be read from its beginning. */
Test(tools_dump, following_tells_what_of_a_new_channel_it_found_overwritten)
{
	struct tally tally;

	test_daemon_start(&daemon_a, ARGS("--log-level", "debug", "--ring-size", "256K"));
	command_start(
		&tool, daemon_a.dir,
		ARGS("dump", channel_name("lapped"), "--follow", "--until-idle", "1", "--json"));
	cr_assert(test_daemon_said(&daemon_a, "there is no channel lapped"));
	kill(tool.pid, SIGSTOP);
	open_engine("lapped");
	run_steps("lapped", 1000);
	kill(tool.pid, SIGCONT);
	cr_expect_eq(command_wait(&tool), 0, "%s", tool.err);
	tally = tally_json(tool.out);
	cr_expect_eq(tally.first_lost, 1);
	cr_expect_geq(tally.gaps, 1);
	cr_expect_eq(tally.lost_records + tally.objects - tally.gaps, tally.last_seq);
	engine_close(&engine_a);
}

Test(tools_dump, failure_50_following_goes_on_with_the_next_generation)
{
	struct tally tally;

	test_daemon_start(&daemon_a, NULL);
	open_engine("again");
	command_start(
		&tool, daemon_a.dir,
		ARGS("dump", channel_name("again"), "--follow", "--until-idle", "2", "--json"));
	run_steps("again", 4);
	cr_assert(printed(&tool, 1));
	engine_close(&engine_a);
	open_engine("again");
	run_steps("again", 3);
	cr_expect_eq(command_wait(&tool), 0, "%s", tool.err);
	tally = tally_json(tool.out);
	cr_expect_eq(tally.steps, 7, "%s", tool.out);
	cr_expect_eq(tally.attributed, 7);
	cr_expect_eq(tally.last_generation, 2);
	cr_expect_eq(tally.wrong_ids, 0);
	engine_close(&engine_a);
}

Test(tools_dump, an_interrupt_ends_it_in_good_order)
{
	struct tally tally;

	test_daemon_start(&daemon_a, NULL);
	open_engine("int");
	run_steps("int", 2);
	command_start(&tool, daemon_a.dir, ARGS("dump", channel_name("int"), "--follow", "--json"));
	cr_assert(printed(&tool, 1));
	kill(tool.pid, SIGINT);
	cr_expect_eq(command_wait(&tool), 0, "%s", tool.err);
	tally = tally_json(tool.out);
	cr_expect_eq(tally.layers, 2 * ENGINE_LAYERS);
	engine_close(&engine_a);
}

Test(tools_dump, a_reader_of_its_output_that_has_had_enough_is_no_failure)
{
	test_daemon_start(&daemon_a, NULL);
	open_engine("pipe");
	run_steps("pipe", 300);
	setenv("TOOL", test_program("r3ring"), 1);
	setenv("CHANNEL", channel_name("pipe"), 1);
	setenv("R3RING_RUNTIME_DIR", daemon_a.dir, 1);
	cr_expect_eq(system("cd \"$R3RING_RUNTIME_DIR\" &&"
			    "{ \"$TOOL\" dump \"$CHANNEL\" --json 2> err; echo $? > code; } | head "
			    "-n 1 > out;"
			    "test $(wc -l < out) = 1 && test $(cat code) = 0 && ! test -s err"),
		     0);
	engine_close(&engine_a);
}

/* ---- status ----------------------------------------------------------- */

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

	snprintf(path, capacity, "%s/text", daemon_a.dir);
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

	test_daemon_start(&daemon_a, NULL);
	write_text(text, sizeof(text));
	open_engine("unbound");
	command_start(&tool, daemon_a.dir,
		      ARGS("produce", "--instance", engine_instance(daemon_a.dir, "bound"),
			   "--model", "gpt-oss-20b", "--text", text, "--requests", "1000", "--rate",
			   "20"));
	status = await_bound(channel_name("bound"), 24);
	cr_assert_not_null(status, "never bound");
	bound = channel_of(status, channel_name("bound"));
	unbound = channel_of(status, channel_name("unbound"));
	cr_assert_not_null(unbound);
	cr_expect(json_is_string(json_object_get(bound, "bound_since")));
	cr_expect_eq(json_array_size(json_object_get(bound, "unbound_layers")), 0);
	cr_expect_eq(integer(bound, "producer_pid"), tool.pid);
	cr_expect_str_eq(json_string_value(json_object_get(bound, "model")), "gpt-oss-20b");
	cr_expect_eq(json_array_size(json_object_get(unbound, "bound_layers")), 0);
	cr_expect_eq(json_array_size(json_object_get(unbound, "unbound_layers")), ENGINE_LAYERS);
	cr_expect(json_is_null(json_object_get(unbound, "bound_since")));
	json_decref(status);
	command_free(&tool);
	engine_close(&engine_a);
}

Test(tools_status, the_table_and_the_json_object_tell_of_every_channel)
{
	json_t *status;
	const json_t *channel;

	test_daemon_start(&daemon_a, NULL);
	open_engine("table");
	run_steps("table", 6);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("status")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, "r3ringd " R3RING_VERSION), "%s", tool.out);
	cr_expect(strstr(tool.out, channel_name("table")), "%s", tool.out);
	cr_expect(strstr(tool.out, "lost: nothing"), "%s", tool.out);
	command_free(&tool);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("status", "--json")), 0);
	status = json_loads(tool.out, 0, NULL);
	channel = channel_of(status, channel_name("table"));
	cr_assert_not_null(channel, "%s", tool.out);
	cr_expect_eq(integer(channel, "steps"), 6);
	cr_expect_eq(integer(channel, "rows"), 6 * ROWS);
	cr_expect_leq(json_number_value(json_object_get(channel, "steps_per_s")), 6.0,
		      "a rate of less than a second");
	cr_expect_eq(integer(json_object_get(status, "daemon"), "pid"), daemon_a.pid);
	json_decref(status);
	command_free(&tool);
	engine_close(&engine_a);
}

Test(tools_status, a_daemon_without_channels_is_no_failure)
{
	test_daemon_start(&daemon_a, NULL);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("status")), 0);
	cr_expect(strstr(tool.out, "no channels"), "%s", tool.out);
}

/* ---- produce ---------------------------------------------------------- */

static bool has_channel(const char *channel)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		json_t *status = channel_status(daemon_a.dir, channel);

		if (status) {
			json_decref(status);
			return true;
		}
		poll(NULL, 0, LOOK_MS);
	}
	return false;
}

Test(tools_produce, it_tells_what_no_daemon_took)
{
	const json_t *undelivered, *restart;
	json_t *summary;
	const char *instance;

	test_daemon_start(&daemon_a, NULL);
	instance = engine_instance(daemon_a.dir, "gone");
	command_start(&tool, daemon_a.dir,
		      ARGS("produce", "--instance", instance, "--model", "gpt-oss-20b", "--text",
			   "LICENSE", "--rate", "20", "--max-steps", "40", "--requests", "100",
			   "--json"));
	cr_assert(has_channel(channel_name("gone")), "%s", daemon_a.log);
	test_daemon_kill(&daemon_a);
	cr_assert_eq(command_wait(&tool), 0, "%s", tool.err);
	cr_expect(strstr(tool.err, "that none has taken are lost"), "%s", tool.err);
	summary = json_loads(tool.out, 0, NULL);
	undelivered = json_object_get(summary, "undelivered");
	restart = json_object_get(json_object_get(summary, "dropped"), "daemon_restart");
	cr_expect_eq(integer(summary, "steps"), 40);
	cr_expect(json_is_false(json_object_get(summary, "connected")));
	cr_expect_gt(integer(undelivered, "steps"), 0);
	cr_expect_gt(integer(undelivered, "rows"), 0);
	cr_expect_geq(integer(restart, "steps"), integer(undelivered, "steps"));
	cr_expect_gt(integer(summary, "never_begun"), 0);
	json_decref(summary);
	command_free(&tool);
}
