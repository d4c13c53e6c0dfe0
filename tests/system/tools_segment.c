/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of a segment as it lies in shared memory. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/channel_status.h"
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

/* Writes over a word of entry @number of a region. */
static void write_over(uint32_t kind, uint64_t number, size_t offset, uint64_t word)
{
	struct r3ring_segment_header header;
	const struct r3ring_region *region = &header.regions[kind];
	char name[sizeof(segment) + 1];
	off_t at;
	int fd;

	snprintf(name, sizeof(name), "/%s", segment);
	fd = shm_open(name, O_RDWR, 0);
	cr_assert_eq(pread(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
	number &= (1ull << region->count_log2) - 1;
	at = (off_t)(region->offset + region->stride * number + offset);
	cr_assert_eq(pwrite(fd, &word, sizeof(word), at), (ssize_t)sizeof(word));
	close(fd);
}

/* A word of the descriptor of @seq. */
static void damage(uint64_t seq, size_t offset, uint64_t word)
{
	write_over(R3RING_REGION_DESCS, seq, offset, word);
}

/* All but one of the records come, by the daemon and without it, and that one is told. */
static void expect_one_told(void)
{
	const char *channel = tool_stage_channel(&stage, BASE);
	const char *const *const ways[] = {ARGS("dump", "--segment", segment, "--json"),
					   ARGS("dump", channel, "--json")};
	size_t lines = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		size_t count = 0;

		cr_expect_eq(command_run(&tool, stage.daemon.dir, ways[i]), 1, "%s", tool.err);
		cr_expect(strstr(tool.out, "\"lost\":1,"), "%s", tool.out);
		cr_expect(strstr(tool.out, "\"corrupt\":true"), "%s", tool.out);
		cr_expect(strstr(tool.err, "1 records of "), "%s", tool.err);
		for (const char *at = tool.out; (at = strchr(at, '\n')); at++)
			count++;
		lines = lines ? lines : count;
		cr_expect_eq(count, lines);
		cr_expect_gt(count, STEPS * ENGINE_LAYERS);
		command_free(&tool);
	}
}

Test(tools_segment, a_descriptor_that_is_damaged_is_told_as_that)
{
	start();
	damage(5, offsetof(struct r3ring_desc, units), ~0ull);
	expect_one_told();
	tool_stage_close(&stage);
}

Test(tools_segment, a_slot_that_was_emptied_is_told_and_hides_nothing_behind_it)
{
	start();
	damage(5, 0, 0);
	expect_one_told();
	tool_stage_close(&stage);
}

Test(tools_segment, a_slot_that_is_ahead_is_told_and_hides_nothing_behind_it)
{
	start();
	damage(5, 0, 5 + 7);
	expect_one_told();
	tool_stage_close(&stage);
}

/* However it is read, it says so and ends with 1; no record lacks. */
static void expect_tail_told(const char *const *args)
{
	struct dump_tally tally;

	cr_expect_eq(command_run(&tool, stage.daemon.dir, args), 1, "%s", tool.err);
	cr_expect(strstr(tool.err, "says is its newest cannot be; nothing is lost by that"), "%s",
		  tool.err);
	cr_expect_null(strstr(tool.err, "records of"), "%s", tool.err);
	tally = dump_tally(tool.out);
	cr_expect_eq(tally.steps, STEPS);
	cr_expect_eq(tally.gaps, 0);
	dump_tally_free(&tally);
	command_free(&tool);
}

Test(tools_segment, a_newest_sequence_that_cannot_be_is_told_though_no_record_lacks)
{
	char instance[32];

	start();
	snprintf(instance, sizeof(instance), "%s", engine_instance(stage.daemon.dir, BASE));
	write_over(R3RING_REGION_LINES, 0, offsetof(struct r3ring_writer_lines, tail_seq),
		   1ull << 40);
	expect_tail_told(ARGS("dump", "--segment", segment, "--json"));
	expect_tail_told(ARGS("dump", tool_stage_channel(&stage, BASE), "--json"));
	expect_tail_told(ARGS("dump", instance, "--json"));
	tool_stage_close(&stage);
}

#define OPEN_END "what that ran since is not known"

Test(tools_segment, a_ring_that_its_dead_daemon_left_open_is_told_as_that_in_each_form)
{
	static const char *const forms[] = {"--json", "--count", "--until-idle=0.1"};

	start();
	cr_expect_eq(command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, "--count")), 0);
	cr_expect_str_empty(tool.err, "its daemon lives");
	cr_expect(strstr(tool.out, "losses\n  none\n"), "%s", tool.out);
	test_daemon_kill(&stage.daemon);
	engine_close(&stage.engine);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		command_free(&tool);
		cr_expect_eq(
			command_run(&tool, NOWHERE, ARGS("dump", "--segment", segment, forms[i])),
			0);
		cr_expect(strstr(tool.err, OPEN_END), "%s: %s", forms[i], tool.err);
		cr_expect_eq(strstr(tool.out, "daemon_gone        unknown") != NULL, i == 1, "%s",
			     tool.out);
	}
}

Test(tools_segment, that_of_an_engine_that_had_ended_is_not_told_as_left_open)
{
	start();
	engine_close(&stage.engine);
	cr_assert(status_becomes(stage.daemon.dir, tool_stage_channel(&stage, BASE),
				 status_has_ended, 1));
	test_daemon_kill(&stage.daemon);
	cr_expect_eq(
		command_run(&tool, stage.daemon.dir, ARGS("dump", "--segment", segment, "--count")),
		0);
	cr_expect_str_empty(tool.err);
	cr_expect(strstr(tool.out, "losses\n  none\n"), "%s", tool.out);
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
