/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of an instance: all its ranks. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/command.h"
#include "tests/support/ranks.h"

#define STEPS 20u
#define STEP_END "\"type\":\"step_end\""

static struct ranks ranks;
static struct command tool;

static void setup(void)
{
	ranks_start(&ranks, (const char *[]){"--ring-size", "4M", NULL});
}

static void teardown(void)
{
	ranks_stop(&ranks);
}

TestSuite(many_dump, .init = setup, .fini = teardown, .timeout = 120);

static unsigned int lines_with(const char *text, const char *part, const char *other)
{
	unsigned int count = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n');
		const char *one = strstr(line, part), *also = strstr(line, other);

		if (!end)
			break;
		count += one && one < end && also && also < end;
	}
	return count;
}

static void dump_json(const char *const *args)
{
	cr_expect_eq(command_run(&tool, ranks.daemon.dir, args), 0, "%s", tool.err);
}

static void expect_dumped(uint32_t rank, uint32_t steps)
{
	char member[160], suffix[8];

	snprintf(suffix, sizeof(suffix), "%u", rank);
	snprintf(member, sizeof(member), "{\"channel\":\"%s\",", ranks_channel(&ranks, suffix));
	cr_expect_eq(lines_with(tool.out, member, STEP_END), steps, "rank %u", rank);
}

Test(many_dump, a_dump_of_an_instance_names_the_channel_of_every_object)
{
	ranks_open_all(&ranks);
	ranks_open_draft(&ranks);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_run(&ranks, rank, STEPS);
	cr_assert(ranks_published(&ranks, STEPS));
	dump_json((const char *[]){"dump", ranks.name, "--json", NULL});
	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect_dumped(rank, STEPS);
	cr_expect_null(strstr(tool.out, ".draft"));
	cr_expect_eq(lines_with(tool.out, "{", "\"seq\""),
		     lines_with(tool.out, "{\"channel\"", "\"seq\""));
	command_free(&tool);
}

Test(many_dump, a_dump_of_one_channel_is_as_it_was)
{
	ranks_open_all(&ranks);
	ranks_run(&ranks, 0, STEPS);
	dump_json((const char *[]){"dump", ranks_channel(&ranks, "0"), "--json", NULL});
	cr_expect_null(strstr(tool.out, "\"channel\""));
	command_free(&tool);
}

Test(many_dump, a_dump_that_follows_joins_ranks_that_appear)
{
	ranks_open(&ranks, 0);
	ranks_run(&ranks, 0, STEPS);
	command_start(&tool, ranks.daemon.dir,
		      (const char *[]){"dump", ranks.name, "--json", "--follow", NULL});
	ranks_open(&ranks, 1);
	ranks_run(&ranks, 1, STEPS);
	cr_assert(command_prints(&tool, STEP_END, 2 * STEPS));
	cr_assert_eq(command_interrupt(&tool), 0, "%s", tool.err);
	expect_dumped(0, STEPS);
	expect_dumped(1, STEPS);
	command_free(&tool);
}

Test(many_dump, totals_are_those_of_one_channel)
{
	ranks_open_all(&ranks);
	cr_expect_eq(command_run(&tool, ranks.daemon.dir,
				 (const char *[]){"dump", ranks.name, "--count", NULL}),
		     2);
	cr_expect(strstr(tool.err, "/RANK"), "%s", tool.err);
	command_free(&tool);
}
