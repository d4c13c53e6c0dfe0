/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that a recorder left by a crash, a power loss or in good order, gone on with. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/block.h"
#include "tests/unit/archive_fixture.h"

#define RECORDS 4000u
#define PAGE 4096u

static struct archive_fixture archive;
static struct archive_walk walk;
/* The segment that is spoilt, as it was; and its blocks. */
static uint8_t *image;
static size_t image_bytes;
static struct archive_walk whole;

static void setup(void)
{
	archive_fixture_init(&archive);
}

static void teardown(void)
{
	archive_walk_free(&walk);
	archive_walk_free(&whole);
	free(image);
	archive_fixture_free(&archive);
}

TestSuite(archive_resume, .init = setup, .fini = teardown, .timeout = 100);

/* ---- making -------------------------------------------------------------- */

static void read_image(unsigned int segment)
{
	int fd = open(archive_fixture_segment(&archive, segment), O_RDONLY);
	struct stat status;

	cr_assert_eq(fstat(fd, &status), 0);
	image_bytes = (size_t)status.st_size;
	image = malloc(image_bytes);
	cr_assert_eq(read(fd, image, image_bytes), (ssize_t)image_bytes);
	close(fd);
}

static void write_image(unsigned int segment, const uint8_t *bytes, size_t count)
{
	int fd = open(archive_fixture_segment(&archive, segment), O_WRONLY | O_CREAT | O_TRUNC,
		      0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, count), (ssize_t)count);
	close(fd);
}

/* Until so much of what was given is in the files. */
static void await_stored(uint64_t records)
{
	struct archive_writer_stats stats;

	do {
		archive_writer_poll(archive.writer);
		poll(NULL, 0, 1);
		archive_writer_get_stats(archive.writer, &stats);
	} while (stats.stored_records < records);
}

/* What is on the disk while a recorder is at work: nothing says that the segment ends. */
static void make_unfinished(void)
{
	archive.options.sync = ARCHIVE_SYNC_PERIOD;
	archive.options.sync_ms = 5;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	archive_fixture_fill(&archive, RECORDS);
	await_stored(RECORDS);
	read_image(1);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	write_image(1, image, image_bytes);
	archive_fixture_check(&archive, &whole);
	cr_assert_gt(whole.block_count, 3);
	cr_assert_eq(whole.blocks[whole.block_count - 1].head.flags & ARCHIVE_BLOCK_LAST, 0);
}

static struct archive_resumed resumed_entry(void)
{
	struct archive_resumed resumed = {0};

	for (size_t i = 0; i < walk.entry_count; i++) {
		if (walk.entries[i].head.kind == ARCHIVE_RESUMED)
			memcpy(&resumed, walk.entries[i].payload, sizeof(resumed));
	}
	return resumed;
}

/* Opens what is there, adds to it, and looks whether all of it holds. Returns how many
 * records were there. */
static uint64_t go_on(void)
{
	struct r3ring_error err = {0};
	uint64_t before;

	cr_assert_eq(archive_fixture_open(&archive, &err), 0, "%s", err.text);
	before = archive.next[0] + archive.next[1] - 2;
	archive_fixture_fill(&archive, 100);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_walk_free(&walk);
	archive_fixture_check(&archive, &walk);
	cr_assert_eq(archive_walk_records(&walk, "unit/0") +
			     archive_walk_records(&walk, "unit/1.draft"),
		     before + 100);
	unlink(archive_fixture_segment(&archive, 2));
	return before;
}

/* ---- in good order -------------------------------------------------------- */

Test(archive_resume, after_a_close_it_goes_on_without_gap_or_double)
{
	struct archive_resumed resumed;

	for (unsigned int i = 0; i < 5; i++) {
		cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
		cr_assert_eq(archive.next[0], i * 500 + 1);
		archive_fixture_fill(&archive, 1000);
		cr_assert_eq(archive_fixture_close(&archive), 0);
	}
	archive_fixture_check(&archive, &walk);
	cr_assert_eq(archive_walk_records(&walk, "unit/0"), 2500);
	cr_assert_eq(archive_walk_records(&walk, "unit/1.draft"), 2500);
	cr_assert_eq(archive_walk_kind(&walk, ARCHIVE_RESUMED), 4);
	resumed = resumed_entry();
	cr_assert_eq(resumed.cut_bytes, 0);
	cr_assert_lt(resumed.stopped_ns, resumed.resumed_ns);
	cr_assert_eq(memcmp(walk.segments[0].head.uuid, walk.segments[4].head.uuid, 16), 0);
}

Test(archive_resume, a_recorder_that_gave_nothing_changes_no_account)
{
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
		if (i == 0)
			archive_fixture_fill(&archive, 1000);
		cr_assert_eq(archive_fixture_close(&archive), 0);
	}
	archive_fixture_check(&archive, &walk);
	cr_assert_eq(walk.segment_count, 3);
	cr_assert_eq(archive_walk_records(&walk, "unit/0"), 500);
}

/* ---- cut anywhere --------------------------------------------------------- */

/* Records in blocks that end at or before an offset. */
static uint64_t records_before(size_t bytes, uint64_t *end)
{
	uint64_t records = 0;

	*end = 0;
	for (size_t i = 0; i < whole.block_count; i++) {
		const struct walked_block *block = &whole.blocks[i];

		if (block->offset + archive_block_span(&block->head) > bytes)
			break;
		records = block->head.records;
		*end = block->offset + archive_block_span(&block->head);
	}
	return records;
}

static void expect_cut_at(size_t bytes)
{
	uint64_t end;
	uint64_t expected = records_before(bytes, &end);

	write_image(1, image, bytes);
	cr_assert_eq(go_on(), expected, "cut at %zu", bytes);
	/* Where no block is left, the segment is made anew. */
	if (end)
		cr_assert_eq(resumed_entry().cut_bytes, bytes - end, "cut at %zu", bytes);
	else
		cr_assert_eq(archive_walk_kind(&walk, ARCHIVE_RESUMED), 0);
}

Test(archive_resume, cut_at_each_block_and_inside_it_resumes_behind_the_last_whole_one)
{
	make_unfinished();
	for (size_t i = 0; i < whole.block_count; i++) {
		size_t offset = whole.blocks[i].offset;
		size_t span = archive_block_span(&whole.blocks[i].head);

		expect_cut_at(offset);
		expect_cut_at(offset + 1);
		expect_cut_at(offset + sizeof(struct archive_block_head) - 1);
		expect_cut_at(offset + sizeof(struct archive_block_head));
		expect_cut_at(offset + span / 2);
		expect_cut_at(offset + span - 1);
	}
	expect_cut_at(image_bytes);
	for (size_t bytes = 0; bytes <= sizeof(struct archive_segment_head); bytes += 16)
		expect_cut_at(bytes);
}

/* The second segment is cut in front of its READY: then the first knows the cursors. */
Test(archive_resume, a_segment_that_has_not_said_all_again_goes)
{
	make_unfinished();
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	free(image);
	read_image(2);
	/* Up to its end mark: what is in front of that is whole. */
	for (size_t bytes = 0; bytes < image_bytes - sizeof(struct archive_block_head);
	     bytes += 97) {
		struct r3ring_error err = {0};

		write_image(2, image, bytes);
		cr_assert_eq(archive_fixture_open(&archive, &err), 0, "%s", err.text);
		cr_assert_eq(archive.next[0] + archive.next[1] - 2, RECORDS, "cut at %zu", bytes);
		cr_assert_eq(archive_writer_resumption(archive.writer)->record.cut_bytes, bytes);
		cr_assert_eq(archive_fixture_close(&archive), 0);
		archive_walk_free(&walk);
		archive_fixture_check(&archive, &walk);
		cr_assert_eq(walk.segment_count, 2);
	}
}

/* ---- power loss ------------------------------------------------------------ */

/* As if so many blocks had been on the disk by the time of any later one. Returns the offset
 * behind them. */
static size_t say_synced(uint64_t synced)
{
	uint64_t hash = 0;
	size_t end = 0;

	for (size_t i = 0; i < whole.block_count; i++) {
		struct walked_block *block = &whole.blocks[i];

		block->head.previous_hash = hash;
		block->head.synced = block->head.number > synced ? synced : block->head.number - 1;
		archive_block_seal(&block->head);
		hash = block->head.head_hash;
		memcpy(image + block->offset, &block->head, sizeof(block->head));
		if (block->head.number <= synced)
			end = block->offset + archive_block_span(&block->head);
	}
	return end;
}

/* Zeros pages by chance, from an offset on; returns the first byte that is now another. */
static size_t lose_pages(uint8_t *bytes, size_t from, unsigned int seed)
{
	size_t first = image_bytes;
	unsigned int state = seed;

	for (size_t page = from / PAGE * PAGE; page < image_bytes; page += PAGE) {
		size_t end = page + PAGE < image_bytes ? page + PAGE : image_bytes;

		if (rand_r(&state) % 8)
			continue;
		for (size_t at = page < from ? from : page; at < end; at++) {
			if (bytes[at] && at < first)
				first = at;
			bytes[at] = 0;
		}
	}
	return first;
}

Test(archive_resume, whatever_page_of_the_unsynced_is_lost_the_synced_is_there)
{
	size_t from;
	uint8_t *lossy;

	make_unfinished();
	from = say_synced(whole.block_count / 2);
	lossy = malloc(image_bytes);
	for (unsigned int seed = 1; seed <= 40; seed++) {
		uint64_t end;
		size_t first;

		memcpy(lossy, image, image_bytes);
		first = lose_pages(lossy, from, seed);
		write_image(1, lossy, image_bytes);
		cr_assert_eq(go_on(), records_before(first, &end), "seed %u", seed);
		cr_assert_geq(end, from);
		cr_assert_eq(resumed_entry().cut_bytes, image_bytes - end, "seed %u", seed);
	}
	free(lossy);
}

/* ---- damage ---------------------------------------------------------------- */

/* It is refused, and the file stays as it is. */
static void expect_damage_at(size_t at)
{
	struct r3ring_error err = {0};
	uint8_t *spoilt = malloc(image_bytes);

	memcpy(spoilt, image, image_bytes);
	spoilt[at] ^= 1;
	write_image(1, spoilt, image_bytes);
	cr_assert_eq(archive_fixture_open(&archive, &err), -EBADMSG, "at %zu", at);
	cr_assert_not_null(strstr(err.text, "00000001.r3seg: damaged"), "%s", err.text);
	free(image);
	read_image(1);
	cr_assert_eq(memcmp(image, spoilt, image_bytes), 0);
	image[at] ^= 1;
	free(spoilt);
}

Test(archive_resume, damage_where_it_had_been_synced_is_refused_and_left_alone)
{
	size_t end;

	make_unfinished();
	end = say_synced(whole.block_count - 1);
	expect_damage_at(100);
	expect_damage_at(whole.blocks[0].offset + 60);
	expect_damage_at(whole.blocks[1].offset + 5000);
	expect_damage_at(end - 200);
}

/* Whatever was synced while it was written: the end mark says that all was. */
Test(archive_resume, damage_in_an_archive_that_was_closed_is_refused_and_left_alone)
{
	archive.options.sync = ARCHIVE_SYNC_NEVER;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	archive_fixture_fill(&archive, RECORDS);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	read_image(1);
	archive_walk(&whole, archive.dir);
	cr_assert_gt(whole.block_count, 2);
	for (size_t i = 0; i + 1 < whole.block_count; i++) {
		expect_damage_at(whole.blocks[i].offset + 8);
		expect_damage_at(whole.blocks[i].offset + sizeof(struct archive_block_head) + 50);
	}
}

Test(archive_resume, an_archive_of_other_layers_is_refused)
{
	struct r3ring_error err = {0};

	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive.options.layer_end = 5;
	cr_assert_eq(archive_fixture_open(&archive, &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "keeps all layers: leave --layers out, or"));
}

Test(archive_resume, an_archive_of_some_layers_says_which_when_all_are_asked_for)
{
	struct r3ring_error err = {0};

	archive.options.layer_first = 1;
	archive.options.layer_end = 5;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive.options.layer_first = 0;
	archive.options.layer_end = 0;
	cr_assert_eq(archive_fixture_open(&archive, &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "keeps other layers: give --layers 1:5, or"));
}

Test(archive_resume, an_archive_of_a_later_version_is_refused)
{
	struct archive_segment_head head;
	struct r3ring_error err = {0};

	make_unfinished();
	memcpy(&head, image, sizeof(head));
	head.version = ARCHIVE_VERSION + 1;
	archive_segment_seal(&head);
	memcpy(image, &head, sizeof(head));
	write_image(1, image, image_bytes);
	cr_assert_eq(archive_fixture_open(&archive, &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "use a later one"));
}
