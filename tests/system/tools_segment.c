/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of a segment as it lies in shared memory. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/dump_tally.h"

#define BASE "segment"
#define STEPS 5
#define NOWHERE "/nonexistent/r3ring"

static struct tool_stage stage;
static struct command tool;
static char segment[128];

static void name_segment(unsigned int generation)
{
	snprintf(segment, sizeof(segment), "r3ring.%u.%s.0.%u", geteuid(),
		 engine_instance(stage.daemon.dir, BASE), generation);
}

static void start(void)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, BASE);
	tool_stage_run(&stage, BASE, STEPS);
	name_segment(1);
}

TestSuite(tools_segment, .timeout = 120);

Test(tools_segment, what_it_prints_is_what_the_daemon_would_have_given)
{
	char path[160];

	start();
	cr_expect_eq(
		tool_stage_tool(&stage, ARGS("dump", tool_stage_channel(&stage, BASE), "--json")),
		0, "%s", stage.tool.err);
	cr_expect_eq(dump_tally(stage.tool.out).steps, STEPS);
	cr_expect_eq(command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--json")), 0,
		     "%s", tool.err);
	cr_expect_str_eq(tool.out, stage.tool.out);
	command_free(&tool);
	snprintf(path, sizeof(path), "/dev/shm/%s", segment);
	cr_expect_eq(command_run(&tool, NOWHERE, ARGS("dump", "--segment", path, "--json")), 0);
	cr_expect_str_eq(tool.out, stage.tool.out);
	tool_stage_close(&stage);
}

Test(tools_segment, it_is_readable_after_the_death_of_everybody)
{
	struct dump_tally tally;

	start();
	test_daemon_kill(&stage.daemon);
	engine_close(&stage.engine);
	cr_expect_eq(command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--json")), 0,
		     "%s", tool.err);
	tally = dump_tally(tool.out);
	cr_expect_eq(tally.steps, STEPS);
	cr_expect_eq(tally.attributed, STEPS);
	cr_expect_eq(tally.layers, STEPS * ENGINE_LAYERS);
	cr_expect_eq(tally.wrong_ids, 0);
	dump_tally_free(&tally);
	command_free(&tool);
	cr_expect_eq(command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--count")), 0);
	cr_expect(strstr(tool.out, "complete 5, partial 0"), "%s", tool.out);
}

Test(tools_segment, it_begins_where_it_was_asked_to)
{
	start();
	cr_expect_eq(command_run(&tool, NOWHERE,
				 ARGS("dump", "--segment", segment, "--json", "--from", "4")),
		     0);
	cr_expect_eq(dump_tally(tool.out).first_seq, 4);
	command_free(&tool);
	cr_expect_eq(
		command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--from", "latest")),
		0);
	cr_expect_str_empty(tool.out);
	command_free(&tool);
	cr_expect_eq(
		command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--from", "100000")),
		2);
	cr_expect(strstr(tool.err, "--from 100000 is beyond its newest record"), "%s", tool.err);
	tool_stage_close(&stage);
}

Test(tools_segment, one_that_is_followed_is_waited_for_and_ends_with_its_generation)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	name_segment(1);
	command_start(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--json", "--follow"));
	tool_stage_open(&stage, BASE);
	tool_stage_run(&stage, BASE, 1);
	cr_expect(command_prints(&tool, "\"step_end\"", 1));
	tool_stage_run(&stage, BASE, 2);
	cr_expect(command_prints(&tool, "\"step_end\"", 3));
	engine_close(&stage.engine);
	tool_stage_open(&stage, BASE);
	cr_expect_eq(command_wait(&tool), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, "\"closed\""), "%s", tool.out);
	tally = dump_tally(tool.out);
	cr_expect_eq(tally.steps, 3);
	cr_expect_eq(tally.wrong_ids, 0);
	dump_tally_free(&tally);
	tool_stage_close(&stage);
}

Test(tools_segment, what_is_no_ring_is_refused)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/r3ring.test-garbage-%d", getpid());
	fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0640);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 1 << 20), 0);
	cr_assert_eq(pwrite(fd, "garbage", 7, 0), 7);
	close(fd);
	cr_expect_eq(command_run(&tool, NOWHERE, ARGS("dump", "--segment", name)), 1);
	cr_expect(strstr(tool.err, name), "%s", tool.err);
	shm_unlink(name);
}
