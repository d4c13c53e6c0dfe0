/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged block is all that is lost, where what follows can be read without it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/export.h"
#include "archive/verify.h"
#include "tests/unit/archive_skip.h"

#define BLOCKS 6u
#define RECORDS 30u
#define PROMPT 2u
#define CUT 24u /* bytes fewer each time */

/* One segment: two channels, and then four blocks of records: 2, 2 steps of both and 2, 1
 * of the first alone; and the end. */
static void tell(int level, uint32_t version)
{
	builder_open(&skip.builder, level);
	skip.builder.version = version;
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	story_begin(&skip.other, &skip.builder, 1, "small/1");
	story_request(&skip.story, 1, "a", PROMPT);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 2);
	story_step(&skip.other, 1, 0, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 2, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.other, 1, 1, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 3, 1);
	story_end(&skip.story, 1, 5);
	story_closed(&skip.story);
	builder_block(&skip.builder, 0);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	cr_assert_eq(skip.count, BLOCKS);
}

TestSuite(archive_skip, .fini = skip_finish);

/* So many records, told by so many gaps. */
static void expect_lost(const struct archive_tally *tally, unsigned int records, uint64_t gaps)
{
	cr_expect_eq(tally->code, 0);
	cr_expect_eq(tally->wrong, 0);
	cr_expect_eq(tally->records, RECORDS - records, "%lu", tally->records);
	cr_expect_eq(tally->lost, records, "%lu", tally->lost);
	cr_expect_eq(tally->gaps, gaps, "%lu", tally->gaps);
}

Test(archive_skip, a_damaged_block_is_all_that_is_lost)
{
	struct archive_tally tally;
	char told[96];

	tell(0, 2);
	tally = skip_with_changed(2, HEAD + 3);
	expect_lost(&tally, OF_STEP, 1);
	snprintf(told, sizeof(told),
		 "nothing is read from there to byte %zu, %zu bytes with %u records",
		 skip.places[3].at, skip.places[2].len, OF_STEP);
	skip_expect_text(&tally, told);
}

Test(archive_skip, so_it_is_where_its_head_is_damaged)
{
	struct archive_tally tally;

	tell(3, 2);
	tally = skip_with_changed(1, 40);
	expect_lost(&tally, 2 * OF_STEP, 2);
	skip_expect_text(&tally, "with 10 records");
}

Test(archive_skip, between_two_damaged_heads_nothing_is_believed)
{
	struct archive_tally tally;

	tell(3, 2);
	skip.whole.at[skip.places[1].at + 8] ^= 1;
	tally = skip_with_changed(3, 8);
	cr_expect_eq(tally.code, 0);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, RECORDS - 4 * OF_STEP, "%lu", tally.records);
	/* Of the first channel something follows, of the second nothing. */
	cr_expect_eq(tally.lost, 2 * OF_STEP);
	cr_expect_eq(tally.gaps, 2);
	cr_expect_eq(tally.gaps_unsized, 1);
}

Test(archive_skip, of_what_is_lost_at_the_end_each_channel_tells)
{
	struct archive_tally tally;

	tell(3, 2);
	tally = skip_with_changed(4, HEAD + 1);
	cr_expect_eq(tally.code, 0);
	cr_expect_eq(tally.records, RECORDS - OF_STEP - 2);
	cr_expect_eq(tally.gaps, 2);
	cr_expect_eq(tally.gaps_unsized, 2);
}

Test(archive_skip, without_the_state_that_a_block_had_the_rest_is_not_read)
{
	struct archive_tally tally;

	tell(3, 2);
	tally = skip_with_changed(0, HEAD + 1);
	cr_expect_eq(tally.records, 0);
	skip_expect_text(&tally, "to the segment's end");
}

/* Of another generation, records would be taken for those of the one before. */
Test(archive_skip, nor_behind_a_generation_that_nobody_saw_begin)
{
	struct archive_tally tally;

	builder_open(&skip.builder, 0);
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 1);
	builder_block(&skip.builder, 0);
	story_closed(&skip.story);
	story_generation(&skip.story, 2);
	for (int i = 0; i < 3; i++)
		story_step(&skip.story, 1, 0, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	tally = skip_with_changed(2, HEAD + 1);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, 1 + OF_STEP);
	skip_expect_text(&tally, "up to its next generation");
	cr_expect_eq(tally.gaps_unsized, 1);
}

Test(archive_skip, an_archive_of_version_1_is_read_and_not_gone_on_with)
{
	struct archive_tally tally;

	tell(3, 1);
	tally = archive_tally(skip.builder.dir);
	cr_expect_eq(tally.records, RECORDS);
	cr_expect_eq(tally.damaged, 0, "%s", tally.text);
	tally = skip_with_changed(2, HEAD + 3);
	cr_expect_eq(tally.records, 3 + 2 * OF_STEP);
	skip_expect_text(&tally, "to the segment's end");
}

/* A head that is whole, and whose number and state would do. */
static struct archive_block_head make_head(uint32_t flags)
{
	struct archive_block_head head = {.magic = ARCHIVE_BLOCK_MAGIC,
					  .flags = flags,
					  .number = 4,
					  .records = 2,
					  .state = 1};
	uint8_t bytes[2 * HEAD] = {0};

	memcpy(bytes + HEAD, &head, sizeof(head));
	return builder_reseal(bytes, sizeof(bytes));
}

/* A block may have whatever an engine wrote, blocks too. */
Test(archive_skip, what_looks_like_a_block_within_another_is_none)
{
	const struct archive_block_head last = make_head(ARCHIVE_BLOCK_LAST), next = make_head(0);
	struct archive_tally tally;
	uint8_t bytes[512] = {0};

	builder_open(&skip.builder, 0);
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 1);
	builder_block(&skip.builder, 0);
	/* Where in the file a block may be: behind a head of 128 bytes and one of 40. */
	memcpy(bytes + 24, &next, sizeof(next));
	memcpy(bytes + 24 + 128, &last, sizeof(last));
	skip.story.seq++;
	builder_entry(&skip.builder,
		      (struct archive_entry){.kind = ARCHIVE_RECORD,
					     .type = 100,
					     .seq = skip.story.seq,
					     .units = skip.story.units},
		      bytes, sizeof(bytes));
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 1, 1);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	cr_assert_eq(skip.count, 4);
	tally = skip_with_changed(2, 40);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.records, 1 + 2 * OF_STEP);
	cr_expect_eq(tally.lost, 1);
}

Test(archive_skip, what_a_recorder_did_not_know_when_it_ended_is_read_behind_damage)
{
	struct archive_tally tally;

	builder_open(&skip.builder, 0);
	builder_segment(&skip.builder);
	builder_ready(&skip.builder);
	story_begin(&skip.story, &skip.builder, 0, "small/0");
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 0, 1);
	builder_block(&skip.builder, 0);
	story_step(&skip.story, 1, 1, 1);
	builder_block(&skip.builder, 0);
	builder_entry(&skip.builder,
		      (struct archive_entry){.kind = ARCHIVE_UNFOLLOWED, .seq = skip.story.seq + 1},
		      NULL, 0);
	builder_segment_end(&skip.builder, true);
	skip_read_whole();
	tally = skip_with_changed(2, HEAD + 3);
	cr_expect_eq(tally.wrong, 0);
	cr_expect_eq(tally.lost, OF_STEP);
	cr_expect_eq(tally.damaged, 1);
}

Test(archive_skip, verify_counts_what_was_lost_as_damaged_and_finds_nothing_else)
{
	const struct archive_verify_hooks hooks = {.problem = skip_ignore};
	struct archive_verified verified;

	tell(3, 2);
	skip_with_changed(2, HEAD + 3);
	cr_assert_eq(archive_verify(skip.builder.dir, &hooks, &verified, NULL), 0);
	cr_expect_eq(verified.problems, 2, "the damage, and that there is no index: %lu",
		     verified.problems);
	cr_expect_eq(verified.gap_records[ARCHIVE_GAP_DAMAGED], OF_STEP);
	cr_expect_eq(verified.unread.records, OF_STEP);
	cr_expect_eq(verified.unread.bytes, skip.places[2].len);
	cr_expect_eq(verified.unread.unsized, 0);
}

/* ---- requests ------------------------------------------------------------ */

static void feed(struct r3ring_assembler *assembler, const struct archive_item *item)
{
	struct r3ring_record record;
	int channel = item->name ? r3ring_assembler_channel(assembler, item->name) : 0;

	cr_assert_geq(channel, 0);
	if (item->kind == ARCHIVE_GAP)
		r3ring_assembler_gap(assembler, (uint32_t)channel);
	if (item->kind == ARCHIVE_RECORD &&
	    !r3ring_record_decode(&record, item->view.type, item->view.data, item->view.len, NULL))
		r3ring_assembler_feed(assembler, (uint32_t)channel, &item->view, &record);
}

/* Cells of request "a" that are there; each must be that of the skip.story. */
static unsigned int check_cells(const struct r3ring_assembled *assembled, size_t byte)
{
	static const struct {
		uint64_t step;
		uint32_t row;
	} passes[] = {{1, 0}, {1, 1}, {2, 0}, {3, 0}};
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	uint16_t ids[STORY_TOP_K];
	uint8_t valid;
	const struct r3ring_assembled_rows to = {.ids = ids, .valid = &valid};
	unsigned int there = 0;

	cr_assert_leq(info->tokens, 5);
	for (uint32_t p = 0; p < info->tokens; p++)
		for (uint32_t layer = 0; layer < info->layers; layer++) {
			cr_assert_eq(r3ring_assembled_read(assembled, p, 1, layer, 1, &to), 0);
			there += valid;
			for (uint32_t k = 0; valid && k < STORY_TOP_K; k++)
				cr_assert_eq(ids[k],
					     story_id(1, passes[p].step, passes[p].row, layer, k),
					     "byte %zu, position %u", byte, p);
		}
	return there;
}

static unsigned int check_archive(size_t byte)
{
	struct r3ring_assembler *assembler;
	struct r3ring_assembled *assembled;
	struct archive_reader *reader;
	struct archive_item item;
	unsigned int there = 0;
	int code;

	if (archive_reader_open(&reader, skip.builder.dir, NULL))
		return 0;
	cr_assert_eq(r3ring_assembler_create(&assembler, NULL, NULL), 0);
	while ((code = archive_reader_next(reader, &item, NULL)))
		if (code == 1)
			feed(assembler, &item);
	r3ring_assembler_flush(assembler);
	while ((assembled = r3ring_assembler_take(assembler))) {
		there += check_cells(assembled, byte);
		r3ring_assembled_free(assembled);
	}
	r3ring_assembler_destroy(assembler);
	archive_reader_close(reader);
	return there;
}

/* Every @stride-th byte is changed. Returns how many cells are there, on an average. */
static unsigned long check_each(int level, uint8_t bits, size_t stride)
{
	unsigned long there = 0, archives = 0;

	tell(level, 2);
	cr_assert_eq(check_archive(0), 4 * STORY_LAYERS);
	for (size_t at = 0; at < skip.whole.len; at += stride, archives++) {
		skip.whole.at[at] ^= bits;
		builder_write(builder_path(&skip.builder, "00000001.r3seg"), skip.whole.at,
			      skip.whole.len);
		there += check_archive(at);
		skip.whole.at[at] ^= bits;
	}
	for (size_t len = skip.whole.len; len > CUT; len -= CUT) {
		builder_write(builder_path(&skip.builder, "00000001.r3seg"), skip.whole.at,
			      len - CUT);
		check_archive(len);
	}
	return there / archives;
}

Test(archive_skip, whatever_byte_is_changed_or_cut_each_cell_is_true_or_missing)
{
	/* And most of them are there, of twelve. */
	cr_expect_geq(check_each(0, 0x40, 5), 5);
}

Test(archive_skip, so_it_is_where_blocks_are_compressed)
{
	cr_expect_geq(check_each(3, 0x01, 1), 5);
}

Test(archive_skip, an_export_has_all_but_the_damaged_block)
{
	struct export_summary summary;
	char path[128];
	const struct export_options options = {
		.format = "jsonl",
		.out = path,
		.missing = EXPORT_FILL_MINUS_ONE,
		.include = EXPORT_INCLUDE_DAMAGED,
	};
	struct export_options refusing = options;
	struct r3ring_error err = {0};

	tell(3, 2);
	skip_with_changed(2, HEAD + 3);
	snprintf(path, sizeof(path), "%s.jsonl", skip.builder.dir);
	refusing.include = 0;
	cr_expect_eq(export_archive(skip.builder.dir, &refusing, NULL, NULL, NULL, &err), -EBADMSG);
	cr_expect(strstr(err.text, "--include damaged"), "%s", err.text);
	cr_assert_eq(export_archive(skip.builder.dir, &options, NULL, NULL, &summary, &err), 0,
		     "%s", err.text);
	remove(path);
	cr_expect_eq(summary.losses.damage.places, 1);
	cr_expect_eq(summary.losses.damage.records, OF_STEP);
	cr_expect_eq(summary.losses.damage.bytes, skip.places[2].len);
	cr_expect_eq(summary.losses.records, OF_STEP);
	/* The token of the step that was in it. */
	cr_expect_eq(summary.filled[R3RING_MISSING_GAP], STORY_LAYERS);
	cr_expect_eq(export_summary_filled(&summary), STORY_LAYERS);
}
