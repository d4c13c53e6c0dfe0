/* SPDX-License-Identifier: Apache-2.0 */
/* What channels lost, by archives told by hand in which records that tell of it are missing. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "tests/unit/archive_verify.h"
#include "tools/verify.h"

#define FULL R3RING_CAUSE_RING_FULL

static struct story *const story = &verify_trial.story;

static void gap_from(uint64_t before)
{
	builder_gap(&verify_trial.builder, 0, before + 1, story->seq, ARCHIVE_GAP_OVERRUN);
}

/* The account, and that it is no lie. */
static struct lost_account account(void)
{
	struct archive_verified verified;

	verify_finish();
	verified = verify_all();
	cr_expect_str_empty(verify_trial.problems, "%s", verify_trial.problems);
	return verified.lost;
}

static void expect(const struct lost_account *lost, uint64_t steps, uint64_t unheard,
		   uint64_t unproved)
{
	cr_expect_eq(lost->steps[FULL], steps, "%lu", lost->steps[FULL]);
	cr_expect_eq(lost->unheard_steps[FULL], unheard, "%lu", lost->unheard_steps[FULL]);
	cr_expect_eq(lost->unproved, unproved, "%lu", lost->unproved);
	cr_expect_eq(lost_account_steps(lost), steps);
	cr_expect_eq(lost_account_unheard(lost), unheard);
}

static void expect_account(uint64_t steps, uint64_t unheard, uint64_t unproved)
{
	const struct lost_account lost = account();

	expect(&lost, steps, unheard, unproved);
	builder_close(&verify_trial.builder);
}

Test(archive_losses, those_whose_records_fell_into_a_gap_are_proved_by_the_next_keyframe)
{
	struct lost_account lost;

	verify_begin();
	story_lost(story, 2, 20, FULL);
	verify_lose_unheard(3, 33);
	story_lost(story, 4, 40, FULL);
	story_keyframe(story);
	lost = account();
	expect(&lost, 9, 3, 0);
	cr_expect_eq(lost.rows[FULL], 93);
	cr_expect_eq(lost.unheard_rows[FULL], 33);
	builder_close(&verify_trial.builder);
}

Test(archive_losses, those_told_are_not_counted_again_by_keyframes)
{
	verify_begin();
	story_lost(story, 2, 20, FULL);
	story_keyframe(story);
	story_lost(story, 1, 1, FULL);
	story_keyframe(story);
	expect_account(3, 0, 0);
}

Test(archive_losses, behind_a_gap_without_a_keyframe_more_may_be_lost)
{
	verify_begin();
	story_keyframe(story);
	verify_lose_unheard(3, 33);
	story_lost(story, 4, 40, FULL);
	expect_account(4, 0, 1);
}

Test(archive_losses, the_next_generations_totals_prove_nothing_of_the_one_before)
{
	verify_begin();
	verify_lose_unheard(3, 33);
	story_closed(story);
	story_generation(story, 2);
	story_lost(story, 5, 5, FULL);
	story_keyframe(story);
	verify_lose_unheard(7, 7);
	story_keyframe(story);
	expect_account(12, 7, 1);
}

/* The next generation, which goes on from one that is @back before it; 0: from none. */
static void go_on(uint16_t back)
{
	story->continues = back;
	story_generation(story, story->generation + 1);
}

static void expect_unfollowed(uint64_t ends)
{
	struct lost_account lost = account();

	cr_expect_eq(lost.unfollowed, ends, "%lu", lost.unfollowed);
	cr_expect_eq(lost_account_more(&lost), ends > 0);
	builder_close(&verify_trial.builder);
}

Test(archive_losses, what_an_engine_ran_behind_its_daemons_end_is_told_by_who_goes_on_from_there)
{
	verify_begin();
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	go_on(1);
	story_closed(story);
	go_on(0);
	expect_unfollowed(0);
}

Test(archive_losses, what_it_ran_before_it_died_without_a_daemon_nobody_knows)
{
	verify_begin();
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	go_on(0);
	story_closed_for(story, R3RING_CLOSED_CRASHED, true);
	go_on(0);
	expect_unfollowed(2);
}

Test(archive_losses, behind_the_newest_end_more_may_be_lost_until_a_generation_goes_on)
{
	verify_begin();
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	expect_unfollowed(1);
}

Test(archive_losses, a_generation_that_its_engine_never_knew_of_is_gone_on_with_from_the_one_before)
{
	verify_begin();
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	go_on(1);
	story_closed_for(story, R3RING_CLOSED_CRASHED, true);
	go_on(2);
	story_closed(story);
	expect_unfollowed(0);
}

/* LOST of no steps: a daemon took the ring over; its engine did not come, or did. */
static void taken_over(bool forsaken)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost.cause = R3RING_CAUSE_DAEMON_RESTART;
	record.u.lost.spans_unknown = forsaken;
	story_record(story, &record, 0, 0, 0);
}

Test(archive_losses, of_an_engine_that_did_not_come_back_it_is_said_before_its_ring_ends)
{
	verify_begin();
	taken_over(true);
	expect_unfollowed(1);
}

Test(archive_losses, and_once_however_often_it_is_said)
{
	verify_begin();
	taken_over(true);
	taken_over(true);
	story_closed_for(story, R3RING_CLOSED_CRASHED, true);
	expect_unfollowed(1);
}

Test(archive_losses, an_engine_that_came_back_to_its_ring_left_nothing_untold)
{
	verify_begin();
	taken_over(false);
	story_closed(story);
	expect_unfollowed(0);
}

Test(archive_losses, one_that_came_too_late_tells_in_the_next_generation)
{
	verify_begin();
	taken_over(true);
	go_on(1);
	story_closed(story);
	expect_unfollowed(0);
}

Test(archive_losses, an_engine_that_goes_on_says_nothing_of_another_that_came_between)
{
	verify_begin();
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	go_on(0);
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	go_on(2);
	story_closed(story);
	expect_unfollowed(1);
}

static void recorder_ends_untold(void)
{
	const struct archive_entry entry = {.kind = ARCHIVE_UNFOLLOWED, .seq = story->seq + 1};

	builder_entry(&verify_trial.builder, entry, NULL, 0);
}

Test(archive_losses, behind_a_recorder_that_ended_without_a_daemon_more_may_be_lost)
{
	verify_begin();
	recorder_ends_untold();
	expect_unfollowed(1);
}

Test(archive_losses, and_nothing_once_the_generation_goes_on)
{
	verify_begin();
	recorder_ends_untold();
	story_keyframe(story);
	expect_unfollowed(0);
}

Test(archive_losses, nor_once_another_generation_goes_on_from_it)
{
	verify_begin();
	recorder_ends_untold();
	go_on(1);
	expect_unfollowed(0);
}

Test(archive_losses, but_still_where_another_engine_follows)
{
	verify_begin();
	recorder_ends_untold();
	go_on(0);
	expect_unfollowed(1);
}

Test(archive_losses, that_more_records_follow_does_not_take_back_what_a_daemon_said)
{
	verify_begin();
	taken_over(true);
	recorder_ends_untold();
	story_keyframe(story);
	expect_unfollowed(1);
}

Test(archive_losses, a_generation_whose_beginning_fell_into_a_gap_lost_what_its_totals_say)
{
	verify_begin();
	story_closed(story);
	story->absent = true;
	story_generation(story, 2);
	story_lost(story, 5, 50, FULL);
	story->absent = false;
	gap_from(0);
	story_keyframe(story);
	expect_account(5, 5, 0);
}

Test(archive_losses, what_was_lost_before_a_late_recorder_came_is_not_of_its_time)
{
	builder_open(&verify_trial.builder, 3);
	builder_segment(&verify_trial.builder);
	builder_ready(&verify_trial.builder);
	verify_trial.other = (struct story){0};
	story->absent = true;
	*story = (struct story){.builder = &verify_trial.builder, .name = "m/0", .absent = true};
	builder_channel(&verify_trial.builder, 0, "m/0", false);
	story_generation(story, 1);
	story_lost(story, 5, 50, FULL);
	story->absent = false;
	builder_gap(&verify_trial.builder, 0, 1, story->seq, ARCHIVE_GAP_LATE);
	story_lost(story, 2, 2, FULL);
	story_keyframe(story);
	verify_lose_unheard(3, 3);
	story_keyframe(story);
	expect_account(5, 3, 0);
}

Test(archive_losses, an_archive_without_its_first_segments_begins_with_its_first_keyframe)
{
	static struct story *const both[] = {&verify_trial.story, &verify_trial.other};
	struct archive_reader *reader = NULL;
	struct archive_losses losses = {0};
	struct archive_item item;

	verify_begin();
	story_lost(story, 5, 50, FULL);
	verify_trial.builder.segment_flags = ARCHIVE_SEGMENT_ROTATES;
	story_next_segment(both, 2);
	story_lost(story, 2, 2, FULL);
	story_keyframe(story);
	verify_finish();
	cr_assert_eq(remove(builder_path(&verify_trial.builder, "00000001.r3seg")), 0);
	cr_assert_eq(archive_reader_open(&reader, verify_trial.builder.dir, NULL), 0);
	while (archive_reader_next(reader, &item, NULL) == 1) {
		struct r3ring_record record;
		const bool decoded = item.kind == ARCHIVE_RECORD &&
				     !r3ring_record_decode(&record, item.view.type, item.view.data,
							   item.view.len, NULL);

		if (item.channel == 0)
			archive_losses_take(&losses, &item, decoded ? &record : NULL, true);
	}
	archive_reader_close(reader);
	expect(&losses.of.account, 2, 0, 0);
	builder_close(&verify_trial.builder);
}

Test(archive_losses, each_channel_has_its_own_totals)
{
	verify_begin();
	verify_lose_unheard(3, 33);
	story_lost(&verify_trial.other, 8, 8, FULL);
	story_keyframe(&verify_trial.other);
	story_keyframe(story);
	expect_account(11, 3, 0);
}

/* ---- entry by entry ------------------------------------------------------ */

static struct archive_losses taken;

static void take_generation(uint64_t generation, uint8_t uuid, uint64_t seq)
{
	const struct archive_item item = {
		.kind = ARCHIVE_GENERATION,
		.u.generation = {.generation = generation, .uuid = {uuid}, .seq = seq}};

	archive_losses_take(&taken, &item, NULL, true);
}

static void take_gap(void)
{
	const struct archive_item item = {.kind = ARCHIVE_GAP,
					  .u.gap = {.cause = ARCHIVE_GAP_OVERRUN, .lost = 1}};

	archive_losses_take(&taken, &item, NULL, true);
}

/* A keyframe; @repeated: by a segment, @flags: by the daemon. */
static void take_total(uint64_t steps, uint32_t repeated, uint16_t flags)
{
	const struct archive_item item = {.kind = ARCHIVE_RECORD,
					  .repeated = repeated,
					  .view = {.type = R3RING_KEYFRAME, .flags = flags}};
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.totals.lost_steps[FULL] = steps;
	archive_losses_take(&taken, &item, &record, true);
}

/* A generation whose keyframe tells of two steps, and then a gap. */
static void take_two_and_a_gap(void)
{
	take_generation(1, 7, 0);
	take_total(2, 0, 0);
	take_gap();
	expect(&taken.of.account, 2, 2, 1);
}

Test(archive_losses, a_generation_that_the_next_segment_says_again_goes_on)
{
	take_two_and_a_gap();
	take_generation(1, 7, 12);
	take_total(5, 0, 0);
	expect(&taken.of.account, 5, 5, 0);
}

Test(archive_losses, one_of_the_same_number_in_another_ring_does_not)
{
	take_two_and_a_gap();
	take_generation(1, 8, 0);
	take_total(3, 0, 0);
	expect(&taken.of.account, 5, 5, 1);
}

Test(archive_losses, a_keyframe_that_is_said_again_stands_for_none)
{
	take_two_and_a_gap();
	take_total(2, 1, 0);
	take_total(2, 0, R3RING_DESC_REPEATED);
	expect(&taken.of.account, 2, 2, 1);
}

Test(archive_losses, what_cannot_be_decoded_leaves_a_gap_where_it_was_a_LOST)
{
	struct archive_item item = {.kind = ARCHIVE_RECORD, .view.type = R3RING_LOST};

	take_generation(1, 7, 0);
	archive_losses_take(&taken, &item, NULL, true);
	expect(&taken.of.account, 0, 0, 1);
	item.view.type = R3RING_STEP;
	archive_losses_take(&taken, &item, NULL, true);
	expect(&taken.of.account, 0, 0, 1);
}

/* ---- lies -------------------------------------------------------------- */

Test(archive_losses, totals_that_are_more_than_was_told_without_a_gap_are_a_lie)
{
	verify_begin();
	story_lost(story, 2, 20, FULL);
	story->totals.lost_steps[FULL]++;
	story_keyframe(story);
	verify_finish();
	verify_expect_problem("lost_steps is 3, but by the records it is 2");
}

Test(archive_losses, totals_that_are_fewer_than_was_told_are_a_lie_behind_a_gap_too)
{
	verify_begin();
	story_lost(story, 4, 40, FULL);
	verify_lose_unheard(3, 30);
	story->totals.lost_steps[FULL] = 3;
	story_keyframe(story);
	verify_finish();
	verify_expect_problem("says 3 steps (70 rows) are lost of cause ring_full, but by the "
			      "records it is 4 (40) at least");
}

/* ---- in words ---------------------------------------------------------- */

static char *verify_words(void)
{
	const struct archive_verified verified = verify_all();
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	verify_print(out, verify_trial.builder.dir, &verified);
	fclose(out);
	return text;
}

static void expect_words(char *text, const char *words)
{
	cr_expect_not_null(strstr(text, words), "\"%s\" is not in: %s", words, text);
	free(text);
}

Test(archive_losses, verify_says_what_is_known_by_totals_only)
{
	verify_begin();
	story_lost(story, 2, 20, FULL);
	verify_lose_unheard(3, 33);
	story_keyframe(story);
	verify_finish();
	expect_words(verify_words(),
		     "  lost by the channels: ring_full 5 steps (53 rows)\n"
		     "  of these told by totals only: ring_full 3 steps (33 rows): their records "
		     "fell into a gap\n");
	builder_close(&verify_trial.builder);
}

Test(archive_losses, verify_says_at_least_where_no_keyframe_came)
{
	verify_begin();
	story_lost(story, 2, 20, FULL);
	verify_lose_unheard(3, 33);
	verify_finish();
	expect_words(verify_words(),
		     "lost by the channels: at least ring_full 2 steps (20 rows): behind 1 gaps "
		     "no keyframe came that would tell more\n");
	builder_close(&verify_trial.builder);
}

static char *page_words(void)
{
	const struct report_options options = {.table = 10};
	const struct page_source source = {
		.archive = verify_trial.builder.dir, .title = "t", .options = &options};
	struct report report;
	struct r3ring_error err;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	cr_assert_eq(report_read(&report, source.archive, &options, NULL, NULL, &err), 0, "%s",
		     err.text);
	cr_assert_eq(page_write(out, &report, &source, &err), 0, "%s", err.text);
	fclose(out);
	report_free(&report);
	return text;
}

Test(archive_losses, a_report_counts_those_that_only_totals_tell)
{
	verify_begin();
	story_step(story, 1, 0, 1);
	story_lost(story, 2, 20, FULL);
	verify_lose_unheard(3, 33);
	story_keyframe(story);
	verify_finish();
	expect_words(page_words(), "told by totals only: their records fell into a gap");
	expect_words(page_words(), " of requests, 5 steps");
	builder_close(&verify_trial.builder);
}

Test(archive_losses, a_report_says_at_least_where_no_keyframe_came)
{
	verify_begin();
	story_step(story, 1, 0, 1);
	verify_lose_unheard(3, 33);
	verify_finish();
	expect_words(page_words(), "of requests, at least ");
	builder_close(&verify_trial.builder);
}

Test(archive_losses, of_an_end_that_nobody_followed_verify_and_report_say_that_more_may_be_lost)
{
	verify_begin();
	story_step(story, 1, 0, 1);
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, true);
	go_on(0);
	verify_finish();
	expect_words(verify_words(),
		     "lost by the channels: nothing that is known: behind 1 ends of generations "
		     "only the engine knows what it ran\n");
	expect_words(page_words(), "of requests, at least ");
	expect_words(page_words(), "behind 1 ends of generations only the engine knows");
	builder_close(&verify_trial.builder);
}
