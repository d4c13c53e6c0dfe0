/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything with its defaults in a plain container: 64 MiB of /dev/shm, and
 * io_uring refused. The tests make the container for themselves.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/channel_status.h"
#include "tests/support/command.h"
#include "tests/support/container.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define TEXT "LICENSE"
#define STEPS "20"
#define ENGINES_TRIED 8 /* three rings fit */

static struct container plain = {.shm_size = CONTAINER_SHM, .io_uring_error = EPERM};
static struct test_daemon daemon_a;
static struct engine engines[ENGINES_TRIED];
static struct command produce_a, produce_b, dump_a, dump_b, tool;

static void make_container(void)
{
	char why[128];

	if (container_make(&plain, why, sizeof(why)))
		cr_skip_test("%s", why);
}

/* r3ringd with its defaults in the container. */
static void start_daemon(void)
{
	make_container();
	daemon_a.prepare = container_join;
	daemon_a.prepare_ctx = &plain;
	test_daemon_start(&daemon_a, NULL);
}

static void start(struct command *command, const char *const *args)
{
	command_start_in(command, &plain, "r3ring", daemon_a.dir, args);
}

static void run(struct command *command, const char *const *args)
{
	start(command, args);
	command_wait(command);
}

/* ---- what ran, and what was read -------------------------------------- */

struct model {
	const char *name, *channel, *rank;
	json_int_t layers, top_k;
};

static const struct model deepseek = {"deepseek-v4-flash", "plain/0", "0", 43, 6};
static const struct model kimi = {"kimi-k3", "plain/1", "1", 92, 16};

static void start_produce(struct command *produce, const struct model *model, const char *steps)
{
	start(produce, ARGS("produce", "--instance", "plain", "--rank", model->rank, "--model",
			    model->name, "--text", TEXT, "--json", "--max-steps", steps));
}

static void expect_in(const char *out, const char *text)
{
	cr_expect(strstr(out, text), "\"%s\" is not in: %s", text, out);
}

/* Whether `r3ring dump --count` has every row of every layer of what ran. */
static void expect_all_read(const struct command *produce, const struct command *dump,
			    const struct model *model)
{
	json_t *ran = json_loads(produce->out, 0, NULL);
	json_int_t steps = json_integer_value(json_object_get(ran, "steps"));
	json_int_t rows = json_integer_value(json_object_get(ran, "rows"));
	char text[128];

	cr_assert_eq(produce->code, 0, "%s", produce->err);
	cr_assert_eq(dump->code, 0, "%s", dump->err);
	cr_expect_gt(rows, 0);
	snprintf(text, sizeof(text), " rows %lld, dropped 0\n", rows);
	expect_in(dump->out, text);
	snprintf(text, sizeof(text), " rows %lld, ids %lld, missing 0, out of range 0\n",
		 rows * model->layers, rows * model->layers * model->top_k);
	expect_in(dump->out, text);
	snprintf(text, sizeof(text), " complete %lld, partial 0\n", steps);
	expect_in(dump->out, text);
	expect_in(dump->out, "losses\n  none\n");
	json_decref(ran);
}

/* ---- capture ---------------------------------------------------------- */

Test(container_run, models_with_defaults_one_after_the_other_are_read_in_full)
{
	start_daemon();
	expect_in(daemon_a.log, "runs on epoll");
	start_produce(&produce_a, &deepseek, STEPS);
	command_wait(&produce_a);
	start_produce(&produce_b, &kimi, STEPS);
	command_wait(&produce_b);
	run(&dump_a, ARGS("dump", "plain/0", "--count"));
	run(&dump_b, ARGS("dump", "plain/1", "--count"));
	expect_all_read(&produce_a, &dump_a, &deepseek);
	expect_all_read(&produce_b, &dump_b, &kimi);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

static bool has_been_read(const json_t *channel, long unused)
{
	const json_t *readers = json_object_get(channel, "readers");
	const json_t *lag = json_object_get(json_array_get(readers, 0), "lag_records");

	return status_has_ended(channel, unused) && json_array_size(readers) == 1 &&
	       json_is_integer(lag) && json_integer_value(lag) == 0;
}

static void interrupt_when_all_is_read(struct command *dump, const struct model *model)
{
	cr_expect(status_becomes(daemon_a.dir, model->channel, has_been_read, 0));
	command_interrupt(dump);
}

Test(container_run, two_models_at_a_time_are_read_in_full_as_they_run)
{
	plain.io_uring_error = ENOSYS; /* as kernels and profiles without it say */
	start_daemon();
	expect_in(daemon_a.log, "runs on epoll");
	start(&dump_a, ARGS("dump", "plain/0", "--follow", "--count"));
	start(&dump_b, ARGS("dump", "plain/1", "--follow", "--count"));
	start_produce(&produce_a, &deepseek, STEPS);
	start_produce(&produce_b, &kimi, STEPS);
	/* Else nobody could ever read anything. */
	cr_assert_eq(command_wait(&produce_a), 0, "%s", produce_a.err);
	cr_assert_eq(command_wait(&produce_b), 0, "%s", produce_b.err);
	interrupt_when_all_is_read(&dump_a, &deepseek);
	interrupt_when_all_is_read(&dump_b, &kimi);
	expect_all_read(&produce_a, &dump_a, &deepseek);
	expect_all_read(&produce_b, &dump_b, &kimi);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- too many rings --------------------------------------------------- */

/* Opens as many engines at the same time as get their ring; how many. The next is refused: @err. */
static unsigned int open_engines(struct r3ring_error *err)
{
	unsigned int count = 0;

	while (count < ENGINES_TRIED &&
	       engine_open_rank(&engines[count], daemon_a.dir, "plain",
				(struct engine_rank){.rank = count}, 16, err) == 0)
		count++;
	return count;
}

static void close_engines(unsigned int count)
{
	while (count)
		engine_close(&engines[--count]);
}

Test(container_run, failure_01_who_finds_no_room_is_told_need_free_held_and_remedy)
{
	struct r3ring_error err = {0};
	unsigned int count;

	start_daemon();
	count = open_engines(&err);
	cr_expect_eq(count, 3);
	cr_expect_eq(err.code, -ENOSPC);
	expect_in(err.text, " needs 19005440 bytes of shared memory, ");
	expect_in(err.text, " are free in /dev/shm: ");
	expect_in(err.text, "--ring-size");
	expect_in(err.text, "--shm-size");
	expect_in(err.text, "live channels of this r3ringd hold 57016320 bytes");
	/* Who has a ring keeps it. */
	cr_expect(status_becomes(daemon_a.dir, "plain/0", status_is_there, 0));
	close_engines(count);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(container_run, failure_01_the_remedy_is_one)
{
	struct r3ring_error err = {0};

	make_container();
	daemon_a.prepare = container_join;
	daemon_a.prepare_ctx = &plain;
	test_daemon_start(&daemon_a, ARGS("--ring-size", "4M"));
	cr_expect_eq(open_engines(&err), ENGINES_TRIED, "%s", err.text);
	close_engines(ENGINES_TRIED);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- rings that have ended -------------------------------------------- */

static void run_ranks(unsigned int ranks)
{
	for (unsigned int rank = 0; rank < ranks; rank++) {
		char text[16], channel[32];

		snprintf(text, sizeof(text), "%u", rank);
		snprintf(channel, sizeof(channel), "plain/%u", rank);
		command_free(&tool);
		run(&tool, ARGS("produce", "--instance", "plain", "--rank", text, "--model",
				deepseek.name, "--text", TEXT, "--max-steps", "2"));
		cr_expect_eq(tool.code, 0, "%s", tool.err);
		cr_expect(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	}
}

Test(container_run, an_ended_channel_gives_its_room_in_shm_to_a_new_one_those_with_a_reader_last)
{
	start_daemon();
	start(&dump_a, ARGS("dump", "plain/0", "--follow", "--count"));
	run_ranks(4);
	cr_expect(test_daemon_said(&daemon_a,
				   "channel plain/1: has ended, removed: /dev/shm has no room"));
	cr_expect_null(strstr(daemon_a.log, "channel plain/0: has ended, removed"));
	run(&dump_b, ARGS("dump", "plain/3", "--count"));
	expect_in(dump_b.out, " complete 2, partial 0\n");
	command_interrupt(&dump_a);
	expect_in(dump_a.out, " complete 2, partial 0\n");
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(container_run, the_former_generation_gives_its_room_in_shm_where_nothing_else_does)
{
	plain.shm_size = "20m";
	start_daemon();
	run_ranks(1);
	run_ranks(1);
	cr_expect(test_daemon_said(&daemon_a,
				   "channel plain/0: has ended, removed: /dev/shm has no room"));
	run(&dump_a, ARGS("dump", "plain/0", "--count"));
	expect_in(dump_a.out, " complete 2, partial 0\n");
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- what is said of it ----------------------------------------------- */

static void expect_finding(const json_t *report, const char *name, const char *detail,
			   const char *remedy)
{
	const json_t *finding;
	size_t i;

	json_array_foreach (json_object_get(report, "checks"), i, finding) {
		if (strcmp(json_string_value(json_object_get(finding, "check")), name) != 0)
			continue;
		cr_expect_str_eq(json_string_value(json_object_get(finding, "verdict")), "WARN");
		expect_in(json_string_value(json_object_get(finding, "detail")), detail);
		expect_in(json_string_value(json_object_get(finding, "remedy")), remedy);
		return;
	}
	cr_expect(false, "nothing is said of %s: %s", name, tool.out);
}

Test(container_run, doctor_names_the_small_shm_and_the_refused_io_uring_with_remedies)
{
	json_t *report;

	start_daemon();
	run(&tool, ARGS("doctor", "--json"));
	report = json_loads(tool.out, 0, NULL);
	cr_assert_not_null(report, "%s", tool.out);
	expect_finding(report, "shared memory", "room for 3 rings", "--shm-size");
	expect_finding(report, "io_uring", "epoll", "seccomp");
	json_decref(report);
}

Test(container_run, doctor_judges_by_the_ring_size_of_the_daemon_that_runs)
{
	json_t *report;

	make_container();
	daemon_a.prepare = container_join;
	daemon_a.prepare_ctx = &plain;
	test_daemon_start(&daemon_a, ARGS("--ring-size", "4M"));
	run(&tool, ARGS("doctor", "--json"));
	report = json_loads(tool.out, 0, NULL);
	cr_assert_not_null(report, "%s", tool.out);
	expect_finding(report, "shared memory", "room for 26 rings of 2.4 MiB", "--shm-size");
	json_decref(report);
}

/* ---- the demo --------------------------------------------------------- */

Test(container_run, the_demo_compares_every_row_and_finds_none_wrong)
{
	make_container();
	command_start_in(&tool, &plain, "tests/run-demo", "", ARGS(TEXT, "2"));
	cr_expect_eq(command_wait(&tool), 0, "%s%s", tool.out, tool.err);
	expect_in(tool.out, "Every row of every layer came");
}
