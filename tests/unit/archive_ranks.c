/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks of an engine are not there, by what those that are say of themselves. */
#include <criterion/criterion.h>

#include "archive/ranks.h"

static struct archive_ranks ranks;
static struct archive_absent_ranks absent;

static void finish(void)
{
	archive_ranks_free(&ranks);
}

TestSuite(archive_ranks, .fini = finish);

static void note(const char *channel, struct r3ring_coordinates rank)
{
	const struct r3ring_schema_record schema = {.rank = rank};

	cr_assert_eq(archive_ranks_note(&ranks, channel, &schema), 0);
	archive_ranks_absent(&ranks, &absent);
}

static void expect_told(uint32_t which, const char *words)
{
	char text[ARCHIVE_RANK_TEXT];

	cr_assert_lt(which, absent.told);
	archive_absent_rank_text(text, &absent.rank[which]);
	cr_assert_str_eq(text, words);
}

Test(archive_ranks, a_stage_that_is_not_there_is_named)
{
	note("demo/1", (struct r3ring_coordinates){.pp = {1, 3}});
	cr_assert_eq(absent.count, 2);
	cr_assert_eq(absent.parts, 2);
	expect_told(0, "pipeline stage 0 of 3, counted from 0, of demo");
	expect_told(1, "pipeline stage 2 of 3, counted from 0, of demo");
	note("demo/0", (struct r3ring_coordinates){.pp = {0, 3}});
	note("demo/2", (struct r3ring_coordinates){.pp = {2, 3}});
	cr_assert_eq(absent.count, 0);
}

Test(archive_ranks, shards_that_are_not_there_are_named_with_their_stage)
{
	note("demo/0", (struct r3ring_coordinates){.pp = {0, 2}, .sp = {0, 2}});
	note("demo/1", (struct r3ring_coordinates){.pp = {0, 2}, .sp = {1, 2}});
	note("demo/3", (struct r3ring_coordinates){.pp = {1, 2}, .sp = {1, 2}});
	cr_assert_eq(absent.count, 1);
	expect_told(0, "sequence shard 0 of 2 of pipeline stage 1 of 2, counted from 0, of demo");
	note("demo/2", (struct r3ring_coordinates){.pp = {1, 2}, .sp = {0, 2}, .cp = {1, 2}});
	cr_assert_neq(absent.count, 0);
}

Test(archive_ranks, what_is_a_part_of_one_that_is_not_there_is_not_named_beside_it)
{
	note("demo/0", (struct r3ring_coordinates){.dp = {0, 2}, .pp = {0, 2}});
	note("demo/1", (struct r3ring_coordinates){.dp = {0, 2}, .pp = {1, 2}});
	cr_assert_eq(absent.count, 1);
	cr_assert_eq(absent.parts, 0);
	expect_told(0, "data-parallel rank 1 of 2, counted from 0, of demo");
}

Test(archive_ranks, each_data_parallel_rank_has_stages_of_its_own)
{
	note("demo/0", (struct r3ring_coordinates){.dp = {0, 2}, .pp = {0, 2}});
	note("demo/3", (struct r3ring_coordinates){.dp = {1, 2}, .pp = {1, 2}});
	cr_assert_eq(absent.count, 2);
	expect_told(0, "pipeline stage 1 of 2 of data-parallel rank 0 of 2, counted from 0, of "
		       "demo");
	expect_told(1, "pipeline stage 0 of 2 of data-parallel rank 1 of 2, counted from 0, of "
		       "demo");
}

Test(archive_ranks, instances_have_ranks_of_their_own)
{
	note("one/0", (struct r3ring_coordinates){.pp = {0, 2}});
	note("other/1", (struct r3ring_coordinates){.pp = {1, 2}});
	cr_assert_eq(absent.count, 2);
	expect_told(0, "pipeline stage 1 of 2, counted from 0, of one");
	expect_told(1, "pipeline stage 0 of 2, counted from 0, of other");
}

Test(archive_ranks, ranks_without_coordinates_and_copies_lack_nothing)
{
	note("demo/0", (struct r3ring_coordinates){.dp = {0, 0}});
	note("demo/1", (struct r3ring_coordinates){.tp = {1, 2}, .ep = {3, 8}});
	cr_assert_eq(absent.count, 0);
}

Test(archive_ranks, a_draft_models_channel_is_no_rank)
{
	note("demo/1.draft", (struct r3ring_coordinates){.pp = {1, 2}});
	cr_assert_eq(absent.count, 0);
	note("demo/0", (struct r3ring_coordinates){.pp = {0, 2}});
	note("demo/1.draft", (struct r3ring_coordinates){.pp = {1, 2}});
	cr_assert_eq(absent.count, 1);
}

Test(archive_ranks, more_than_can_be_told_are_counted, .timeout = 10)
{
	const struct r3ring_coordinate last = {UINT16_MAX - 1, UINT16_MAX};

	note("demo/0", (struct r3ring_coordinates){.dp = last, .pp = last, .sp = last, .cp = last});
	cr_assert_eq(absent.count, 4 * (uint64_t)(UINT16_MAX - 1));
	cr_assert_eq(absent.parts, 3 * (uint64_t)(UINT16_MAX - 1));
	cr_assert_eq(absent.told, ARCHIVE_RANKS_TOLD);
	expect_told(7, "data-parallel rank 7 of 65535, counted from 0, of demo");
}
