/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that were cut, changed, or of which something is missing. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/archive_story.h"
#include "tests/support/archive_tally.h"

#define SEGMENTS 3u
#define RECORDS (2 * (SEGMENTS * 2 * (2 + STORY_LAYERS) + 2))

static struct archive_builder builder;
static struct story story, other;
static struct story *const both[] = {&story, &other};

/* Two channels in three segments of two blocks each. */
static void tell(int level)
{
	builder_open(&builder, level);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_begin(&other, &builder, 1, "small/1");
	story_request(&story, 1, "a", 6);
	story_request(&other, 1, "b", 6);
	for (uint32_t i = 0; i < 2 * SEGMENTS; i++) {
		if (i && i % 2 == 0)
			story_next_segment(both, 2);
		story_step(&story, 1, i, 1);
		story_step(&other, 1, i, 1);
		builder_block(&builder, 0);
	}
	builder_segment_end(&builder, true);
}

static const char *segment_path(unsigned int number)
{
	char name[32];

	snprintf(name, sizeof(name), "%08u.r3seg", number);
	return builder_path(&builder, name);
}

/* Told, with its segment, and nothing made up; what is behind it is there, and what is
 * not has been counted where something of the channel is known. */
static struct archive_tally expect_told(unsigned int segment, size_t offset)
{
	struct archive_tally tally = archive_tally(builder.dir);
	const char *name = segment_path(segment) + strlen(builder.dir) + 1;

	cr_assert_eq(tally.opened, 0);
	cr_assert_geq(tally.damaged, 1, "segment %u, byte %zu", segment, offset);
	cr_assert_eq(tally.code, 0);
	cr_assert_eq(tally.wrong, 0, "segment %u, byte %zu", segment, offset);
	/* A cut between two blocks shows at the next segment. */
	cr_assert(strstr(tally.text, name) || strstr(tally.text, "does not follow"), "%s: %s", name,
		  tally.text);
	cr_assert_leq(tally.records, RECORDS);
	if (segment == 2)
		cr_assert_eq(tally.records + tally.lost, RECORDS,
			     "segment %u, byte %zu: %lu and %lu", segment, offset, tally.records,
			     tally.lost);
	return tally;
}

static void cut_everywhere(int level)
{
	tell(level);
	for (unsigned int segment = SEGMENTS; segment; segment--) {
		struct builder_bytes whole = builder_read(segment_path(segment));

		for (size_t len = whole.len; len--;) {
			cr_assert_eq(truncate(segment_path(segment), (off_t)len), 0);
			expect_told(segment, len);
		}
		builder_write(segment_path(segment), whole.at, whole.len);
		free(whole.at);
	}
	builder_close(&builder);
}

Test(archive_damage, a_file_that_is_cut_anywhere_is_told_and_nothing_made_up)
{
	cut_everywhere(0);
}

Test(archive_damage, so_is_one_that_is_compressed)
{
	cut_everywhere(3);
}

static void put_byte(int fd, size_t offset, uint8_t byte)
{
	cr_assert_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
}

static void change_everywhere(int level, uint8_t bits)
{
	tell(level);
	for (unsigned int segment = 1; segment <= SEGMENTS; segment++) {
		struct builder_bytes whole = builder_read(segment_path(segment));
		int fd = open(segment_path(segment), O_WRONLY | O_CLOEXEC);

		cr_assert_geq(fd, 0);
		for (size_t at = 0; at < whole.len; at++) {
			put_byte(fd, at, whole.at[at] ^ bits);
			expect_told(segment, at);
			put_byte(fd, at, whole.at[at]);
		}
		close(fd);
		free(whole.at);
	}
	builder_close(&builder);
}

Test(archive_damage, each_byte_that_is_changed_is_told_and_nothing_made_up)
{
	change_everywhere(0, 0x01);
	change_everywhere(3, 0x80);
}

/* ---- blocks ------------------------------------------------------------ */

struct block_place {
	size_t at, len;
};

static unsigned int find_blocks(const struct builder_bytes *bytes, struct block_place *places)
{
	struct archive_block_head head;
	unsigned int count = 0;

	for (size_t at = 128; at < bytes->len; at += places[count++].len) {
		memcpy(&head, bytes->at + at, sizeof(head));
		places[count] = (struct block_place){at, 128 + (head.stored + 63u) / 64 * 64};
	}
	return count;
}

static void append(struct builder_bytes *to, const struct builder_bytes *from,
		   const struct block_place *place)
{
	memcpy(to->at + to->len, from->at + place->at, place->len);
	to->len += place->len;
}

/* Writes segment 2 with its blocks in another order; -1: none. */
static void reorder(const int *order, unsigned int count, const char *told)
{
	struct builder_bytes whole = builder_read(segment_path(2));
	struct builder_bytes changed = {.at = malloc(2 * whole.len), .len = 128};
	struct block_place places[8];
	struct archive_tally tally;

	cr_assert_eq(find_blocks(&whole, places), count);
	memcpy(changed.at, whole.at, 128);
	for (unsigned int i = 0; i < count; i++) {
		if (order[i] >= 0)
			append(&changed, &whole, &places[order[i]]);
	}
	builder_write(segment_path(2), changed.at, changed.len);
	tally = expect_told(2, 0);
	cr_expect(strstr(tally.text, told), "%s: %s", told, tally.text);
	builder_write(segment_path(2), whole.at, whole.len);
	free(changed.at);
	free(whole.at);
}

Test(archive_damage, blocks_that_are_left_out_exchanged_or_said_twice_are_told)
{
	static const int orders[][3] = {{-1, 1, 2}, {0, -1, 2}, {1, 0, 2},
					{0, 2, 1},  {0, 0, 2},  {0, 1, 1}};
	static const int cut[] = {0, 1, -1}, none[] = {-1, -1, -1};

	tell(3);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		reorder(orders[i], 3, "another one is in its place");
	reorder(cut, 3, "does not follow");
	reorder(none, 3, "does not follow");
	builder_close(&builder);
}

/* A segment has two blocks of a step in each channel, and one that ends it. */
Test(archive_damage, what_is_not_read_behind_damage_is_told_with_its_records)
{
	struct block_place places[8];
	struct builder_bytes whole;
	struct archive_tally tally;
	char told[128];

	tell(3);
	whole = builder_read(segment_path(2));
	cr_assert_eq(find_blocks(&whole, places), 3);
	/* A byte of what the first block has; all heads are whole. */
	whole.at[places[0].at + 128 + 3] ^= 1;
	builder_write(segment_path(2), whole.at, whole.len);
	tally = archive_tally(builder.dir);
	snprintf(told, sizeof(told), "segment's end, %zu bytes with %u records",
		 whole.len - places[0].at, 2 * 2 * (2 + STORY_LAYERS));
	cr_expect(strstr(tally.text, told), "%s: %s", told, tally.text);
	/* And the second one's head: what it has is not known. */
	whole.at[places[1].at + 9] ^= 1;
	builder_write(segment_path(2), whole.at, whole.len);
	tally = archive_tally(builder.dir);
	snprintf(told, sizeof(told), "with at least %u records", 2 * (2 + STORY_LAYERS));
	cr_expect(strstr(tally.text, told), "%s: %s", told, tally.text);
	free(whole.at);
	builder_close(&builder);
}

Test(archive_damage, what_is_behind_the_end_of_a_segment_is_told)
{
	static const uint8_t more[64];
	struct builder_bytes bytes;
	struct archive_tally tally;

	tell(0);
	bytes = builder_read(segment_path(3));
	bytes.at = realloc(bytes.at, bytes.len + sizeof(more));
	memcpy(bytes.at + bytes.len, more, sizeof(more));
	builder_write(segment_path(3), bytes.at, bytes.len + sizeof(more));
	tally = expect_told(3, bytes.len);
	cr_expect(strstr(tally.text, "was closed here, and yet"), "%s", tally.text);
	cr_expect_eq(tally.records, RECORDS);
	free(bytes.at);
	builder_close(&builder);
}

/* ---- segments ---------------------------------------------------------- */

static void move(unsigned int from, unsigned int to)
{
	char old[128];

	snprintf(old, sizeof(old), "%s", segment_path(from));
	cr_assert_eq(rename(old, segment_path(to)), 0);
}

Test(archive_damage, a_segment_that_is_missing_is_named_and_its_records_counted)
{
	struct archive_tally tally;

	tell(0);
	unlink(segment_path(2));
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 1);
	cr_expect(strstr(tally.text, "00000002.r3seg"), "%s", tally.text);
	cr_expect(strstr(tally.text, "is not there"), "%s", tally.text);
	cr_expect_eq(tally.records, RECORDS - 20);
	cr_expect_eq(tally.gaps, 2);
	cr_expect_eq(tally.lost, 20);
	builder_close(&builder);
}

Test(archive_damage, segments_with_each_others_names_are_told)
{
	struct archive_tally tally;

	tell(0);
	move(2, 9);
	expect_told(2, 0);
	move(3, 2);
	move(9, 3);
	tally = archive_tally(builder.dir);
	cr_expect_eq(tally.damaged, 2);
	cr_expect(strstr(tally.text, "it was renamed"), "%s", tally.text);
	cr_expect_eq(tally.wrong, 0);
	builder_close(&builder);
}

Test(archive_damage, a_segment_of_another_archive_is_told)
{
	struct builder_bytes bytes;

	tell(0);
	bytes = builder_read(segment_path(2));
	bytes.at[offsetof(struct archive_segment_head, uuid)] ^= 1;
	builder_reseal(bytes.at, bytes.len);
	builder_write(segment_path(2), bytes.at, bytes.len);
	free(bytes.at);
	expect_told(2, 0);
	builder_close(&builder);
}
