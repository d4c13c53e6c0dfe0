/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of archives, on ones that were written by hand. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/support/archive_story.h"
#include "tests/support/archive_tally.h"

static struct archive_builder builder;
static struct story story, other;
static struct story *const both[] = {&story, &other};

/* Two channels in three segments; of each 3 steps of 2 rows a segment. */
static void tell_part(unsigned int part)
{
	for (uint32_t i = 0; i < 3; i++) {
		story_step(&story, 1, 6 * part + 2 * i, 2);
		story_step(&other, 1, 6 * part + 2 * i, 2);
		builder_block(&builder, 0);
	}
}

static void tell_as(int level, bool closed, uint32_t segment_flags)
{
	builder_open(&builder, level);
	builder.segment_flags = segment_flags;
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_begin(&other, &builder, 1, "small/1");
	story_request(&story, 1, "a", 6);
	story_request(&other, 1, "b", 6);
	for (unsigned int part = 0; part < 3; part++) {
		if (part)
			story_next_segment(both, 2);
		tell_part(part);
	}
	builder_segment_end(&builder, closed);
}

static void tell(int level, bool closed)
{
	tell_as(level, closed, 0);
}

#define STEPS 9u /* of each channel */
#define RECORDS (2 * (STEPS * (2 + STORY_LAYERS) + 2))
#define ROWS (2 * STEPS * STORY_LAYERS * 2)

static void expect_all(const struct archive_tally *tally)
{
	cr_expect_eq(tally->opened, 0, "%s", tally->text);
	cr_expect_eq(tally->code, 0);
	cr_expect_eq(tally->damaged, 0, "%s", tally->text);
	cr_expect_eq(tally->wrong, 0);
	cr_expect_eq(tally->records, RECORDS);
	cr_expect_eq(tally->layer_rows, ROWS);
	cr_expect_eq(tally->gaps, 0);
}

Test(archive_reader, gives_every_record_as_it_was_put)
{
	struct archive_tally tally;

	for (int level = 0; level < 20; level += 9) {
		tell(level, true);
		tally = archive_tally(builder.dir);
		expect_all(&tally);
		/* And the channels and their generations. */
		cr_expect_eq(tally.items, RECORDS + 4);
		cr_expect_eq(tally.repeated, 0);
		builder_close(&builder);
	}
}

Test(archive_reader, gives_payloads_flags_and_accounts_of_the_ring)
{
	struct archive_reader *reader;
	struct archive_item item;
	struct r3ring_record record;

	tell(3, true);
	cr_assert_eq(archive_reader_open(&reader, builder.dir, NULL), 0);
	do {
		cr_assert_eq(archive_reader_next(reader, &item, NULL), 1);
	} while (item.kind != ARCHIVE_RECORD || item.view.type != R3RING_LAYER ||
		 strcmp(item.name, "small/1") != 0);
	cr_expect_eq(item.view.seq, 4);
	cr_expect_eq(item.view.step, 1);
	cr_expect_eq(item.view.units, 2);
	cr_expect_eq(item.view.generation, 1);
	cr_expect_eq(item.place.segment, 1);
	cr_expect_eq(item.time_ns, 1764460800001000000u);
	cr_expect_eq((uintptr_t)item.view.data % 8, 0);
	cr_expect_eq(
		r3ring_record_decode(&record, item.view.type, item.view.data, item.view.len, NULL),
		0);
	cr_expect_eq(record.u.layer.ids[3], story_id(1, 1, 1, 0, 1));
	archive_reader_close(reader);
	builder_close(&builder);
}

Test(archive_reader, passes_over_what_a_segment_says_again_unless_it_begins_there)
{
	struct archive_tally tally = {0};
	struct archive_reader *reader;
	struct archive_extent extent;

	tell(0, true);
	cr_assert_eq(archive_reader_open(&reader, builder.dir, NULL), 0);
	cr_assert_eq(archive_reader_seek(reader, 3, NULL), 0);
	archive_tally_read(&tally, reader);
	cr_expect_eq(tally.damaged, 0, "%s", tally.text);
	cr_expect_eq(tally.repeated, 2 * (2 + 1 + 1 + 1));
	cr_expect_eq(tally.layer_rows, ROWS / 3);
	cr_expect_eq(tally.gaps, 0);
	cr_expect_eq(archive_reader_seek(reader, 4, NULL), -ENOENT);
	archive_reader_get_extent(reader, &extent);
	cr_expect_eq(extent.first_segment, 1);
	cr_expect_eq(extent.last_segment, 3);
	cr_expect_eq(archive_reader_passed(reader), extent.bytes);
	archive_reader_close(reader);
	builder_close(&builder);
}

Test(archive_reader, a_rotated_archive_begins_with_what_its_first_segment_says_again)
{
	struct archive_tally tally;

	tell_as(1, true, ARCHIVE_SEGMENT_ROTATES);
	unlink(builder_path(&builder, "00000001.r3seg"));
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 0, "%s", tally.text);
	cr_expect_eq(tally.repeated, 2 * (2 + 1 + 1 + 1));
	cr_expect_eq(tally.layer_rows, ROWS * 2 / 3);
	builder_close(&builder);
}

Test(archive_reader, an_archive_that_never_rotated_lacks_its_first_segment)
{
	struct archive_tally tally;

	tell(1, true);
	unlink(builder_path(&builder, "00000001.r3seg"));
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 1);
	cr_expect(strstr(tally.text, "segment 00000001.r3seg, byte 0: is not there, but 2 is"),
		  "%s", tally.text);
	cr_expect_eq(tally.layer_rows, ROWS * 2 / 3);
	builder_close(&builder);
}

Test(archive_reader, a_segment_that_others_were_to_follow_is_no_end)
{
	struct archive_tally tally;

	tell(1, true);
	unlink(builder_path(&builder, "00000003.r3seg"));
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 1);
	cr_expect(strstr(tally.text, "the segment that follows was removed"), "%s", tally.text);
	cr_expect_eq(tally.layer_rows, ROWS * 2 / 3);
	builder_close(&builder);
}

Test(archive_reader, takes_blocks_without_entries)
{
	struct archive_tally tally;

	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_block(&builder, 0);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	builder_block(&builder, 0);
	builder_segment_end(&builder, true);
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 0, "%s", tally.text);
	cr_expect_eq(tally.records, 1);
	builder_close(&builder);
}

/* ---- refusals ---------------------------------------------------------- */

static void expect_refused(int code, const char *why)
{
	struct archive_tally tally = archive_tally(builder.dir);

	cr_expect_eq(tally.opened, code, "%d: %s", tally.opened, tally.text);
	cr_expect(strstr(tally.text, why), "%s", tally.text);
}

Test(archive_reader, says_that_there_is_no_archive)
{
	struct archive_reader *reader;
	struct r3ring_error err;

	builder_open(&builder, 0);
	expect_refused(-ENOENT, "no archive is there");
	cr_expect_eq(archive_reader_open(&reader, "/nowhere", &err), -ENOENT);
	cr_expect(strstr(err.text, "/nowhere"), "%s", err.text);
	builder_close(&builder);
}

Test(archive_reader, refuses_a_later_format_by_its_number)
{
	struct builder_bytes bytes;

	builder_open(&builder, 0);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	builder_segment_end(&builder, true);
	bytes = builder_read(builder_path(&builder, "00000001.r3seg"));
	bytes.at[offsetof(struct archive_segment_head, version)] = 3;
	builder_reseal(bytes.at, bytes.len);
	builder_write(builder_path(&builder, "00000001.r3seg"), bytes.at, bytes.len);
	free(bytes.at);
	expect_refused(-EPROTO, "format 3");
	builder_close(&builder);
}

Test(archive_reader, refuses_files_that_are_no_segments)
{
	builder_open(&builder, 0);
	builder_write(builder_path(&builder, "00000001.r3seg"), "something else", 14);
	expect_refused(-EBADMSG, "the file ends here");
	builder_close(&builder);
}

/* ---- recorders at work ------------------------------------------------- */

static int lock_archive(void)
{
	int fd = open(builder_path(&builder, "lock"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	return fd;
}

Test(archive_reader, reads_what_a_recorder_has_written_by_now_and_then_the_rest)
{
	struct archive_tally tally = {0};
	struct archive_reader *reader;
	struct builder_bytes whole;
	const char *newest;
	int lock;

	tell(0, true);
	lock = lock_archive();
	newest = builder_path(&builder, "00000003.r3seg");
	whole = builder_read(newest);
	builder_write(newest, whole.at, 0);
	cr_assert_eq(archive_reader_open(&reader, builder.dir, NULL), 0);
	for (size_t len = 0; len < whole.len; len += 100) {
		newest = builder_path(&builder, "00000003.r3seg");
		builder_write(newest, whole.at, len);
		archive_tally_read(&tally, reader);
		cr_assert_eq(tally.damaged, 0, "at %zu: %s", len, tally.text);
		cr_assert_eq(tally.code, 0);
	}
	builder_write(newest, whole.at, whole.len);
	archive_tally_read(&tally, reader);
	expect_all(&tally);
	archive_reader_close(reader);
	free(whole.at);
	close(lock);
	builder_close(&builder);
}

Test(archive_reader, zeros_at_the_end_are_a_write_under_way_only_while_somebody_writes)
{
	struct archive_tally tally;
	struct builder_bytes bytes;
	int lock;

	tell(0, false);
	bytes = builder_read(builder_path(&builder, "00000003.r3seg"));
	bytes.at = realloc(bytes.at, bytes.len + 4096);
	memset(bytes.at + bytes.len, 0, 4096);
	builder_write(builder_path(&builder, "00000003.r3seg"), bytes.at, bytes.len + 4096);
	lock = lock_archive();
	tally = archive_tally(builder.dir);
	expect_all(&tally);
	close(lock);
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 1);
	cr_expect(strstr(tally.text, "was not written"), "%s", tally.text);
	cr_expect_eq(tally.layer_rows, ROWS);
	free(bytes.at);
	builder_close(&builder);
}

Test(archive_reader, an_archive_without_an_end_is_told)
{
	struct archive_tally tally;

	tell(0, false);
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 1);
	cr_expect(strstr(tally.text, "without having been closed"), "%s", tally.text);
	cr_expect_eq(tally.layer_rows, ROWS);
	builder_close(&builder);
}

Test(archive_reader, what_a_killed_recorder_left_goes_on_with_the_next_ones_segment)
{
	const struct archive_entry resumed = {.kind = ARCHIVE_RESUMED};
	const struct archive_resumed payload = {.cut_bytes = 640};
	struct archive_tally tally;

	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_begin(&other, &builder, 1, "small/1");
	tell_part(0);
	builder_segment_end(&builder, false);
	builder_segment(&builder);
	builder_entry(&builder, resumed, &payload, sizeof(payload));
	story_repeat(&story);
	story_repeat(&other);
	builder_ready(&builder);
	tell_part(1);
	builder_segment_end(&builder, true);
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 0, "%s", tally.text);
	cr_expect_eq(tally.layer_rows, ROWS * 2 / 3);
	cr_expect_eq(tally.items, tally.records + 4 + 1);
	builder_close(&builder);
}
