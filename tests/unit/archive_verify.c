/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying: an archive in which all is true, and ones in which one thing is not. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/index.h"
#include "tests/unit/archive_verify.h"

Test(archive_verify, finds_nothing_where_all_is_true_and_says_what_there_is)
{
	struct archive_verified verified;

	verify_tell_all();
	verified = verify_all();
	cr_expect_str_empty(verify_trial.problems, "%s", verify_trial.problems);
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
	cr_expect_eq(verified.lost.steps[R3RING_CAUSE_BUFFER_FULL], 2);
	cr_expect_eq(verified.lost.rows[R3RING_CAUSE_BUFFER_FULL], 3);
	cr_expect_eq(verified.gaps[ARCHIVE_GAP_OVERRUN], 1);
	cr_expect_eq(verified.gap_records[ARCHIVE_GAP_OVERRUN], 6);
	builder_close(&verify_trial.builder);
}

/* ---- lies -------------------------------------------------------------- */

#define LIE(name, what, told)                                                                      \
	Test(archive_verify, name)                                                                 \
	{                                                                                          \
		verify_begin();                                                                    \
		what;                                                                              \
		verify_finish();                                                                   \
		verify_expect_problem(told);                                                       \
	}

LIE(a_record_that_is_missing_without_a_gap_is_named, verify_trial.story.seq += 3;
    story_step(&verify_trial.story, 1, 0, 1), "records 3 to 5 are missing, and no gap says so")
LIE(a_record_that_is_there_twice_is_named, verify_trial.story.seq--;
    story_request(&verify_trial.story, 2, "b", 1), "record 2 again, where 3 was due")
LIE(a_gap_that_begins_elsewhere_is_named,
    builder_gap(&verify_trial.builder, 0, 4, 6, ARCHIVE_GAP_OVERRUN);
    verify_trial.story.seq = 6;
    story_step(&verify_trial.story, 1, 0, 1), "a gap from record 4 on, where 3 was due")
LIE(a_record_behind_a_gap_without_end_is_named,
    builder_gap(&verify_trial.builder, 0, 3, 0, ARCHIVE_GAP_STOPPED);
    story_step_begin(&verify_trial.story, 1, 0, 1), "behind a gap without end")
LIE(units_that_do_not_add_up_are_named, story_step(&verify_trial.story, 1, 0, 1);
    verify_trial.story.units++;
    story_step_begin(&verify_trial.story, 1, 1, 1), "4 units where there were 3")
LIE(a_step_without_an_end_is_named, story_step_begin(&verify_trial.story, 1, 0, 1);
    story_step(&verify_trial.story, 1, 1, 1), "step 2 begins, and step 1 has no end")
LIE(a_step_that_goes_back_is_named, story_step(&verify_trial.story, 1, 0, 1);
    verify_trial.story.step = 0; story_step(&verify_trial.story, 1, 0, 1), "step 1 behind step 1")
LIE(a_layer_outside_of_its_step_is_named, story_step(&verify_trial.story, 1, 0, 1);
    story_layer(&verify_trial.story, 0, 1), "a layer of step 1, which is not open")
LIE(an_end_of_no_step_is_named, story_step(&verify_trial.story, 1, 0, 1);
    story_step_end(&verify_trial.story, 1), "the end of step 1, which is not open")
LIE(rows_that_are_not_the_steps_are_named, story_step_begin(&verify_trial.story, 1, 0, 1);
    story_layer(&verify_trial.story, 0, 2), "are not the step's")
LIE(a_layer_that_did_not_come_is_named, story_step_begin(&verify_trial.story, 1, 0, 2);
    story_layer(&verify_trial.story, 0, 2); story_layer(&verify_trial.story, 2, 2);
    story_step_end(&verify_trial.story, 2), "layer 2 has 0 of 2 rows")
static void end_untold(uint64_t seq)
{
	const struct archive_entry entry = {.kind = ARCHIVE_UNFOLLOWED, .seq = seq};

	builder_entry(&verify_trial.builder, entry, NULL, 0);
}

LIE(that_nothing_is_known_from_elsewhere_on_is_named, end_untold(9),
    "nothing is said to be known behind record 8, where 3 was due")
LIE(that_nothing_is_known_behind_the_end_is_named, story_closed(&verify_trial.story);
    end_untold(4), "behind CLOSED")
LIE(a_record_behind_the_end_is_named, story_closed(&verify_trial.story);
    story_request(&verify_trial.story, 2, "b", 1), "behind CLOSED")
static void say_keyframe(uint32_t records)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.records = records;
	story_record(&verify_trial.story, &record, 0, 0, R3RING_DESC_KEYFRAME);
}

LIE(a_keyframe_with_fewer_records_is_named, say_keyframe(2);
    story_request(&verify_trial.story, 2, "b", 1), "2 of a keyframe were due")

static void say_sight_lost(enum r3ring_end_reason reason)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = 1,
		.accepted_tokens = R3RING_UNKNOWN_U32,
		.event = R3RING_REQUEST_END,
		.reason = (uint8_t)reason,
	};
	story_record(&verify_trial.story, &record, 0, 0, 0);
}

LIE(a_keyframe_that_its_own_daemon_broke_off_is_named, say_keyframe(2);
    say_sight_lost(R3RING_END_ABORTED), "2 of a keyframe were due")

Test(archive_verify, a_keyframe_that_a_killed_daemon_did_not_finish_is_no_fault)
{
	const struct r3ring_record lost = {.type = R3RING_LOST,
					   .u.lost.cause = R3RING_CAUSE_DAEMON_RESTART};

	for (int goes_on = 0; goes_on < 2; goes_on++) {
		verify_begin();
		say_keyframe(2);
		if (goes_on) {
			story_record(&verify_trial.story, &lost, 0, 0, 0);
			story_keyframe(&verify_trial.story);
		} else {
			say_sight_lost(R3RING_END_UNKNOWN);
			story_record(&verify_trial.story, &lost, 0, 0, 0);
			story_closed_for(&verify_trial.story, R3RING_CLOSED_CRASHED, true);
		}
		verify_finish();
		cr_expect_eq(verify_all().problems, 0, "%d: %s", goes_on, verify_trial.problems);
		builder_close(&verify_trial.builder);
	}
}

static void repeat_outside(void)
{
	struct r3ring_record record = {.type = R3RING_CLOSED};

	record.u.closed.reason = R3RING_CLOSED_SHUTDOWN;
	story_record(&verify_trial.story, &record, 0, 0, R3RING_DESC_REPEATED);
}

LIE(a_record_that_no_keyframe_repeats_is_named, repeat_outside(), "is repeated, but by no keyframe")

/* Each total of a keyframe is compared. */
Test(archive_verify, every_total_of_a_keyframe_is_compared)
{
	enum { COUNT = sizeof(struct r3ring_totals) / sizeof(uint64_t) };

	for (size_t i = 0; i < COUNT; i++) {
		verify_begin();
		story_step(&verify_trial.story, 1, 0, 4);
		story_keyframe(&verify_trial.story);
		story_step(&verify_trial.story, 1, 4, 1);
		((uint64_t *)&verify_trial.story.totals)[i]++;
		story_keyframe(&verify_trial.story);
		verify_finish();
		verify_expect_problem("a keyframe says");
	}
}

static void put_record(uint16_t type, const void *payload, size_t len)
{
	const struct archive_entry entry = {.kind = ARCHIVE_RECORD,
					    .type = type,
					    .seq = ++verify_trial.story.seq,
					    .units = verify_trial.story.units};

	builder_entry(&verify_trial.builder, entry, payload, len);
}

Test(archive_verify, a_record_that_cannot_be_decoded_is_named)
{
	verify_begin();
	put_record(R3RING_STEP, "too short", 9);
	verify_finish();
	verify_expect_problem("STEP record of 9 bytes");
}

Test(archive_verify, a_record_of_a_later_version_is_none)
{
	verify_begin();
	put_record(99, "unknown", 7);
	story_step(&verify_trial.story, 1, 0, 1);
	verify_finish();
	verify_all();
	cr_expect_str_empty(verify_trial.problems, "%s", verify_trial.problems);
	builder_close(&verify_trial.builder);
}

Test(archive_verify, an_id_that_is_no_expert_is_named)
{
	struct r3ring_record record = {.type = R3RING_LAYER};
	const uint16_t ids[STORY_TOP_K] = {1, STORY_EXPERTS};

	verify_begin();
	story_step_begin(&verify_trial.story, 1, 0, 1);
	record.u.layer.head = (struct r3ring_layer_record){.step = 1,
							   .layer_id = 1,
							   .rows = 1,
							   .total_rows = 1,
							   .valid_rows = 1,
							   .top_k = STORY_TOP_K};
	record.u.layer.ids = ids;
	story_record(&verify_trial.story, &record, 1, 1, 0);
	verify_finish();
	verify_expect_problem("1 ids are no experts of 1000");
}

Test(archive_verify, what_a_segment_says_again_must_be_so)
{
	verify_begin();
	story_step(&verify_trial.story, 1, 0, 1);
	builder_segment_end(&verify_trial.builder, true);
	builder_segment(&verify_trial.builder);
	verify_trial.story.seq -= 2;
	story_repeat(&verify_trial.story);
	story_repeat(&verify_trial.other);
	builder_ready(&verify_trial.builder);
	verify_trial.story.seq += 2;
	verify_finish();
	verify_expect_problem("goes on behind record 5, but 7 was the last one");
}

/* ---- damage ------------------------------------------------------------ */

Test(archive_verify, finds_any_byte_that_was_changed)
{
	struct builder_bytes whole;
	char path[128];

	verify_tell_all();
	for (unsigned int segment = 1; segment <= 3; segment++) {
		snprintf(path, sizeof(path), "%s/%08u.r3seg", verify_trial.builder.dir, segment);
		whole = builder_read(path);
		for (size_t at = 0; at < whole.len; at++) {
			int fd = open(path, O_WRONLY | O_CLOEXEC);
			uint8_t changed = whole.at[at] ^ 0x10;

			cr_assert_eq(pwrite(fd, &changed, 1, (off_t)at), 1);
			cr_assert_gt(verify_all().problems, 0, "segment %u, byte %zu", segment, at);
			cr_assert_eq(pwrite(fd, &whole.at[at], 1, (off_t)at), 1);
			close(fd);
		}
		free(whole.at);
	}
	cr_expect_eq(verify_all().problems, 0, "%s", verify_trial.problems);
	builder_close(&verify_trial.builder);
}

Test(archive_verify, finds_any_cut)
{
	struct builder_bytes whole;
	char path[128];

	verify_tell_all();
	for (unsigned int segment = 1; segment <= 3; segment++) {
		snprintf(path, sizeof(path), "%s/%08u.r3seg", verify_trial.builder.dir, segment);
		whole = builder_read(path);
		for (size_t len = whole.len; len--;) {
			cr_assert_eq(truncate(path, (off_t)len), 0);
			cr_assert_gt(verify_all().problems, 0, "segment %u, byte %zu", segment,
				     len);
		}
		builder_write(path, whole.at, whole.len);
		free(whole.at);
	}
	cr_expect_eq(verify_all().problems, 0, "%s", verify_trial.problems);
	builder_close(&verify_trial.builder);
}

Test(archive_verify, finds_segments_that_are_missing_the_last_by_the_index)
{
	verify_tell_all();
	unlink(builder_path(&verify_trial.builder, "00000003.r3seg"));
	verify_expect_problem("00000003.r3seg, byte 0: is not there, but the index knows it");
	verify_tell_all();
	unlink(builder_path(&verify_trial.builder, "00000002.r3seg"));
	verify_all();
	cr_expect(strstr(verify_trial.problems, "00000002.r3seg, byte 0: is not there"), "%s",
		  verify_trial.problems);
	builder_close(&verify_trial.builder);
}
