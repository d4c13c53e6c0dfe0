/* SPDX-License-Identifier: Apache-2.0 */
/* The archive's writer: what is given is there, whole and in order. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <r3ring/record.h>

#include "tests/unit/archive_fixture.h"

static struct archive_fixture archive;
static struct archive_walk walk;

static void setup(void)
{
	archive_fixture_init(&archive);
}

static void teardown(void)
{
	archive_walk_free(&walk);
	archive_fixture_free(&archive);
}

TestSuite(archive_writer, .init = setup, .fini = teardown, .timeout = 60);

static void write_and_check(unsigned int records)
{
	struct r3ring_error err = {0};

	cr_assert_eq(archive_fixture_open(&archive, &err), 0, "%s", err.text);
	archive_fixture_fill(&archive, records);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_fixture_check(&archive, &walk);
	cr_assert_eq(archive_walk_records(&walk, "unit/0"), (records + 1) / 2);
	cr_assert_eq(archive_walk_records(&walk, "unit/1.draft"), records / 2);
	cr_assert(walk.blocks[walk.block_count - 1].head.flags & ARCHIVE_BLOCK_LAST);
}

Test(archive_writer, records_of_all_lengths_are_there_as_they_were_given)
{
	write_and_check(10000);
	cr_assert_gt(walk.block_count, 5);
}

Test(archive_writer, without_io_uring_the_same_is_written)
{
	archive.options.no_uring = true;
	write_and_check(10000);
}

Test(archive_writer, without_compression_the_same_is_written)
{
	archive.options.level = 0;
	write_and_check(3000);
	for (size_t i = 0; i < walk.block_count; i++)
		cr_assert_eq(walk.blocks[i].head.stored, walk.blocks[i].head.raw);
}

Test(archive_writer, a_record_larger_than_a_block_has_one_of_its_own)
{
	archive.length = 5u << 20;
	write_and_check(12);
}

Test(archive_writer, an_archive_of_nothing_is_one)
{
	write_and_check(0);
	cr_assert_eq(walk.segment_count, 1);
}

Test(archive_writer, what_does_not_shrink_is_stored_as_it_is)
{
	struct r3ring_view view = {.seq = 1, .type = 100, .len = 900000};
	uint64_t state = 1;
	uint8_t *noise = malloc(view.len);

	for (uint32_t i = 0; i < view.len; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		noise[i] = (uint8_t)(state >> 56);
	}
	view.data = noise;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	cr_assert_eq(archive_writer_record(archive.writer, (uint16_t)archive.channel[0], &view), 0);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_walk(&walk, archive.dir);
	cr_assert_str_eq(walk.problem, "");
	cr_assert_eq(walk.block_count, 3, "its channel and generation, it, and the end mark");
	cr_assert_eq(walk.blocks[1].head.flags, 0);
	cr_assert_eq(walk.blocks[2].head.flags, ARCHIVE_BLOCK_LAST);
	cr_assert_eq(walk.blocks[2].head.raw, 0);
	cr_assert_eq(walk.blocks[1].head.stored, walk.blocks[1].head.raw);
	free(noise);
}

Test(archive_writer, a_record_may_be_read_into_its_place)
{
	struct r3ring_view view = {.seq = 1, .type = 100, .len = 1000};
	size_t capacity = 0;

	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	view.data = archive_writer_room(archive.writer, view.len, &capacity);
	cr_assert_not_null(view.data);
	cr_assert_geq(capacity, view.len);
	memset((void *)(uintptr_t)view.data, 'x', capacity);
	cr_assert_eq(archive_writer_record(archive.writer, (uint16_t)archive.channel[0], &view), 0);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_walk(&walk, archive.dir);
	cr_assert_str_eq(walk.problem, "");
	cr_assert_eq(archive_walk_records(&walk, "unit/0"), 1);
	cr_assert_eq(walk.entries[walk.entry_count - 1].payload[999], 'x');
}

Test(archive_writer, a_second_recorder_is_refused)
{
	struct archive_writer *second = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	cr_assert_eq(archive_writer_open(&second, &archive.options, &err), -EBUSY);
	cr_assert_null(second);
	cr_assert_not_null(strstr(err.text, "another recorder"));
}

Test(archive_writer, options_that_make_no_sense_are_refused_by_name)
{
	struct archive_writer_options options = archive.options;
	struct archive_writer *writer = NULL;
	struct r3ring_error err = {0};

	options.level = 20;
	cr_assert_eq(archive_writer_open(&writer, &options, &err), -EINVAL);
	cr_assert_not_null(strstr(err.text, "level 20"));
	options = archive.options;
	options.rotate = true;
	options.max_bytes = 1 << 20;
	options.segment_bytes = 1 << 20;
	cr_assert_eq(archive_writer_open(&writer, &options, &err), -EINVAL);
	cr_assert_not_null(strstr(err.text, "two segments"));
	options = archive.options;
	options.max_bytes = (64 << 10) - 1;
	cr_assert_eq(archive_writer_open(&writer, &options, &err), -EINVAL);
	cr_assert_not_null(strstr(err.text, "at least 65536"), "%s", err.text);
	options.max_bytes = (128 << 10) - 1;
	options.rotate = true;
	cr_assert_eq(archive_writer_open(&writer, &options, &err), -EINVAL);
	cr_assert_not_null(strstr(err.text, "at least 131072"), "%s", err.text);
}

/* ---- layers -------------------------------------------------------------- */

static void put_layer(uint64_t seq, int32_t layer, uint8_t kind)
{
	struct r3ring_layer_record head = {.step = 1,
					   .layer_id = layer,
					   .kind = kind,
					   .rows = 1,
					   .total_rows = 1,
					   .valid_rows = 1,
					   .top_k = 2};
	uint8_t payload[sizeof(head) + 4] = {0};
	const struct r3ring_view view = {.seq = seq,
					 .step = 1,
					 .type = R3RING_LAYER,
					 .len = sizeof(payload),
					 .data = payload};

	memcpy(payload, &head, sizeof(head));
	cr_assert_eq(archive_writer_record(archive.writer, (uint16_t)archive.channel[0], &view), 0);
}

Test(archive_writer, layers_that_are_left_out_are_told)
{
	const uint16_t expected[] = {ARCHIVE_SKIPPED, ARCHIVE_RECORD, ARCHIVE_RECORD,
				     ARCHIVE_SKIPPED, ARCHIVE_SKIPPED};
	size_t at;

	archive.options.layer_first = 4;
	archive.options.layer_end = 6;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	put_layer(1, 3, R3RING_LAYER_MOE);
	put_layer(2, 4, R3RING_LAYER_HASH);
	put_layer(3, 5, R3RING_LAYER_MOE);
	put_layer(4, 6, R3RING_LAYER_MOE);
	put_layer(5, 4, R3RING_LAYER_MTP);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_walk(&walk, archive.dir);
	cr_assert_str_eq(walk.problem, "");
	cr_assert_eq(walk.segments[0].head.layer_first, 4);
	cr_assert_eq(walk.segments[0].head.layer_end, 6);
	at = walk.entry_count - 5;
	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(walk.entries[at + i].head.kind, expected[i], "record %zu", i + 1);
		cr_assert_eq(walk.entries[at + i].head.step, 1);
		cr_assert_eq(walk.entries[at + i].head.type, R3RING_LAYER);
		cr_assert_eq(walk.entries[at + i].head.bytes,
			     expected[i] == ARCHIVE_SKIPPED ? 0 : 68);
	}
}

/* ---- segments ------------------------------------------------------------ */

/* What a segment says again of the first channel, by type in order. */
static size_t repeated_types(uint32_t segment, uint16_t *types, size_t most)
{
	size_t count = 0;

	for (size_t i = 0; i < walk.entry_count && count < most; i++) {
		const struct walked_entry *entry = &walk.entries[i];

		if (entry->segment == segment && entry->head.channel == 0 &&
		    entry->head.kind == ARCHIVE_RECORD &&
		    entry->head.flags & ARCHIVE_ENTRY_REPEATED)
			types[count++] = entry->head.type;
	}
	return count;
}

Test(archive_writer, each_segment_says_again_what_still_holds)
{
	uint16_t types[8];

	archive.options.segment_bytes = 256 << 10;
	write_and_check(12000);
	cr_assert_gt(walk.segment_count, 3);
	for (uint32_t s = 1; s < walk.segment_count; s++) {
		size_t count = repeated_types(s, types, 8);
		struct r3ring_keyframe_record keyframe = {0};

		/* Of the first channel one request or none is live at any time. */
		cr_assert(count == 2 || count == 3, "%zu in segment %u", count, s);
		cr_assert_eq(types[0], R3RING_KEYFRAME);
		cr_assert_eq(types[1], R3RING_SCHEMA);
		cr_assert(count == 2 || types[2] == R3RING_REQUEST);
		for (size_t i = 0; i < walk.entry_count; i++) {
			if (walk.entries[i].segment == s &&
			    walk.entries[i].head.type == R3RING_KEYFRAME) {
				memcpy(&keyframe, walk.entries[i].payload, sizeof(keyframe));
				break;
			}
		}
		cr_assert_eq(keyframe.records, count - 1);
		cr_assert_eq(keyframe.live_requests, count - 2);
	}
	cr_assert_eq(archive_walk_kind(&walk, ARCHIVE_READY), walk.segment_count);
	cr_assert_eq(archive_walk_kind(&walk, ARCHIVE_RESUMED), 0);
}

Test(archive_writer, with_max_bytes_it_stops_whole_and_no_larger)
{
	struct archive_writer_stats stats;
	struct r3ring_error err = {0};
	int r = 0;

	archive.options.max_bytes = 2 << 20;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	for (unsigned int i = 0; r == 0; i++)
		r = archive_fixture_put(&archive, i % FIXTURE_CHANNELS);
	cr_assert_eq(r, -EDQUOT, "%d: %s", r, archive_writer_error(archive.writer));
	cr_assert_not_null(strstr(archive_writer_error(archive.writer), "as large as it may be"));
	cr_assert_eq(archive_writer_finish(archive.writer, &err), -EDQUOT);
	archive_writer_get_stats(archive.writer, &stats);
	archive_fixture_check(&archive, &walk);
	cr_assert_eq(archive_walk_records(&walk, "unit/0") +
			     archive_walk_records(&walk, "unit/1.draft"),
		     stats.stored_records);
	cr_assert_leq(walk.segments[0].bytes, 2 << 20);
	cr_assert_gt(walk.segments[0].bytes, 1 << 20);
	cr_assert(walk.blocks[walk.block_count - 1].head.flags & ARCHIVE_BLOCK_LAST);
}

Test(archive_writer, with_rotate_the_oldest_segments_go)
{
	struct archive_writer_stats stats;
	uint64_t bytes = 0;

	archive.options.max_bytes = 4 << 20;
	archive.options.rotate = true;
	archive.options.segment_bytes = 1 << 20;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	archive_fixture_fill(&archive, 20000);
	archive_writer_get_stats(archive.writer, &stats);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_fixture_check(&archive, &walk);
	cr_assert_gt(stats.removed_segments, 2);
	cr_assert_geq(walk.segments[0].head.number, stats.removed_segments + 1);
	for (size_t i = 0; i < walk.segment_count; i++)
		bytes += walk.segments[i].bytes;
	cr_assert_leq(bytes, 4 << 20);
}

/* Gives records until three segments are gone, or it fails. */
static void rotate(uint64_t max_bytes)
{
	struct archive_writer_stats stats = {0};
	uint64_t bytes = 0;

	archive.options.max_bytes = max_bytes;
	archive.options.rotate = true;
	archive.length = 500;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	while (stats.removed_segments < 3) {
		archive_fixture_fill(&archive, 100);
		archive_writer_get_stats(archive.writer, &stats);
	}
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_fixture_check(&archive, &walk);
	for (size_t i = 0; i < walk.segment_count; i++)
		bytes += walk.segments[i].bytes;
	cr_expect_leq(bytes, max_bytes);
	cr_expect_gt(bytes, max_bytes / 4, "%lu of %lu", bytes, max_bytes);
}

Test(archive_writer, an_archive_of_few_bytes_rotates_too)
{
	static const unsigned int kib[] = {128, 160, 200, 300, 512};

	for (size_t i = 0; i < sizeof(kib) / sizeof(kib[0]); i++) {
		rotate(kib[i] << 10);
		teardown();
		setup();
	}
}

Test(archive_writer, what_has_no_room_in_all_of_it_is_a_failure_that_names_more)
{
	static const uint8_t payload[300 << 10];
	const struct r3ring_view view = {
		.seq = 1, .type = 100, .len = sizeof(payload), .data = payload};
	struct r3ring_error err = {0};

	for (unsigned int rotates = 0; rotates < 2; rotates++) {
		archive.options.max_bytes = 128 << 10;
		archive.options.rotate = rotates;
		archive.options.level = 0;
		cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
		archive_writer_record(archive.writer, (uint16_t)archive.channel[0], &view);
		cr_expect_eq(archive_writer_finish(archive.writer, &err), -EMSGSIZE);
		cr_expect_not_null(strstr(err.text, "give a --max-size of at least"), "%s",
				   err.text);
		teardown();
		setup();
	}
}

/* Where a segment was to begin, too: the one before must not say that it did. */
/* As on a full disk. Criterion runs each test in a process of its own. */
Test(archive_writer, that_can_write_nothing_tells_how_much_the_archive_has_already)
{
	struct rlimit limit = {.rlim_cur = 64, .rlim_max = RLIM_INFINITY};
	struct archive_writer_stats before, stats;
	struct r3ring_error err = {0};

	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	archive_fixture_fill(&archive, 100);
	cr_assert_eq(archive_writer_finish(archive.writer, &err), 0, "%s", err.text);
	archive_writer_get_stats(archive.writer, &before);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	cr_assert_gt(before.archive_bytes, 0);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(archive_fixture_open(&archive, &err), 0, "%s", err.text);
	cr_assert_neq(archive_writer_finish(archive.writer, &err), 0);
	archive_writer_get_stats(archive.writer, &stats);
	cr_expect_eq(stats.archive_bytes, before.archive_bytes);
	cr_expect_eq(stats.segment, before.segment);
	cr_expect_eq(stats.archive_segments, before.archive_segments);
	archive_fixture_close(&archive);
}

Test(archive_writer, an_archive_that_ends_at_its_limit_says_that_nothing_follows)
{
	unsigned int begun = 0;

	for (uint64_t bytes = 192 << 10; bytes < 320 << 10; bytes += 4096) {
		archive.options.max_bytes = bytes;
		archive.options.segment_bytes = 64 << 10;
		archive.options.level = 0;
		archive.length = 500;
		cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
		while (archive_fixture_put(&archive, 0) == 0)
			;
		cr_assert_eq(archive_writer_finish(archive.writer, NULL), -EDQUOT);
		archive_fixture_check(&archive, &walk);
		for (size_t i = 0; i < walk.block_count; i++) {
			uint32_t flags = walk.blocks[i].head.flags;

			if (i + 1 == walk.block_count)
				cr_assert_eq(flags, ARCHIVE_BLOCK_LAST, "%lu", bytes);
			else if (flags & ARCHIVE_BLOCK_LAST)
				cr_assert(flags & ARCHIVE_BLOCK_MORE, "%lu", bytes);
		}
		begun += walk.segments[walk.segment_count - 1].bytes < 20 << 10;
		teardown();
		setup();
	}
	cr_assert_gt(begun, 0);
}
