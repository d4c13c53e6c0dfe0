/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's command lines: help, refusals, and what the exit code says. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"

#define NOWHERE "/nonexistent/r3ring"
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct command tool;

static void expect(const char *const *args, int code, const char *in_out, const char *in_err)
{
	cr_expect_eq(command_run(&tool, NOWHERE, args), code, "%s: %d: %s", args[0], tool.code,
		     tool.err);
	cr_expect(strstr(tool.out, in_out), "\"%s\" is not in: %s", in_out, tool.out);
	cr_expect(strstr(tool.err, in_err), "\"%s\" is not in: %s", in_err, tool.err);
	command_free(&tool);
}

/* ---- help ------------------------------------------------------------- */

Test(tools_usage, help_is_on_stdout_and_no_failure)
{
	expect(ARGS("--help"), 0, "usage: r3ring COMMAND", "");
	expect(ARGS("status", "--help"), 0, "usage: r3ring status", "");
	expect(ARGS("dump", "--help"), 0, "usage: r3ring dump", "");
	expect(ARGS("gc", "--help"), 0, "usage: r3ring gc", "");
	expect(ARGS("doctor", "--help"), 0, "usage: r3ring doctor", "");
	expect(ARGS("produce", "--help"), 0, "usage: r3ring produce", "");
	expect(ARGS("record", "--help"), 0, "usage: r3ring record", "");
	expect(ARGS("--version"), 0, "r3ring " R3RING_VERSION "\n", "");
}

Test(tools_usage, every_command_that_help_lists_has_help_of_its_own)
{
	char *list, *line, *rest;
	unsigned int commands = 0;

	cr_assert_eq(command_run(&tool, NOWHERE, ARGS("--help")), 0);
	list = strstr(tool.out, "commands:\n");
	cr_assert_not_null(list);
	for (line = strtok_r(list + 10, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char name[32];
		struct command help;

		if (line[0] != ' ')
			break;
		cr_assert_eq(sscanf(line, " %31s", name), 1);
		cr_expect_eq(command_run(&help, NOWHERE, ARGS(name, "--help")), 0, "%s", name);
		command_free(&help);
		commands++;
	}
	cr_expect_geq(commands, 4);
	command_free(&tool);
}

/* ---- refusals --------------------------------------------------------- */

Test(tools_usage, no_command_is_a_usage_error)
{
	const char *const none[] = {NULL};

	cr_expect_eq(command_run(&tool, NOWHERE, none), 2);
	cr_expect(strstr(tool.err, "usage: r3ring COMMAND"));
	cr_expect_str_empty(tool.out);
	command_free(&tool);
}

Test(tools_usage, an_unknown_command_suggests_the_nearest)
{
	expect(ARGS("stats"), 2, "", "unknown command 'stats'; did you mean 'status'?");
	expect(ARGS("dmup"), 2, "", "did you mean 'dump'?");
	expect(ARGS("frobnicate"), 2, "", "unknown command 'frobnicate'\n");
}

Test(tools_usage, a_wrong_option_names_itself_and_what_is_allowed)
{
	expect(ARGS("status", "--frob"), 2, "", "--frob");
	expect(ARGS("status", "extra"), 2, "", "'extra'");
	expect(ARGS("doctor", "extra"), 2, "", "'extra'");
	expect(ARGS("dump"), 2, "", "NAME/RANK");
	expect(ARGS("dump", "a/0", "b/0"), 2, "", "'b/0'");
	expect(ARGS("dump", "a/0", "--json", "--count"), 2, "", "exclude each other");
	expect(ARGS("dump", "a/0", "--from", "-1"), 2, "", "'-1' is not 'oldest'");
	expect(ARGS("dump", "a/0", "--from", "0"), 2, "", "sequence number from 1");
	expect(ARGS("dump", "a/0", "--from", "99999999999999999999"), 2, "", "--from");
	expect(ARGS("dump", "a/0", "--until-idle", "0"), 2, "", "--until-idle");
	expect(ARGS("dump", "a/0", "--until-idle", "nan"), 2, "", "--until-idle");
	expect(ARGS("dump", "a/0", "--until-idle", "2s"), 2, "", "--until-idle");
	expect(ARGS("dump", "a/0", "--layer", "x"), 2, "", "--layer");
	expect(ARGS("dump", "a/0", "--layer", "mtp:"), 2, "", "--layer");
	expect(ARGS("dump", "--segment", "r3ring.0.a.0.1", "b/0"), 2, "", "'b/0' is too much");
	expect(ARGS("dump", "--segment", "r3ring.0.a.0.1", "--lossless"), 2, "",
	       "nobody waits for it");
	expect(ARGS("dump", "--segment", "a/0"), 2, "", "'a/0' is no segment's name");
	expect(ARGS("dump", "--segment", "/"), 2, "", "is no segment's name");
	expect(ARGS("dump", "--segment", "r3ring.none"), 3, "", "r3ring.none");
	expect(ARGS("produce", "--rate", "1e9"), 2, "", "at most 1000000");
	expect(ARGS("produce", "--rank", "4294967296"), 2, "", "0 to 4294967295");
}

Test(tools_usage, a_channel_name_that_is_none_says_what_is_allowed)
{
	expect(ARGS("dump", "de mo"), 2, "", "de mo");
	expect(ARGS("dump", "de mo/0"), 2, "", "de mo");
	expect(ARGS("dump", "demo/x"), 2, "", "demo/x");
}

Test(tools_usage, without_a_daemon_the_exit_code_is_3_and_the_place_is_named)
{
	expect(ARGS("status"), 3, "", NOWHERE "/r3ringd.sock");
	expect(ARGS("status", "--json"), 3, "", NOWHERE "/r3ringd.sock");
	expect(ARGS("dump", "demo"), 3, "", NOWHERE "/r3ringd.sock");
	expect(ARGS("dump", "demo/0"), 3, "", NOWHERE "/r3ringd.sock");
	expect(ARGS("dump", "demo/0", "--follow"), 3, "", NOWHERE "/r3ringd.sock");
}

/* ---- output that is not taken ----------------------------------------- */

/* Runs a line of sh(1) in which $TOOL is the tool. Returns its exit code. */
static int shell(const char *line)
{
	int status;

	setenv("TOOL", test_program("r3ring"), 1);
	status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(tools_usage, output_that_cannot_be_written_is_a_failure)
{
	cr_expect_eq(shell("\"$TOOL\" --help > /dev/full 2> /dev/null"), 1);
	cr_expect_eq(shell("\"$TOOL\" doctor --json > /dev/full 2> /dev/null"), 1);
}

/* @line writes to the file $ERRORS what is to have @text in it. */
static void expect_errors(const char *line, const char *text)
{
	char path[] = "/tmp/r3ring-test.XXXXXX", told[512] = "";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	setenv("ERRORS", path, 1);
	cr_expect_eq(shell(line), 1);
	cr_assert_geq(read(fd, told, sizeof(told) - 1), 0);
	cr_expect(strstr(told, text), "\"%s\" is not in: %s", text, told);
	close(fd);
	unlink(path);
}

Test(tools_usage, output_that_cannot_be_written_is_told_with_its_place_and_reason)
{
	expect_errors("\"$TOOL\" --help > /dev/full 2> \"$ERRORS\"",
		      "after 0 bytes: No space left on device");
	expect_errors("f=$(mktemp); trap '' XFSZ; (ulimit -f 1; \"$TOOL\" dump --help > $f) 2> "
		      "\"$ERRORS\"; code=$?; rm $f; exit $code",
		      "after 512 bytes: File too large");
}

Test(tools_usage, a_pipe_whose_reader_has_had_enough_is_no_failure)
{
	int ends[2], status = -1;
	pid_t pid;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	pid = fork();
	if (!pid) {
		signal(SIGPIPE, SIG_IGN); /* as programs do that start others */
		dup2(ends[1], STDOUT_FILENO);
		execl(test_program("r3ring"), "r3ring", "dump", "--help", NULL);
		_exit(127);
	}
	close(ends[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

/* ---- doctor ----------------------------------------------------------- */

static json_t *doctor(const char *runtime_dir, int code)
{
	json_t *report;

	cr_expect_eq(command_run(&tool, runtime_dir, ARGS("doctor", "--json")), code, "%s",
		     tool.out);
	report = json_loads(tool.out, 0, NULL);
	cr_assert(json_is_object(report), "%s", tool.out);
	command_free(&tool);
	return report;
}

static const char *verdict(const json_t *report, const char *name, const char *field)
{
	const json_t *check;
	size_t i;

	json_array_foreach (json_object_get(report, "checks"), i, check) {
		if (!strcmp(json_string_value(json_object_get(check, "check")), name))
			return json_string_value(json_object_get(check, field));
	}
	return "no such check";
}

Test(tools_doctor, what_it_finds_wrong_has_a_remedy)
{
	char file[] = "/tmp/r3ring-test.XXXXXX";
	int fd = mkstemp(file);
	json_t *report = doctor(file, 1);
	const json_t *check;
	size_t i;

	cr_expect(json_is_true(json_object_get(report, "failed")));
	cr_expect_str_eq(verdict(report, "runtime directory", "verdict"), "FAIL");
	json_array_foreach (json_object_get(report, "checks"), i, check) {
		bool fine = !strcmp(json_string_value(json_object_get(check, "verdict")), "OK");
		const char *remedy = json_string_value(json_object_get(check, "remedy"));

		cr_expect_eq(fine, !remedy[0], "%s", remedy);
	}
	json_decref(report);
	close(fd);
	unlink(file);
}

Test(tools_doctor, failure_30_a_directory_that_everybody_may_write_to_fails)
{
	char dir[] = "/tmp/r3ring-test.XXXXXX";
	json_t *report;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0777), 0);
	report = doctor(dir, 1);
	cr_expect_str_eq(verdict(report, "runtime directory", "verdict"), "FAIL");
	cr_expect(strstr(verdict(report, "runtime directory", "remedy"), "chmod"));
	json_decref(report);
	rmdir(dir);
}

Test(tools_doctor, a_path_that_no_socket_takes_fails)
{
	char dir[200];
	json_t *report;

	memset(dir, 'd', sizeof(dir) - 1);
	dir[0] = '/';
	dir[sizeof(dir) - 1] = '\0';
	report = doctor(dir, 1);
	cr_expect_str_eq(verdict(report, "runtime directory", "verdict"), "FAIL");
	json_decref(report);
}

Test(tools_doctor, a_daemon_that_answers_is_named_with_its_version)
{
	static struct test_daemon daemon_a;
	json_t *report;

	test_daemon_start(&daemon_a, NULL);
	report = doctor(daemon_a.dir, 0);
	cr_expect_str_eq(verdict(report, "daemon", "verdict"), "OK");
	cr_expect(strstr(verdict(report, "daemon", "detail"), "r3ringd " R3RING_VERSION));
	cr_expect_str_eq(verdict(report, "runtime directory", "verdict"), "OK");
	json_decref(report);
	test_daemon_close(&daemon_a);
}

/* ---- record ------------------------------------------------------------ */

Test(tools_usage, record_refuses_what_does_not_fit_and_says_what)
{
	const char *const dir = "/nonexistent/archive";

	expect(ARGS("record"), 2, "", "-o DIR");
	expect(ARGS("record", "-o", dir), 2, "", "--instance NAME");
	expect(ARGS("record", "-o", dir, "--instance", "a", "a/0"), 2, "", "not both");
	expect(ARGS("record", "-o", dir, "a/0", "b/0"), 2, "", "of one instance only");
	expect(ARGS("record", "-o", dir, "a/x"), 2, "", "a/x");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--rotate"), 2, "", "--max-size");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--layers", "5"), 2, "", "'5' is not");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--layers", "5:5"), 2, "", "A:B");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--level", "20"), 2, "", "'20'");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--sync", "0"), 2, "", "'0' is not");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--max-size", "5x"), 2, "", "'5x'");
	expect(ARGS("record", "-o", dir, "--instance", "a", "--until-idle", "-1"), 2, "", "'-1'");
	expect(ARGS("record", "-o", dir, "--instance", "de mo"), 2, "", "de mo");
}

/* Nor is anything made there. */
Test(tools_usage, record_without_a_daemon_is_3)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/tmp/r3ring-none-%d", getpid());
	expect(ARGS("record", "-o", dir, "--instance", "a"), 3, "", NOWHERE "/r3ringd.sock");
	expect(ARGS("record", "-o", dir, "a/0"), 3, "", NOWHERE "/r3ringd.sock");
	cr_expect_neq(access(dir, F_OK), 0);
}
