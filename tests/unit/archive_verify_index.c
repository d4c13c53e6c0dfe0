/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying: an archive's index, and one that lies. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sqlite3.h>

#include "archive/index.h"
#include "tests/unit/archive_verify.h"

static void change_index(const char *sql)
{
	char *why = NULL;
	sqlite3 *db;

	cr_assert_eq(sqlite3_open(builder_path(&verify_trial.builder, ARCHIVE_INDEX), &db),
		     SQLITE_OK);
	cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &why), SQLITE_OK, "%s: %s", sql, why);
	cr_assert_gt(sqlite3_changes(db), 0, "%s", sql);
	sqlite3_close(db);
}

/* Its tables are there first. */
static void forget_whose_index_it_is(void)
{
	change_index("DELETE FROM archive");
}

Test(archive_verify_index, an_index_that_says_of_no_archive_that_it_is_its_is_told)
{
	verify_tell_all();
	forget_whose_index_it_is();
	cr_expect_eq(verify_all().problems, 1);
	cr_expect(strstr(verify_trial.problems, "is of another archive"), "%s",
		  verify_trial.problems);
	builder_close(&verify_trial.builder);
}

Test(archive_verify_index, an_index_that_a_recorder_has_begun_to_make_is_no_fault)
{
	struct archive_verified verified;
	int lock;

	verify_tell_all();
	forget_whose_index_it_is();
	lock = open(builder_path(&verify_trial.builder, "lock"), O_CREAT | O_RDWR | O_CLOEXEC,
		    0600);
	cr_assert_geq(lock, 0);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	verified = verify_all();
	cr_expect(verified.being_written);
	cr_expect_eq(verified.problems, 0, "%s", verify_trial.problems);
	close(lock);
	builder_close(&verify_trial.builder);
}

Test(archive_verify_index, finds_any_lie_of_the_index)
{
	static const char *const columns[] = {
		"generation",     "first_step",      "last_step",
		"first_position", "end_position",    "rows",
		"layer_rows",     "carried_rows",    "carried_layer_rows",
		"weight_min",     "weight_max",      "first_offset",
		"last_offset",    "begin_ns",        "end_ns",
		"prompt_tokens",  "accepted_tokens", "attempts",
		"end_reason",     "channel",         "handle",
	};
	/* The last column, open, is what goes on in the next segment. */
	static const char *const of_segments[][2] = {
		{"bytes", "bytes + 1"},     {"state", "2"},
		{"records", "1"},           {"first_ns", "first_ns + 1"},
		{"last_ns", "last_ns + 1"}, {"open", "zeroblob(48)"},
	};
	static const char *const of_requests[] = {"session", "turn", "sample"};
	char sql[256];

	verify_tell_all();
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		snprintf(sql, sizeof(sql),
			 "UPDATE parts SET %s = coalesce(%s, 0) + 1 WHERE segment = 2", columns[i],
			 columns[i]);
		change_index(sql);
		cr_expect_gt(verify_all().problems, 0, "%s", columns[i]);
		cr_expect(strstr(verify_trial.problems, "index.sqlite: segment 2"), "%s: %s",
			  columns[i], verify_trial.problems);
		cr_assert_eq(archive_index_rebuild(verify_trial.builder.dir, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(of_segments) / sizeof(of_segments[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE segments SET %s = %s WHERE number = 2",
			 of_segments[i][0], of_segments[i][1]);
		change_index(sql);
		cr_expect_gt(verify_all().problems, 0, "%s", of_segments[i][0]);
		cr_expect(strstr(verify_trial.problems, "segment 2"), "%s: %s", of_segments[i][0],
			  verify_trial.problems);
		cr_assert_eq(archive_index_rebuild(verify_trial.builder.dir, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(of_requests) / sizeof(of_requests[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE requests SET %s = 'c' WHERE id = 'a'",
			 of_requests[i]);
		change_index(sql);
		cr_expect_gt(verify_all().problems, 0, "%s", of_requests[i]);
		cr_assert_eq(archive_index_rebuild(verify_trial.builder.dir, NULL), 0);
	}
	change_index("UPDATE requests SET id = 'c' WHERE id = 'a'");
	cr_expect_gt(verify_all().problems, 0);
	cr_assert_eq(archive_index_rebuild(verify_trial.builder.dir, NULL), 0);
	change_index("INSERT INTO parts SELECT 1, ring, handle + 9, request, channel, generation,"
		     " first_step, last_step, first_position, end_position, rows, layer_rows,"
		     " carried_rows, carried_layer_rows, weight_min, weight_max, first_offset,"
		     " last_offset, begin_ns, end_ns, prompt_tokens, accepted_tokens, attempts,"
		     " end_reason FROM parts WHERE segment = 1");
	verify_expect_problem("the index says of 2");
}

/* The index knows what was open before the first segment that is left, nobody else does. */
Test(archive_verify_index, believes_the_index_what_a_segment_that_was_rotated_out_had_begun)
{
	struct r3ring_error err = {0};

	builder_open(&verify_trial.builder, 3);
	verify_trial.builder.segment_flags = ARCHIVE_SEGMENT_ROTATES;
	builder_segment(&verify_trial.builder);
	builder_ready(&verify_trial.builder);
	story_begin(&verify_trial.story, &verify_trial.builder, 0, "small/0");
	story_request(&verify_trial.story, 1, "a", 4);
	story_step_begin(&verify_trial.story, 1, 0, 4);
	story_layer(&verify_trial.story, 0, 4);
	story_next_segment(verify_stories, 1);
	story_layer(&verify_trial.story, 1, 4);
	story_next_segment(verify_stories, 1);
	story_layer(&verify_trial.story, 2, 4);
	story_step_end(&verify_trial.story, 4);
	builder_segment_end(&verify_trial.builder, true);
	cr_assert_eq(archive_index_update(verify_trial.builder.dir, &err), 0, "%s", err.text);
	unlink(builder_path(&verify_trial.builder, "00000001.r3seg"));
	cr_assert_eq(archive_index_update(verify_trial.builder.dir, &err), 0, "%s", err.text);
	cr_expect_eq(verify_all().problems, 0, "%s", verify_trial.problems);
	change_index("UPDATE parts SET carried_layer_rows = 3 WHERE segment = 3");
	verify_expect_problem("another carried_layer_rows than the segment");
}

/* A step begun in segment 2, of which more is in segment 3. */
static void tell_step_in_two(void)
{
	verify_begin();
	story_step(&verify_trial.story, 1, 0, 4);
	story_next_segment(verify_stories, 2);
	story_step_begin(&verify_trial.story, 1, 4, 1);
	story_layer(&verify_trial.story, 0, 1);
	story_next_segment(verify_stories, 2);
	story_layer(&verify_trial.story, 1, 1);
	story_layer(&verify_trial.story, 2, 1);
	story_step_end(&verify_trial.story, 1);
	story_step(&verify_trial.story, 1, 5, 1);
	verify_finish();
}

Test(archive_verify_index, does_not_accuse_the_index_behind_a_segment_that_is_not_there)
{
	tell_step_in_two();
	unlink(builder_path(&verify_trial.builder, "00000002.r3seg"));
	verify_expect_problem("00000002.r3seg, byte 0: is not there");
}

Test(archive_verify_index, does_not_accuse_the_index_behind_a_segment_that_is_damaged)
{
	const char *path;
	struct builder_bytes file;

	tell_step_in_two();
	path = builder_path(&verify_trial.builder, "00000002.r3seg");
	file = builder_read(path);
	file.at[file.len - 100] ^= 1;
	builder_write(path, file.at, file.len);
	free(file.at);
	verify_all();
	cr_expect(strstr(verify_trial.problems, "00000002.r3seg"), "%s", verify_trial.problems);
	cr_expect_null(strstr(verify_trial.problems, "index"), "%s", verify_trial.problems);
	builder_close(&verify_trial.builder);
}

Test(archive_verify_index, finds_a_lie_of_the_index_behind_a_segment_that_is_not_there)
{
	tell_step_in_two();
	change_index("UPDATE parts SET layer_rows = 7 WHERE segment = 3");
	unlink(builder_path(&verify_trial.builder, "00000002.r3seg"));
	verify_all();
	cr_expect(strstr(verify_trial.problems, "another layer_rows than the segment"), "%s",
		  verify_trial.problems);
	builder_close(&verify_trial.builder);
}

Test(archive_verify_index, finds_rows_of_the_index_that_belong_to_nothing)
{
	verify_tell_all();
	change_index("INSERT INTO requests VALUES (99, 'nobody', '', '', '')");
	verify_expect_problem("requests that it has nothing of");
	verify_tell_all();
	change_index("INSERT INTO segments SELECT 0, bytes, state, records, first_ns, last_ns, open"
		     " FROM segments WHERE number = 1");
	verify_expect_problem("in front of the first");
}

Test(archive_verify_index, finds_an_index_that_is_missing_nonsense_or_behind)
{
	verify_tell_all();
	unlink(builder_path(&verify_trial.builder, ARCHIVE_INDEX));
	cr_expect_eq(verify_all().problems, 1);
	cr_expect(
		strstr(verify_trial.problems, "is not there: make it with r3ring verify --reindex"),
		"%s", verify_trial.problems);
	builder_write(builder_path(&verify_trial.builder, ARCHIVE_INDEX), "nonsense", 8);
	cr_expect_eq(verify_all().problems, 1);
	cr_expect(strstr(verify_trial.problems, "index.sqlite: "), "%s", verify_trial.problems);
	cr_assert_eq(archive_index_rebuild(verify_trial.builder.dir, NULL), 0);
	change_index("DELETE FROM parts WHERE segment = 3");
	change_index("DELETE FROM segments WHERE number = 3");
	change_index("DELETE FROM requests WHERE request NOT IN (SELECT request FROM parts)");
	cr_expect_eq(verify_all().problems, 1);
	cr_expect(strstr(verify_trial.problems, "does not have segment 3"), "%s",
		  verify_trial.problems);
	builder_close(&verify_trial.builder);
}
