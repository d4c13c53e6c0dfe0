/* SPDX-License-Identifier: Apache-2.0 */
/* The index, looked at with SQL. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "archive/index.h"
#include "tests/support/archive_story.h"

static struct archive_builder builder;
static struct story story, other;
static struct story *const both[] = {&story, &other};

/* What a query gives: columns with '|' between them, rows with newlines. To be freed. */
static char *ask(const char *sql)
{
	size_t len;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	sqlite3_stmt *statement;
	sqlite3 *db;

	cr_assert_eq(sqlite3_open_v2(builder_path(&builder, "index.sqlite"), &db,
				     SQLITE_OPEN_READONLY, NULL),
		     SQLITE_OK);
	cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s",
		     sqlite3_errmsg(db));
	while (sqlite3_step(statement) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(statement); i++) {
			const unsigned char *value = sqlite3_column_text(statement, i);

			fprintf(out, "%s%s", i ? "|" : "", value ? (const char *)value : "-");
		}
		fputc('\n', out);
	}
	sqlite3_finalize(statement);
	sqlite3_close(db);
	fclose(out);
	return text;
}

static void expect_answer(const char *sql, const char *expected)
{
	char *answer = ask(sql);

	cr_expect_str_eq(answer, expected, "%s\n%s", sql, answer);
	free(answer);
}

static void update(void)
{
	struct r3ring_error err = {0};

	cr_assert_eq(archive_index_update(builder.dir, &err), 0, "%s", err.text);
}

static void begin(void)
{
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_begin(&other, &builder, 1, "small/1");
}

/* Request "a" in both channels, "b" in one; two segments. */
static void tell(void)
{
	begin();
	story_request(&story, 1, "a", 4);
	story_request(&other, 7, "a", 4);
	story_step(&story, 1, 0, 4);
	story_request(&story, 2, "b", 2);
	builder_block(&builder, 0);
	story_step(&story, 2, 0, 2);
	story.weight_version = 5;
	story_next_segment(both, 2);
	story_step(&story, 1, 4, 1);
	story_step(&other, 7, 5, 1);
	story_end(&story, 1, 6);
	builder_segment_end(&builder, true);
}

static const char coverage[] =
	"SELECT id, channels, first_segment, last_segment, first_step, last_step, first_position,"
	" end_position, rows, layer_rows, weight_min, weight_max, prompt_tokens, accepted_tokens,"
	" finished FROM coverage ORDER BY id";

static const char told[] = "a|small/0,small/1|1|2|1|3|0|6|6|18|1|5|4|6|1\n"
			   "b|small/0|1|1|2|2|0|2|2|6|1|1|2|-|-\n";

Test(archive_index, says_of_each_request_what_there_is_and_where)
{
	tell();
	update();
	expect_answer(coverage, told);
	/* The second block of the first segment has b's step, and its beginning is in the first. */
	expect_answer("SELECT segment, channel, handle, id, begin_ns / 1000000 % 1000,"
		      " end_ns / 1000000 % 1000, first_offset < last_offset"
		      " FROM parts JOIN requests USING (request) ORDER BY segment, channel, handle",
		      "1|small/0|1|a|1|-|0\n"
		      "1|small/0|2|b|1|-|1\n"
		      "1|small/1|7|a|1|-|0\n"
		      "2|small/0|1|a|-|3|0\n"
		      "2|small/1|7|a|-|-|0\n");
	expect_answer("SELECT number, state, records FROM segments", "1|1|15\n2|1|26\n");
	builder_close(&builder);
}

Test(archive_index, is_for_its_owner_alone_as_the_segments_are)
{
	struct stat status;

	umask(0);
	tell();
	update();
	cr_assert_eq(stat(builder_path(&builder, "index.sqlite"), &status), 0);
	cr_expect_eq(status.st_mode & 0777, 0600);
	builder_close(&builder);
}

static const char everything[] =
	"SELECT * FROM parts JOIN requests USING (request) ORDER BY segment, ring, handle";

Test(archive_index, made_bit_by_bit_it_is_the_same_as_made_at_once)
{
	struct r3ring_error err = {0};
	char *bit_by_bit;

	begin();
	story_request(&story, 1, "a", 4);
	/* A step whose layers are in two segments. */
	story_step_begin(&story, 1, 0, 4);
	story_layer(&story, 0, 4);
	story_next_segment(both, 2);
	update();
	story_layer(&story, 1, 4);
	story_next_segment(both, 2);
	update();
	story_layer(&story, 2, 4);
	story_step_end(&story, 4);
	story_step(&story, 1, 4, 1);
	builder_segment_end(&builder, true);
	update();
	bit_by_bit = ask(everything);
	expect_answer("SELECT rows, layer_rows FROM coverage", "5|15\n");
	expect_answer("SELECT segment, rows, layer_rows, carried_layer_rows FROM parts",
		      "1|4|4|0\n2|0|0|4\n3|1|3|4\n");
	cr_expect_eq(archive_index_rebuild(builder.dir, &err), 0, "%s", err.text);
	expect_answer(everything, bit_by_bit);
	free(bit_by_bit);
	builder_close(&builder);
}

Test(archive_index, reads_the_newest_segment_again_while_it_grows)
{
	begin();
	story_request(&story, 1, "a", 4);
	builder_segment_end(&builder, false);
	cr_expect_eq(archive_index_update(builder.dir, NULL), -EBADMSG);
	expect_answer("SELECT id, rows FROM coverage", "a|0\n");
	story_step(&story, 1, 0, 4);
	builder_segment_end(&builder, true);
	update();
	expect_answer("SELECT id, rows FROM coverage", "a|4\n");
	builder_close(&builder);
}

/* As a recorder leaves it that was killed before it had written a record there. */
Test(archive_index, has_all_of_a_segment_behind_which_one_only_says_again_what_was_said)
{
	begin();
	story_request(&story, 1, "a", 4);
	story_step(&story, 1, 0, 4);
	story_next_segment(both, 2);
	story_next_segment(both, 2);
	story_step(&story, 1, 4, 1);
	builder_segment_end(&builder, true);
	update();
	expect_answer("SELECT number, state, records FROM segments", "1|1|8\n2|1|8\n3|1|13\n");
	builder_close(&builder);
}

Test(archive_index, forgets_what_was_rotated_out)
{
	tell();
	update();
	unlink(builder_path(&builder, "00000001.r3seg"));
	update();
	expect_answer("SELECT id, first_segment, rows FROM coverage", "a|2|2\n");
	expect_answer("SELECT id FROM requests", "a\n");
	builder_close(&builder);
}

Test(archive_index, knows_again_a_segment_that_was_missing)
{
	char aside[128];

	tell();
	builder_segment(&builder);
	story_repeat(&story);
	story_repeat(&other);
	builder_ready(&builder);
	story_step(&other, 7, 6, 1);
	builder_segment_end(&builder, true);
	snprintf(aside, sizeof(aside), "%s", builder_path(&builder, "00000002.aside"));
	cr_assert_eq(rename(builder_path(&builder, "00000002.r3seg"), aside), 0);
	update();
	expect_answer("SELECT number FROM segments", "1\n3\n");
	cr_assert_eq(rename(aside, builder_path(&builder, "00000002.r3seg")), 0);
	update();
	expect_answer("SELECT number FROM segments", "1\n2\n3\n");
	unlink(builder_path(&builder, "00000002.r3seg"));
	update();
	expect_answer("SELECT number FROM segments", "1\n3\n");
	builder_close(&builder);
}

static void spoil(const void *bytes, size_t len)
{
	builder_write(builder_path(&builder, "index.sqlite"), bytes, len);
	update();
	expect_answer(coverage, told);
}

Test(archive_index, is_made_anew_where_it_is_missing_or_no_index)
{
	struct builder_bytes right;

	tell();
	update();
	right = builder_read(builder_path(&builder, "index.sqlite"));
	unlink(builder_path(&builder, "index.sqlite"));
	update();
	expect_answer(coverage, told);
	spoil("nonsense that is no database", 28);
	spoil("", 0);
	spoil(right.at, right.len / 2);
	memset(right.at + 100, 0xA5, 1000);
	spoil(right.at, right.len);
	free(right.at);
	builder_close(&builder);
}

Test(archive_index, of_another_archive_is_made_anew)
{
	struct builder_bytes index;

	tell();
	update();
	index = builder_read(builder_path(&builder, "index.sqlite"));
	builder_close(&builder);
	builder_open(&builder, 0);
	builder.uuid[0] = 'x';
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_request(&story, 1, "another", 4);
	builder_segment_end(&builder, true);
	builder_write(builder_path(&builder, "index.sqlite"), index.at, index.len);
	update();
	expect_answer("SELECT id FROM coverage", "another\n");
	free(index.at);
	builder_close(&builder);
}

/* As a full disk does it: files may not grow beyond this. */
static void limit_files(rlim_t bytes)
{
	const struct rlimit limit = {bytes, RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(archive_index, that_cannot_be_made_anew_stays_as_it_was)
{
	struct builder_bytes before, after;
	struct r3ring_error err = {0};

	tell();
	update();
	before = builder_read(builder_path(&builder, "index.sqlite"));
	limit_files(8192);
	cr_assert_lt(archive_index_rebuild(builder.dir, &err), 0);
	limit_files(RLIM_INFINITY);
	cr_expect(strstr(err.text, builder.dir), "%s", err.text);
	cr_expect(strstr(err.text, "what was there is as it was: make room"), "%s", err.text);
	after = builder_read(builder_path(&builder, "index.sqlite"));
	cr_assert_eq(after.len, before.len);
	cr_expect_arr_eq(after.at, before.at, before.len);
	cr_expect_lt(access(builder_path(&builder, "index.sqlite.new"), F_OK), 0);
	cr_assert_eq(archive_index_rebuild(builder.dir, &err), 0, "%s", err.text);
	expect_answer(coverage, told);
	free(before.at);
	free(after.at);
	builder_close(&builder);
}

Test(archive_index, that_was_being_made_when_its_maker_was_killed_is_made_again)
{
	struct r3ring_error err = {0};

	tell();
	builder_write(builder_path(&builder, "index.sqlite.new"), "half of one", 11);
	builder_write(builder_path(&builder, "index.sqlite.new-journal"), "its journal", 11);
	cr_assert_eq(archive_index_rebuild(builder.dir, &err), 0, "%s", err.text);
	expect_answer(coverage, told);
	cr_expect_lt(access(builder_path(&builder, "index.sqlite.new"), F_OK), 0);
	cr_expect_lt(access(builder_path(&builder, "index.sqlite.new-journal"), F_OK), 0);
	builder_close(&builder);
}

Test(archive_index, has_what_is_whole_of_a_damaged_archive)
{
	struct builder_bytes whole;
	struct r3ring_error err;

	tell();
	whole = builder_read(builder_path(&builder, "00000001.r3seg"));
	whole.at[whole.len - 100] ^= 1;
	builder_write(builder_path(&builder, "00000001.r3seg"), whole.at, whole.len);
	cr_expect_eq(archive_index_update(builder.dir, &err), -EBADMSG);
	cr_expect(strstr(err.text, "00000001.r3seg"), "%s", err.text);
	expect_answer("SELECT id, rows FROM coverage ORDER BY id", "a|6\nb|0\n");
	expect_answer("SELECT number, state FROM segments", "1|2\n2|1\n");
	free(whole.at);
	builder_close(&builder);
}
