/* SPDX-License-Identifier: Apache-2.0 */
/* How many records a run wrote, how many the archive has, and how many went. */
#include <criterion/criterion.h>

#include <unistd.h>

#include "tests/unit/archive_fixture.h"

static struct archive_fixture archive;
static struct archive_walk walk;
static struct archive_writer_stats stats;

static void setup(void)
{
	archive_fixture_init(&archive);
}

static void teardown(void)
{
	archive_fixture_free(&archive);
	archive_walk_free(&walk);
}

TestSuite(archive_counts, .init = setup, .fini = teardown);

static void begin(void)
{
	struct r3ring_error err = {0};

	cr_assert_eq(archive_fixture_open(&archive, &err), 0, "%s", err.text);
}

static void end(void)
{
	cr_assert_eq(archive_writer_finish(archive.writer, NULL), 0);
	archive_writer_get_stats(archive.writer, &stats);
	cr_assert_eq(archive_fixture_close(&archive), 0);
}

/* A run that gives so many records. */
static void run(unsigned int records)
{
	begin();
	archive_fixture_fill(&archive, records);
	end();
	cr_expect_eq(stats.stored_records, records);
}

/* By what is in the files, which the walk reads on its own. */
static void expect_counted(void)
{
	archive_fixture_check(&archive, &walk);
	cr_expect(stats.archive_counted);
	cr_expect_eq(stats.archive_segments, walk.segment_count);
	cr_expect_eq(stats.archive_records, archive_walk_records(&walk, "unit/0") +
						    archive_walk_records(&walk, "unit/1.draft"));
}

static void rotate(void)
{
	archive.options.max_bytes = 2 << 20;
	archive.options.rotate = true;
	archive.options.segment_bytes = 256 << 10;
}

Test(archive_counts, what_former_runs_left_is_in_the_archive_s_and_not_in_this_run_s)
{
	run(1000);
	run(300);
	expect_counted();
	cr_expect_eq(stats.archive_records, 1300);
	cr_expect_eq(stats.removed_records, 0);
}

Test(archive_counts, what_was_rotated_out_is_told_and_no_longer_in_the_archive_s)
{
	rotate();
	run(8000);
	expect_counted();
	cr_expect_gt(stats.removed_segments, 2);
	cr_expect_eq(stats.archive_records + stats.removed_records, 8000);
}

Test(archive_counts, segments_of_former_runs_that_are_rotated_out_are_counted_too)
{
	uint64_t left;

	rotate();
	run(4000);
	left = stats.archive_records;
	run(600);
	expect_counted();
	cr_expect_gt(stats.removed_segments, 0);
	cr_expect_eq(stats.archive_records + stats.removed_records, left + 600);
}

Test(archive_counts, an_archive_that_lacks_a_segment_is_not_counted)
{
	archive.options.segment_bytes = 64 << 10;
	run(1000);
	unlink(archive_fixture_segment(&archive, 2));
	run(10);
	cr_expect_not(stats.archive_counted);
	cr_expect_eq(stats.archive_records, 0);
}
