/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying: an archive in which all is true, and ones in which one thing is not. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sqlite3.h>

#include "archive/index.h"
#include "archive/verify.h"
#include "tests/support/archive_story.h"

static struct archive_builder builder;
static struct story story, other;
static struct story *const both[] = {&story, &other};
static char problems[4096]; /* lines */

static void note(void *ctx, const char *text)
{
	size_t len = strlen(problems);

	(void)ctx;
	snprintf(problems + len, sizeof(problems) - len, "%s\n", text);
}

static struct archive_verified verify(void)
{
	const struct archive_verify_hooks hooks = {.problem = note};
	struct archive_verified verified;
	struct r3ring_error err = {0};

	problems[0] = '\0';
	cr_assert_eq(archive_verify(builder.dir, &hooks, &verified, &err), 0, "%s", err.text);
	return verified;
}

static void begin(void)
{
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_begin(&other, &builder, 1, "small/1");
	story_request(&story, 1, "a", 4);
}

static void finish(void)
{
	struct r3ring_error err = {0};

	builder_segment_end(&builder, true);
	cr_assert_eq(archive_index_update(builder.dir, &err), 0, "%s", err.text);
}

/* Everything that is said in an archive, over three segments and two generations. */
static void tell_all(void)
{
	begin();
	story_step(&story, 1, 0, 4);
	story_lost(&story, 2, 3, R3RING_CAUSE_BUFFER_FULL);
	story_keyframe(&story);
	builder_block(&builder, 0);
	story_step_begin(&story, 1, 4, 1);
	story_layer(&story, 0, 1);
	story_next_segment(both, 2);
	story_layer(&story, 1, 1);
	story_layer(&story, 2, 1);
	story_step_end(&story, 1);
	other.absent = true;
	story_request(&other, 3, "not here", 2);
	story_step(&other, 3, 0, 2);
	other.absent = false;
	builder_gap(&builder, 1, 2, 7, ARCHIVE_GAP_OVERRUN);
	story_step(&other, 3, 2, 1);
	story_keyframe(&story);
	story_keyframe(&other);
	story_next_segment(both, 2);
	story_end(&story, 1, 6);
	story_closed(&story);
	story_generation(&story, 2);
	story_request(&story, 1, "b", 1);
	story_step(&story, 1, 0, 1);
	story_keyframe(&story);
	finish();
}

Test(archive_verify, finds_nothing_where_all_is_true_and_says_what_there_is)
{
	struct archive_verified verified;

	tell_all();
	verified = verify();
	cr_expect_str_empty(problems, "%s", problems);
	cr_expect_eq(verified.problems, 0);
	cr_expect_eq(verified.segments, 3);
	cr_expect_eq(verified.blocks, 4);
	cr_expect_eq(verified.channels, 2);
	cr_expect_eq(verified.generations, 3);
	cr_expect_eq(verified.records[R3RING_STEP], 4);
	cr_expect_eq(verified.records[R3RING_LAYER], 12);
	cr_expect_eq(verified.records[R3RING_KEYFRAME], 4);
	cr_expect_eq(verified.steps_complete, 4);
	cr_expect_eq(verified.rows, 4 + 1 + 1 + 1);
	cr_expect_eq(verified.layer_rows, STORY_LAYERS * 7);
	cr_expect_eq(verified.requests_begun, 2);
	cr_expect_eq(verified.requests_ended, 1);
	cr_expect_eq(verified.lost_steps[R3RING_CAUSE_BUFFER_FULL], 2);
	cr_expect_eq(verified.lost_rows[R3RING_CAUSE_BUFFER_FULL], 3);
	cr_expect_eq(verified.gaps[ARCHIVE_GAP_OVERRUN], 1);
	cr_expect_eq(verified.gap_records[ARCHIVE_GAP_OVERRUN], 6);
	builder_close(&builder);
}

/* ---- lies -------------------------------------------------------------- */

/* Exactly one problem is told, and it says this. */
static void expect_problem(const char *what)
{
	struct archive_verified verified = verify();

	cr_expect_eq(verified.problems, 1, "%s: %lu\n%s", what, verified.problems, problems);
	cr_expect(strstr(problems, what), "%s: %s", what, problems);
	builder_close(&builder);
}

#define LIE(name, what, told)                                                                      \
	Test(archive_verify, name)                                                                 \
	{                                                                                          \
		begin();                                                                           \
		what;                                                                              \
		finish();                                                                          \
		expect_problem(told);                                                              \
	}

LIE(a_record_that_is_missing_without_a_gap_is_named, story.seq += 3;
    story_step(&story, 1, 0, 1), "records 3 to 5 are missing, and no gap says so")
LIE(a_record_that_is_there_twice_is_named, story.seq--;
    story_request(&story, 2, "b", 1), "record 2 again, where 3 was due")
LIE(a_gap_that_begins_elsewhere_is_named, builder_gap(&builder, 0, 4, 6, ARCHIVE_GAP_OVERRUN);
    story.seq = 6; story_step(&story, 1, 0, 1), "a gap from record 4 on, where 3 was due")
LIE(a_record_behind_a_gap_without_end_is_named, builder_gap(&builder, 0, 3, 0, ARCHIVE_GAP_STOPPED);
    story_step_begin(&story, 1, 0, 1), "behind a gap without end")
LIE(units_that_do_not_add_up_are_named, story_step(&story, 1, 0, 1); story.units++;
    story_step_begin(&story, 1, 1, 1), "4 units where there were 3")
LIE(a_step_without_an_end_is_named, story_step_begin(&story, 1, 0, 1);
    story_step(&story, 1, 1, 1), "step 2 begins, and step 1 has no end")
LIE(a_step_that_goes_back_is_named, story_step(&story, 1, 0, 1); story.step = 0;
    story_step(&story, 1, 0, 1), "step 1 behind step 1")
LIE(a_layer_outside_of_its_step_is_named, story_step(&story, 1, 0, 1);
    story_layer(&story, 0, 1), "a layer of step 1, which is not open")
LIE(an_end_of_no_step_is_named, story_step(&story, 1, 0, 1);
    story_step_end(&story, 1), "the end of step 1, which is not open")
LIE(rows_that_are_not_the_steps_are_named, story_step_begin(&story, 1, 0, 1);
    story_layer(&story, 0, 2), "are not the step's")
LIE(a_layer_that_did_not_come_is_named, story_step_begin(&story, 1, 0, 2);
    story_layer(&story, 0, 2); story_layer(&story, 2, 2);
    story_step_end(&story, 2), "layer 2 has 0 of 2 rows")
LIE(a_record_behind_the_end_is_named, story_closed(&story);
    story_request(&story, 2, "b", 1), "behind CLOSED")
static void say_keyframe(uint32_t records)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.records = records;
	story_record(&story, &record, 0, 0, R3RING_DESC_KEYFRAME);
}

LIE(a_keyframe_with_fewer_records_is_named, say_keyframe(2);
    story_request(&story, 2, "b", 1), "2 of a keyframe were due")

static void repeat_outside(void)
{
	struct r3ring_record record = {.type = R3RING_CLOSED};

	record.u.closed.reason = R3RING_CLOSED_SHUTDOWN;
	story_record(&story, &record, 0, 0, R3RING_DESC_REPEATED);
}

LIE(a_record_that_no_keyframe_repeats_is_named, repeat_outside(), "is repeated, but by no keyframe")

/* Each total of a keyframe is compared. */
Test(archive_verify, every_total_of_a_keyframe_is_compared)
{
	enum { COUNT = sizeof(struct r3ring_totals) / sizeof(uint64_t) };

	for (size_t i = 0; i < COUNT; i++) {
		begin();
		story_step(&story, 1, 0, 4);
		story_keyframe(&story);
		story_step(&story, 1, 4, 1);
		((uint64_t *)&story.totals)[i]++;
		story_keyframe(&story);
		finish();
		expect_problem("a keyframe says");
	}
}

static void put_record(uint16_t type, const void *payload, size_t len)
{
	const struct archive_entry entry = {
		.kind = ARCHIVE_RECORD, .type = type, .seq = ++story.seq, .units = story.units};

	builder_entry(&builder, entry, payload, len);
}

Test(archive_verify, a_record_that_cannot_be_decoded_is_named)
{
	begin();
	put_record(R3RING_STEP, "too short", 9);
	finish();
	expect_problem("STEP record of 9 bytes");
}

Test(archive_verify, a_record_of_a_later_version_is_none)
{
	begin();
	put_record(99, "unknown", 7);
	story_step(&story, 1, 0, 1);
	finish();
	verify();
	cr_expect_str_empty(problems, "%s", problems);
	builder_close(&builder);
}

Test(archive_verify, an_id_that_is_no_expert_is_named)
{
	struct r3ring_record record = {.type = R3RING_LAYER};
	const uint16_t ids[STORY_TOP_K] = {1, STORY_EXPERTS};

	begin();
	story_step_begin(&story, 1, 0, 1);
	record.u.layer.head = (struct r3ring_layer_record){.step = 1,
							   .layer_id = 1,
							   .rows = 1,
							   .total_rows = 1,
							   .valid_rows = 1,
							   .top_k = STORY_TOP_K};
	record.u.layer.ids = ids;
	story_record(&story, &record, 1, 1, 0);
	finish();
	expect_problem("1 ids are no experts of 1000");
}

Test(archive_verify, what_a_segment_says_again_must_be_so)
{
	begin();
	story_step(&story, 1, 0, 1);
	builder_segment_end(&builder, true);
	builder_segment(&builder);
	story.seq -= 2;
	story_repeat(&story);
	story_repeat(&other);
	builder_ready(&builder);
	story.seq += 2;
	finish();
	expect_problem("goes on behind record 5, but 7 was the last one");
}

/* ---- damage ------------------------------------------------------------ */

Test(archive_verify, finds_any_byte_that_was_changed)
{
	struct builder_bytes whole;
	char path[128];

	tell_all();
	for (unsigned int segment = 1; segment <= 3; segment++) {
		snprintf(path, sizeof(path), "%s/%08u.r3seg", builder.dir, segment);
		whole = builder_read(path);
		for (size_t at = 0; at < whole.len; at++) {
			int fd = open(path, O_WRONLY | O_CLOEXEC);
			uint8_t changed = whole.at[at] ^ 0x10;

			cr_assert_eq(pwrite(fd, &changed, 1, (off_t)at), 1);
			cr_assert_gt(verify().problems, 0, "segment %u, byte %zu", segment, at);
			cr_assert_eq(pwrite(fd, &whole.at[at], 1, (off_t)at), 1);
			close(fd);
		}
		free(whole.at);
	}
	cr_expect_eq(verify().problems, 0, "%s", problems);
	builder_close(&builder);
}

Test(archive_verify, finds_any_cut)
{
	struct builder_bytes whole;
	char path[128];

	tell_all();
	for (unsigned int segment = 1; segment <= 3; segment++) {
		snprintf(path, sizeof(path), "%s/%08u.r3seg", builder.dir, segment);
		whole = builder_read(path);
		for (size_t len = whole.len; len--;) {
			cr_assert_eq(truncate(path, (off_t)len), 0);
			cr_assert_gt(verify().problems, 0, "segment %u, byte %zu", segment, len);
		}
		builder_write(path, whole.at, whole.len);
		free(whole.at);
	}
	cr_expect_eq(verify().problems, 0, "%s", problems);
	builder_close(&builder);
}

Test(archive_verify, finds_segments_that_are_missing_the_last_by_the_index)
{
	tell_all();
	unlink(builder_path(&builder, "00000003.r3seg"));
	expect_problem("00000003.r3seg, byte 0: is not there, but the index knows it");
	tell_all();
	unlink(builder_path(&builder, "00000002.r3seg"));
	verify();
	cr_expect(strstr(problems, "00000002.r3seg, byte 0: is not there"), "%s", problems);
	builder_close(&builder);
}

/* ---- the index --------------------------------------------------------- */

static void change_index(const char *sql)
{
	char *why = NULL;
	sqlite3 *db;

	cr_assert_eq(sqlite3_open(builder_path(&builder, ARCHIVE_INDEX), &db), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &why), SQLITE_OK, "%s: %s", sql, why);
	cr_assert_gt(sqlite3_changes(db), 0, "%s", sql);
	sqlite3_close(db);
}

/* Its tables are there first. */
static void forget_whose_index_it_is(void)
{
	change_index("DELETE FROM archive");
}

Test(archive_verify, an_index_that_says_of_no_archive_that_it_is_its_is_told)
{
	tell_all();
	forget_whose_index_it_is();
	cr_expect_eq(verify().problems, 1);
	cr_expect(strstr(problems, "is of another archive"), "%s", problems);
	builder_close(&builder);
}

Test(archive_verify, an_index_that_a_recorder_has_begun_to_make_is_no_fault)
{
	struct archive_verified verified;
	int lock;

	tell_all();
	forget_whose_index_it_is();
	lock = open(builder_path(&builder, "lock"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	cr_assert_geq(lock, 0);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	verified = verify();
	cr_expect(verified.being_written);
	cr_expect_eq(verified.problems, 0, "%s", problems);
	close(lock);
	builder_close(&builder);
}

Test(archive_verify, finds_any_lie_of_the_index)
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

	tell_all();
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		snprintf(sql, sizeof(sql),
			 "UPDATE parts SET %s = coalesce(%s, 0) + 1 WHERE segment = 2", columns[i],
			 columns[i]);
		change_index(sql);
		cr_expect_gt(verify().problems, 0, "%s", columns[i]);
		cr_expect(strstr(problems, "index.sqlite: segment 2"), "%s: %s", columns[i],
			  problems);
		cr_assert_eq(archive_index_rebuild(builder.dir, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(of_segments) / sizeof(of_segments[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE segments SET %s = %s WHERE number = 2",
			 of_segments[i][0], of_segments[i][1]);
		change_index(sql);
		cr_expect_gt(verify().problems, 0, "%s", of_segments[i][0]);
		cr_expect(strstr(problems, "segment 2"), "%s: %s", of_segments[i][0], problems);
		cr_assert_eq(archive_index_rebuild(builder.dir, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(of_requests) / sizeof(of_requests[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE requests SET %s = 'c' WHERE id = 'a'",
			 of_requests[i]);
		change_index(sql);
		cr_expect_gt(verify().problems, 0, "%s", of_requests[i]);
		cr_assert_eq(archive_index_rebuild(builder.dir, NULL), 0);
	}
	change_index("UPDATE requests SET id = 'c' WHERE id = 'a'");
	cr_expect_gt(verify().problems, 0);
	cr_assert_eq(archive_index_rebuild(builder.dir, NULL), 0);
	change_index("INSERT INTO parts SELECT 1, ring, handle + 9, request, channel, generation,"
		     " first_step, last_step, first_position, end_position, rows, layer_rows,"
		     " carried_rows, carried_layer_rows, weight_min, weight_max, first_offset,"
		     " last_offset, begin_ns, end_ns, prompt_tokens, accepted_tokens, attempts,"
		     " end_reason FROM parts WHERE segment = 1");
	expect_problem("the index says of 2");
}

/* The index knows what was open before the first segment that is left, nobody else does. */
Test(archive_verify, believes_the_index_what_a_segment_that_was_rotated_out_had_begun)
{
	struct r3ring_error err = {0};

	builder_open(&builder, 3);
	builder.segment_flags = ARCHIVE_SEGMENT_ROTATES;
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_request(&story, 1, "a", 4);
	story_step_begin(&story, 1, 0, 4);
	story_layer(&story, 0, 4);
	story_next_segment(both, 1);
	story_layer(&story, 1, 4);
	story_next_segment(both, 1);
	story_layer(&story, 2, 4);
	story_step_end(&story, 4);
	builder_segment_end(&builder, true);
	cr_assert_eq(archive_index_update(builder.dir, &err), 0, "%s", err.text);
	unlink(builder_path(&builder, "00000001.r3seg"));
	cr_assert_eq(archive_index_update(builder.dir, &err), 0, "%s", err.text);
	cr_expect_eq(verify().problems, 0, "%s", problems);
	change_index("UPDATE parts SET carried_layer_rows = 3 WHERE segment = 3");
	expect_problem("another carried_layer_rows than the segment");
}

/* A step begun in segment 2, of which more is in segment 3. */
static void tell_step_in_two(void)
{
	begin();
	story_step(&story, 1, 0, 4);
	story_next_segment(both, 2);
	story_step_begin(&story, 1, 4, 1);
	story_layer(&story, 0, 1);
	story_next_segment(both, 2);
	story_layer(&story, 1, 1);
	story_layer(&story, 2, 1);
	story_step_end(&story, 1);
	story_step(&story, 1, 5, 1);
	finish();
}

Test(archive_verify, does_not_accuse_the_index_behind_a_segment_that_is_not_there)
{
	tell_step_in_two();
	unlink(builder_path(&builder, "00000002.r3seg"));
	expect_problem("00000002.r3seg, byte 0: is not there");
}

Test(archive_verify, does_not_accuse_the_index_behind_a_segment_that_is_damaged)
{
	const char *path;
	struct builder_bytes file;

	tell_step_in_two();
	path = builder_path(&builder, "00000002.r3seg");
	file = builder_read(path);
	file.at[file.len - 100] ^= 1;
	builder_write(path, file.at, file.len);
	free(file.at);
	verify();
	cr_expect(strstr(problems, "00000002.r3seg"), "%s", problems);
	cr_expect_null(strstr(problems, "index"), "%s", problems);
	builder_close(&builder);
}

Test(archive_verify, finds_a_lie_of_the_index_behind_a_segment_that_is_not_there)
{
	tell_step_in_two();
	change_index("UPDATE parts SET layer_rows = 7 WHERE segment = 3");
	unlink(builder_path(&builder, "00000002.r3seg"));
	verify();
	cr_expect(strstr(problems, "another layer_rows than the segment"), "%s", problems);
	builder_close(&builder);
}

Test(archive_verify, finds_rows_of_the_index_that_belong_to_nothing)
{
	tell_all();
	change_index("INSERT INTO requests VALUES (99, 'nobody', '', '', '')");
	expect_problem("requests that it has nothing of");
	tell_all();
	change_index("INSERT INTO segments SELECT 0, bytes, state, records, first_ns, last_ns, open"
		     " FROM segments WHERE number = 1");
	expect_problem("in front of the first");
}

Test(archive_verify, finds_an_index_that_is_missing_nonsense_or_behind)
{
	tell_all();
	unlink(builder_path(&builder, ARCHIVE_INDEX));
	cr_expect_eq(verify().problems, 1);
	cr_expect(strstr(problems, "is not there: make it with r3ring verify --reindex"), "%s",
		  problems);
	builder_write(builder_path(&builder, ARCHIVE_INDEX), "nonsense", 8);
	cr_expect_eq(verify().problems, 1);
	cr_expect(strstr(problems, "index.sqlite: "), "%s", problems);
	cr_assert_eq(archive_index_rebuild(builder.dir, NULL), 0);
	change_index("DELETE FROM parts WHERE segment = 3");
	change_index("DELETE FROM segments WHERE number = 3");
	change_index("DELETE FROM requests WHERE request NOT IN (SELECT request FROM parts)");
	cr_expect_eq(verify().problems, 1);
	cr_expect(strstr(problems, "does not have segment 3"), "%s", problems);
	builder_close(&builder);
}
