/* SPDX-License-Identifier: Apache-2.0 */
/* The service as curl sees it, over TCP. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/serve_stage.h"

static struct command server;
static char address[64]; /* 127.0.0.1:PORT */
static char large[160];  /* a file of more than a body may have */

static void start(void)
{
	if (system("command -v curl > /dev/null 2>&1"))
		cr_skip_test("no curl here");
	serve_stage_start();
	snprintf(large, sizeof(large), "%s/large", stage.tool.daemon.dir);
}

static void stop(void)
{
	command_free(&server);
	serve_stage_stop();
}

TestSuite(serve_curl, .init = start, .fini = stop);

/* On a port that was free, which it tells. */
static void serve_tcp(const char *token_file)
{
	const char *args[] = {"serve",
			      "--instance",
			      serve_stage_instance(),
			      "--listen",
			      "127.0.0.1:0",
			      "--gpus",
			      "2",
			      "--capacity",
			      "100",
			      "--allow-host",
			      "r3ring.example",
			      token_file ? "--token-file" : NULL,
			      token_file,
			      NULL};
	char text[256] = "";
	const char *found;

	command_start(&server, stage.tool.daemon.dir, args);
	cr_assert(command_tells(&server, "listening on"));
	cr_assert_gt(pread(server.err_fd, text, sizeof(text) - 1, 0), 0);
	found = strstr(text, "127.0.0.1:");
	cr_assert(found, "%s", text);
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(found, "\n"), found);
}

/* What curl says of it: the status that it got, or 0. */
static int curl(const char *options, const char *path)
{
	char line[1024], status[16] = "";
	FILE *out;

	snprintf(line, sizeof(line), "curl -s -o /dev/null -w '%%{http_code}' %s 'http://%s%s'",
		 options, address, path);
	out = popen(line, "r");
	cr_assert(out);
	if (!fgets(status, sizeof(status), out))
		status[0] = '\0';
	pclose(out);
	return atoi(status);
}

/* How many bytes of a file curl sends: it asks first, and is told before it begins. */
static long sent_of(const char *file)
{
	char line[512];
	long sent = -1;
	FILE *out;

	snprintf(line, sizeof(line),
		 "curl -s -o /dev/null -w '%%{size_upload}' -H 'Expect: 100-continue' "
		 "--expect100-timeout 60 --data-binary @%s 'http://%s/v1/score'",
		 file, address);
	out = popen(line, "r");
	cr_assert(out);
	cr_assert_eq(fscanf(out, "%ld", &sent), 1);
	pclose(out);
	return sent;
}

static void write_file(const char *path, const char *text, size_t times)
{
	FILE *out = fopen(path, "w");

	cr_assert(out);
	while (times-- > 0)
		fputs(text, out);
	fchmod(fileno(out), 0600);
	cr_assert_eq(fclose(out), 0);
}

Test(serve_curl, what_is_asked_rightly_is_answered_and_all_else_is_refused)
{
	char sends_large[200], sends_pieces[260];
	const struct {
		const char *options, *path;
		int status;
	} asked[] = {
		{"", "/v1", 200},
		{"--http1.0", "/v1", 200},
		{"-I", "/v1/channels", 200},
		{"-H 'Host: localhost:1'", "/v1", 200},
		{"-H 'Host: R3ring.example:80'", "/v1", 200},
		{"-H 'Host: evil.example'", "/v1", 421},
		{"-H 'Host:'", "/v1", 421},
		{"--request-target http://localhost:1/v1/channels", "/", 200},
		{"--request-target http://localhost:1", "/", 200},
		{"--request-target http://localhost:1/v1 -H 'Host: evil.example'", "/", 200},
		{"--request-target http://evil.example/v1", "/", 421},
		{"--request-target http:///v1", "/", 400},
		{"-H 'Origin: http://evil.example'", "/v1", 403},
		{"-H 'Origin: null' -d '{\"key\": \"a\"}'", "/v1/reservations", 403},
		{"-H 'Origin: http://localhost:3000'", "/v1", 403},
		{"-H 'Origin: http://127.0.0.1:9999' -d '{\"key\": \"a\"}'", "/v1/reservations",
		 403},
		{"-H 'Origin: http://127.0.0.1'", "/v1", 403},
		{"-H 'Host: localhost:1' -H 'Origin: http://localhost:1'", "/v1", 200},
		{"", "/v1/load?over=average&epoch=2", 400},
		{"", "/v1/load?epoch=newest", 400},
		{"", "/v1/load?epoch=", 400},
		{"", "/v1/load?epoch=-1", 400},
		{"", "/v1/load?epoch=18446744073709551615", 400},
		{"", "/v1/load?epoch=2", 503},
		{"", "/v1/load?over=never", 400},
		{"", "/v1/channels?x=1", 400},
		{"--path-as-is", "/v1/../../etc/passwd", 404},
		{"-X BREW", "/v1", 405},
		{"-X OPTIONS", "/v1/reservations", 405},
		{"-X POST", "/v1/score", 400},
		{"-d 'tokens=1'", "/v1/score", 400},
		{"-d '{\"tokens\": 1}'", "/v1/score", 200},
		{"", "/v1/reservations?limit=1001", 400},
		{"", "/v1/reservations?limit=1&limit=1", 400},
		{"", "/v1/reservations?after=x", 400},
		{"", "/v1/reservations", 503},
		{sends_large, "/v1/score", 413},
		{sends_pieces, "/v1/score", 413},
	};

	write_file(large, "                                                                ", 5000);
	snprintf(sends_large, sizeof(sends_large), "--data-binary @%s", large);
	snprintf(sends_pieces, sizeof(sends_pieces),
		 "-H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary @%s", large);
	serve_tcp(NULL);
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		int status = curl(asked[i].options, asked[i].path);

		cr_expect_eq(status, asked[i].status, "curl %s %s: %d, not %d", asked[i].options,
			     asked[i].path, status, asked[i].status);
	}
	cr_expect_eq(sent_of(large), 0, "what is too long is not read");
	unlink(large);
}

/* The body that curl writes out. A new reference. */
static json_t *fetch(const char *path)
{
	char line[512];
	json_t *json;
	FILE *out;

	snprintf(line, sizeof(line), "curl -s 'http://%s%s'", address, path);
	out = popen(line, "r");
	cr_assert(out);
	json = json_loadf(out, 0, NULL);
	pclose(out);
	cr_assert(json, "%s is answered with no JSON", path);
	return json;
}

Test(serve_curl, all_reservations_are_had_page_by_page)
{
	char what[128], seen[64] = "";
	json_int_t after = 0;
	int pages = 0;

	serve_tcp(NULL);
	engine_step(&stage.tool.engine, 0, 4);
	for (int tries = 0; curl("-d '{\"key\": \"a\"}'", "/v1/reservations") != 201; tries++)
		cr_assert_lt(tries, 1000, "the engine's step is not seen");
	for (char key = 'b'; key <= 'g'; key++) {
		snprintf(what, sizeof(what), "-d '{\"key\": \"%c\"}'", key);
		cr_assert_eq(curl(what, "/v1/reservations"), 201);
	}
	do {
		json_t *page, *one;
		size_t i;

		snprintf(what, sizeof(what), "/v1/reservations?limit=3&after=%lld",
			 (long long)after);
		page = fetch(what);
		json_array_foreach (json_object_get(page, "reservations"), i, one)
			strncat(seen, json_string_value(json_object_get(one, "key")), 1);
		after = json_integer_value(json_object_get(page, "next"));
		json_decref(page);
		pages++;
	} while (after && pages < 10);
	cr_expect_str_eq(seen, "abcdefg");
	cr_expect_eq(pages, 3);
}

Test(serve_curl, without_the_token_only_the_page_is_answered)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/token", stage.tool.daemon.dir);
	write_file(file, "s3cret\n", 1);
	serve_tcp(file);
	cr_expect_eq(curl("", "/v1"), 401);
	cr_expect_eq(curl("-H 'Authorization: Bearer s3cre'", "/v1"), 401);
	cr_expect_eq(curl("-u s3cret:s3cret", "/v1"), 401);
	cr_expect_eq(curl("--oauth2-bearer s3cret", "/v1"), 200);
	cr_expect_eq(curl("", "/"), 200);
	cr_expect_eq(curl("--request-target http://localhost/", "/"), 200);
	cr_expect_eq(curl("--request-target http://localhost/v1", "/"), 401);
	cr_expect_eq(curl("", "/v1/nothing"), 401, "not even what there is");
	unlink(file);
}
