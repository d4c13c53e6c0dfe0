/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input on the command line: each is refused with an exit code and a message
 * that says what, where and what helps, and a capture that runs beside loses
 * nothing by it.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/atomic.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/ledger.h"
#include "tests/support/worker.h"

#define BASE "faults-input"
#define ROWS 4u
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct test_daemon daemon_a;
static struct worker worker_a;
static struct ledger ledger_a;
static char other[R3RING_INSTANCE_MAX + 1]; /* an instance that never comes to be */
static char text[128], trace[128], elsewhere[128];

static int run_until_stopped(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	/* A buffer of many such steps: none is lost where the daemon is merely slow. */
	if (engine_open(&engine, daemon_a.dir, ctx, 512 * ROWS, &page->err) < 0)
		return 1;
	while (!r3ring_load_relaxed_u64(&page->stop)) {
		engine_step(&engine, 0, ROWS);
		/* Pairs with the acquire in worker_reaches(). */
		r3ring_store_release_u64(&page->progress, page->progress + 1);
		worker_compute();
	}
	r3ring_producer_get_stats(engine.producer, &page->stats);
	engine_close(&engine);
	return 0;
}

static void put(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "we");

	cr_assert(file && fwrite(bytes, 1, len, file) == len);
	fclose(file);
}

static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
	snprintf(other, sizeof(other), "%s", engine_instance(daemon_a.dir, "refused"));
	snprintf(text, sizeof(text), "%s/text", daemon_a.dir);
	snprintf(trace, sizeof(trace), "%s/t.json", daemon_a.dir);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", daemon_a.dir);
	put(text, "some words\n", 11);
	worker_start(&worker_a, run_until_stopped, engine_instance(daemon_a.dir, BASE));
	cr_assert(worker_reaches(&worker_a, 1), "%s", worker_a.page->err.text);
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
}

/* What ran beside lost nothing, and no channel was begun by what was refused. */
static void finish(void)
{
	r3ring_store_relaxed_u64(&worker_a.page->stop, 1);
	cr_expect_eq(worker_wait(&worker_a), 0);
	cr_expect(test_daemon_said(&daemon_a, "drained, "));
	cr_expect_eq(test_shm_names(other), 0);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect(ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN));
	cr_expect_eq(ledger_newest(&ledger_a)->complete, worker_a.page->stats.steps);
	cr_expect_eq(ledger_unaccounted(&ledger_a, worker_a.page->stats.steps), 0);
	cr_expect_eq(ledger_a.count, 1);
	cr_expect_eq(ledger_a.wrong, 0);
	ledger_close(&ledger_a);
}

TestSuite(faults_input, .init = start, .fini = finish, .timeout = 120);

/* It must be refused so, and say these words. */
static void expect_in(const char *dir, const char *const *args, int code, const char *where,
		      const char *remedy)
{
	struct command tool;

	cr_expect_eq(command_run(&tool, dir, args), code, "%s: %d: %s", where, tool.code, tool.err);
	cr_expect(strstr(tool.err, where), "\"%s\" is not in: %s", where, tool.err);
	cr_expect(strstr(tool.err, remedy), "\"%s\" is not in: %s", remedy, tool.err);
	command_free(&tool);
}

static void expect(const char *const *args, int code, const char *where, const char *remedy)
{
	expect_in(daemon_a.dir, args, code, where, remedy);
}

/* ---- names and places --------------------------------------------------- */

Test(faults_input, an_unknown_model_is_refused_with_the_known_ones)
{
	expect(ARGS("produce", "--instance", other, "--model", "gpt-5", "--text", text), 2,
	       "\"gpt-5\"", "--model takes one of deepseek-v4-flash");
}

static void expect_instance(const char *instance, const char *where, const char *allowed)
{
	expect(ARGS("produce", "--instance", instance, "--model", "gpt-oss-20b", "--text", text), 2,
	       where, allowed);
}

Test(faults_input, a_bad_instance_name_is_refused_with_what_is_allowed)
{
	expect_instance("", "instance name", "1 to 48");
	expect_instance("a/b", "\"a/b\"", "use letters, digits, '.', '_', '-'");
	expect_instance("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "has 49 bytes",
			"1 to 48");
	expect_instance("gr\xc3\xb6\xc3\x9f"
			"e",
			"byte 3 (0xc3)", "use letters");
}

Test(faults_input, a_socket_path_too_long_is_refused_with_the_limit)
{
	char dir[160] = "/tmp/";

	memset(dir + 5, 'x', 120);
	expect_in(dir, ARGS("status"), 1, dir, "at most 107 bytes; choose a shorter one");
	expect_in(dir, ARGS("dump", "x/0"), 1, dir, "at most 107 bytes; choose a shorter one");
	expect_in(dir,
		  ARGS("produce", "--instance", other, "--model", "gpt-oss-20b", "--text", text), 1,
		  dir, "at most 107 bytes; choose a shorter one");
}

Test(faults_input, without_a_daemon_each_command_says_where_it_looked_and_ends_with_3)
{
	expect_in(elsewhere, ARGS("status"), 3, elsewhere, "start r3ringd");
	expect_in(elsewhere, ARGS("dump", "x/0"), 3, elsewhere, "start r3ringd");
	expect_in(elsewhere,
		  ARGS("produce", "--instance", other, "--model", "gpt-oss-20b", "--text", text), 3,
		  elsewhere, "start r3ringd");
}

Test(faults_input, a_channel_that_is_not_there_is_named)
{
	expect(ARGS("dump", "nobody/0"), 3, "nobody/0", "r3ring status lists them");
}

/* ---- texts -------------------------------------------------------------- */

static void expect_text(const char *path, const char *remedy)
{
	expect(ARGS("produce", "--instance", other, "--model", "gpt-oss-20b", "--text", path), 1,
	       path, remedy);
}

Test(faults_input, an_empty_text_is_refused)
{
	put(text, "", 0);
	expect_text(text, "--text takes a file with text");
	put(text, " \t  ", 4);
	expect_text(text, "--text takes a file with text");
}

Test(faults_input, a_text_that_cannot_be_read_is_refused_with_the_reason)
{
	expect_text(elsewhere, "No such file");
	expect_text(daemon_a.dir, "Is a directory");
	put(text, "a\0b", 3);
	expect_text(text, "byte 0x00 at offset 1");
}

/* ---- recordings --------------------------------------------------------- */

static const char good_header[] =
	"{\"file\":\"t.u16\",\"dtype\":\"uint16 little-endian\",\"shape\":[3,2,2],"
	"\"missing_value\":65535,\"model\":\"tiny\",\"num_experts\":4,\"k\":2,"
	"\"layer_ids\":[1,3],\"requests\":["
	"{\"request_id\":\"a\",\"first_row\":0,\"rows\":3,\"prompt_tokens\":5}]}";

/* The good header with one field changed (in JSON; NULL: left out). */
static void expect_header(const char *field, const char *value, const char *where,
			  const char *remedy)
{
	static const char ids[24];
	json_t *root = json_loads(good_header, 0, NULL);
	char raw[160];

	snprintf(raw, sizeof(raw), "%s/t.u16", daemon_a.dir);
	put(raw, ids, sizeof(ids));
	if (value)
		json_object_set_new(root, field, json_loads(value, JSON_DECODE_ANY, NULL));
	else
		json_object_del(root, field);
	json_dump_file(root, trace, 0);
	json_decref(root);
	expect(ARGS("produce", "--instance", other, "--trace", trace), 1, where, remedy);
}

Test(faults_input, a_recording_without_a_field_is_refused_by_its_name)
{
	expect_header("k", NULL, "field \"k\" is missing", "add it to the header");
	expect_header("shape", NULL, "field \"shape\" is missing", "add it to the header");
	expect_header("requests", NULL, "field \"requests\" is missing", "add it to the header");
}

Test(faults_input, a_recording_of_another_size_is_refused_with_both_sizes)
{
	expect_header("shape", "[4,2,2]", "has 24 bytes",
		      "needs 32: correct the shape or the file");
	expect_header("file", "\"gone.u16\"", "gone.u16: No such file", "put it there");
}

Test(faults_input, a_recording_with_more_experts_a_token_than_there_are_is_refused)
{
	expect_header("num_experts", "1", "field \"k\" is 2, more than num_experts 1",
		      "correct one");
}

Test(faults_input, failure_24_a_recording_of_more_than_65535_experts_is_refused)
{
	expect_header("num_experts", "65536", "field \"num_experts\" is 65536", "1 to 65535");
}

Test(faults_input, a_text_id_too_long_is_refused_with_the_limit)
{
	char requests[400] = "[{\"first_row\":0,\"rows\":3,\"prompt_tokens\":5,\"request_id\":\"";
	size_t len = strlen(requests);

	memset(requests + len, 'r', R3RING_TEXT_ID_MAX + 1);
	strcpy(requests + len + R3RING_TEXT_ID_MAX + 1, "\"}]");
	expect_header("requests", requests, "request_id\" has 257 bytes", "at most 256");
}

Test(faults_input, a_recording_that_is_none_is_refused_with_its_name)
{
	put(trace, "{", 1);
	expect(ARGS("produce", "--instance", other, "--trace", trace), 1, trace,
	       "--trace takes a JSON header");
	expect(ARGS("produce", "--instance", other, "--trace", elsewhere), 1, elsewhere,
	       "No such file");
}
