/* SPDX-License-Identifier: Apache-2.0 */
/* Behind damaged state, what can be told to be of the generation before it is read. */
#include "archive/verify.h"
#include "tests/unit/archive_skip.h"

#define PROMPT 2u

TestSuite(archive_state, .fini = skip_finish);

/*
 * State in blocks of its own: one channel, from block 1 on, that goes on while another begins,
 * in block 5; that one's second generation is in block 7.
 */
static void tell_apart(void)
{
	builder_open(&skip.builder, 0);
	skip.builder.apart = true;
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	builder_block(&skip.builder, 0);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	story_request(&skip.story, 1, "a", PROMPT);
	story_step(&skip.story, 1, 0, 2);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 2, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 3, 1);
	story_begin(&skip.other, &skip.builder, 1, "small/1");
	story_step(&skip.other, 1, 0, 1);
	story_step(&skip.story, 1, 4, 1);
	story_generation(&skip.other, 2);
	story_step(&skip.other, 1, 0, 1);
	story_step(&skip.story, 1, 5, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	cr_assert_eq(skip.count, 9, "%u", skip.count);
}

#define OF_STORY (2 + 5 * OF_STEP)
#define OF_OTHER (1 + OF_STEP) /* a generation */

Test(archive_state, a_channel_that_began_in_a_damaged_block_is_hidden_until_it_begins_anew)
{
	const struct archive_verify_hooks hooks = {.problem = skip_ignore};
	struct archive_verified verified;
	struct archive_tally tally;

	tell_apart();
	tally = skip_with_changed(5, HEAD + 3);
	cr_expect_eq(tally.code, 0);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.damaged, 1);
	/* Nobody knows its name before that. */
	cr_expect_eq(tally.records, OF_STORY, "%lu", tally.records);
	cr_expect_eq(tally.gaps, 0);
	skip_expect_text(&tally, "up to its next generation");
	cr_assert_eq(archive_verify(skip.builder.dir, &hooks, &verified, NULL), 0);
	cr_expect_eq(verified.unread.records, 2 * OF_OTHER, "%lu", verified.unread.records);
	cr_expect_eq(verified.problems, 2, "%lu", verified.problems);
}

Test(archive_state, where_only_a_generation_is_damaged_other_channels_go_on_without_a_gap)
{
	struct archive_tally tally;

	tell_apart();
	tally = skip_with_changed(7, HEAD + 3);
	cr_expect_eq(tally.code, 0);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, OF_STORY + OF_OTHER, "%lu", tally.records);
	/* Of the one whose generation it was. */
	cr_expect_eq(tally.gaps, 1);
	cr_expect_eq(tally.gaps_unsized, 1);
}

Test(archive_state, a_channel_whose_first_generation_is_damaged_is_read_from_its_next_on)
{
	struct archive_tally tally;

	builder_open(&skip.builder, 0);
	skip.builder.apart = true;
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	builder_channel(&skip.builder, 1, "small/1", false);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 1);
	skip.other = (struct story){.builder = &skip.builder, .channel = 1, .name = "small/1"};
	story_generation(&skip.other, 1);
	story_step(&skip.other, 1, 0, 1);
	story_generation(&skip.other, 2);
	story_step(&skip.other, 1, 0, 1);
	story_step(&skip.story, 1, 0, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	tally = skip_with_changed(4, HEAD + 3);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, 1 + 2 * OF_STEP + OF_OTHER, "%lu", tally.records);
	cr_expect_eq(tally.gaps, 1, "%lu", tally.gaps);
	cr_expect_eq(tally.gaps_unsized, 1);
}

/* Whose next begins with record 1 as well as it would have. */
Test(archive_state, a_generation_without_a_record_is_not_gone_on_with)
{
	const uint8_t uuid[16] = {7};
	struct archive_tally tally;

	builder_open(&skip.builder, 0);
	skip.builder.apart = true;
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.other, &skip.builder, 1, "small/1");
	builder_block(&skip.builder, 0);
	builder_channel(&skip.builder, 0, "small/0", false);
	builder_generation(&skip.builder, 0, 1, uuid, 0, false);
	story_step(&skip.other, 1, 0, 1);
	skip.story = (struct story){.builder = &skip.builder, .name = "small/0"};
	story_generation(&skip.story, 2);
	story_step(&skip.story, 1, 0, 1);
	story_step(&skip.other, 1, 0, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	tally = skip_with_changed(4, HEAD + 3);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, 1 + 2 * OF_STEP, "%lu", tally.records);
	cr_expect_eq(tally.gaps_unsized, 1);
}

Test(archive_state, the_next_segment_says_exactly_what_was_hidden_of_a_generation)
{
	struct story *const both[] = {&skip.story, &skip.other};
	struct archive_tally tally;

	builder_open(&skip.builder, 0);
	skip.builder.apart = true;
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	story_step(&skip.story, 1, 0, 1);
	story_begin(&skip.other, &skip.builder, 1, "small/1");
	story_step(&skip.other, 1, 0, 1);
	story_step(&skip.story, 1, 0, 1);
	story_next_segment(both, 2);
	story_step(&skip.story, 1, 0, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	/* The state, and what follows it: of the first channel some may be of another generation. */
	skip.whole.at[skip.places[2].at + HEAD] ^= 1;
	tally = skip_with_changed(3, HEAD);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.code, 0);
	cr_expect_eq(tally.gaps_unsized, 1, "of the channel that began");
	cr_expect_eq(tally.records + tally.lost, 1 + 3 * OF_STEP, "%lu and %lu", tally.records,
		     tally.lost);
}

/* Of one block, which had records too: no recorder makes such. */
Test(archive_state, records_that_were_in_a_damaged_block_may_have_been_a_generations_first)
{
	struct archive_tally tally;

	builder_open(&skip.builder, 0);
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	story_step(&skip.story, 1, 0, 1);
	builder_block(&skip.builder, 0);
	story_generation(&skip.story, 2);
	story_step(&skip.story, 1, 0, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	tally = skip_with_changed(1, HEAD + 3);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, 1 + OF_STEP, "%lu", tally.records);
	cr_expect_eq(tally.gaps_unsized, 1);
}

/* A generation that goes on, by its numbers, where the one before it ended. */
static void tell_alike(void)
{
	builder_open(&skip.builder, 0);
	skip.builder.apart = true;
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	story_begin(&skip.other, &skip.builder, 1, "small/1");
	for (uint64_t generation = 2; generation < 6; generation++) {
		uint64_t seq;

		story_step(&skip.story, 1, 0, 1);
		story_step(&skip.other, 1, 0, 1);
		seq = skip.story.seq;
		builder_block(&skip.builder, 0);
		skip.story.absent = true;
		story_generation(&skip.story, generation);
		while (skip.story.seq < seq)
			story_step(&skip.story, 1, 0, 1);
		skip.story.absent = false;
		builder_gap(&skip.builder, 0, 1, skip.story.seq, ARCHIVE_GAP_LATE);
		builder_block(&skip.builder, 0);
	}
	story_step(&skip.story, 1, 0, 1);
	story_step(&skip.other, 1, 0, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
}

Test(archive_state, whatever_blocks_are_damaged_no_record_is_of_another_generation)
{
	unsigned long records = 0, archives = 0;

	tell_alike();
	for (unsigned int first = 0; first < skip.count; first++)
		for (unsigned int second = first; second < skip.count; second++)
			for (size_t byte = 8; byte <= HEAD; byte += HEAD - 8) {
				struct archive_tally tally;

				skip.whole.at[skip.places[first].at + byte] ^= 2;
				tally = skip_with_changed(second, byte);
				cr_expect_eq(tally.wrong, 0, "blocks %u and %u", first, second);
				cr_expect_eq(tally.code, 0);
				records += tally.records;
				archives++;
				skip.whole.at[skip.places[second].at + byte] ^= 1;
				skip.whole.at[skip.places[first].at + byte] ^= 2;
			}
	cr_expect_geq(records / archives, 15, "%lu of each", records / archives);
}
