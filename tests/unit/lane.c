/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: wrapping, padding, being full, order over both, and hostile words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "channel/lane.h"

#define BYTES 4096u

struct lane_pair {
	_Alignas(64) uint8_t memory[BYTES];
	struct lane_head head;
	uint64_t tail;
	struct lane_writer writer;
	struct lane_reader reader;
};

static void pair_init(struct lane_pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	lane_writer_init(&pair->writer, pair->memory, BYTES, &pair->head, &pair->tail);
	cr_assert_eq(lane_reader_init(&pair->reader, pair->memory, BYTES, &pair->head, &pair->tail),
		     0);
}

static bool put_after(struct lane_pair *pair, uint32_t bytes, uint8_t fill, uint64_t after)
{
	struct lane_entry *entry = lane_reserve(&pair->writer, bytes);

	if (!entry)
		return false;
	memset(entry + 1, fill, bytes);
	entry->after = after;
	lane_submit(&pair->writer);
	return true;
}

static bool put(struct lane_pair *pair, uint32_t bytes, uint8_t fill)
{
	return put_after(pair, bytes, fill, 0);
}

/* Takes one entry and checks its whole payload. */
static void take(struct lane_pair *pair, uint32_t bytes, uint8_t fill)
{
	struct lane_entry entry;
	int error = 0;
	const uint8_t *payload = lane_peek(&pair->reader, &entry, &error);

	cr_assert_eq(error, 0);
	cr_assert_not_null(payload);
	cr_assert_eq(entry.payload_bytes, bytes);
	cr_assert_geq(payload, pair->memory);
	cr_assert_leq(payload + bytes, pair->memory + BYTES);
	for (uint32_t i = 0; i < bytes; i++)
		cr_assert_eq(payload[i], fill);
	lane_consume(&pair->reader, &entry);
}

static void assert_corrupt(struct lane_pair *pair)
{
	struct lane_entry entry;
	int error = 0;

	cr_assert_null(lane_peek(&pair->reader, &entry, &error));
	cr_assert_eq(error, -EBADMSG);
}

static void assert_empty(struct lane_pair *pair)
{
	struct lane_entry entry;
	int error = 0;

	cr_assert_null(lane_peek(&pair->reader, &entry, &error));
	cr_assert_eq(error, 0);
}

Test(lane, entries_of_all_sizes_survive_many_wraps)
{
	struct lane_pair pair;

	pair_init(&pair);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t bytes = i * 37 % (uint32_t)(lane_largest(BYTES) + 1);

		cr_assert(put(&pair, bytes, (uint8_t)i), "entry %u of %u bytes", i, bytes);
		take(&pair, bytes, (uint8_t)i);
	}
	assert_empty(&pair);
}

Test(lane, an_entry_is_never_split_at_the_wrap)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 1500, 1));
	cr_assert(put(&pair, 1500, 2));
	take(&pair, 1500, 1);
	cr_assert(put(&pair, 1200, 3));
	take(&pair, 1500, 2);
	take(&pair, 1200, 3);
	cr_assert_eq(pair.reader.position % BYTES, 1280u, "it begins at the lane's start");
}

Test(lane, a_full_lane_takes_nothing_until_an_entry_was_consumed)
{
	struct lane_pair pair;
	uint32_t count = 0;

	pair_init(&pair);
	while (put(&pair, 64, (uint8_t)count))
		count++;
	cr_assert_eq(count, BYTES / 128);
	take(&pair, 64, 0);
	cr_assert(put(&pair, 64, 99));
	cr_assert_not(put(&pair, 64, 100));
}

Test(lane, padding_needs_room_of_its_own)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 64 * 30, 1));
	cr_assert(put(&pair, 64 * 29, 2));
	take(&pair, 64 * 30, 1);
	/* 192 bytes are left before the wrap, 31 * 64 behind it. */
	cr_assert_not(put(&pair, 64 * 31, 3));
	cr_assert(put(&pair, 64 * 30, 3));
	take(&pair, 64 * 29, 2);
	take(&pair, 64 * 30, 3);
}

Test(lane, the_largest_payload_fits_and_one_byte_more_never_does)
{
	struct lane_pair pair;

	pair_init(&pair);
	for (int i = 0; i < 5; i++) {
		cr_assert_not(put(&pair, (uint32_t)lane_largest(BYTES) + 1, 1));
		cr_assert(put(&pair, (uint32_t)lane_largest(BYTES), 2));
		take(&pair, (uint32_t)lane_largest(BYTES), 2);
	}
}

Test(lane, a_reservation_without_submit_is_started_over)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert_not_null(lane_reserve(&pair.writer, 300));
	assert_empty(&pair);
	cr_assert(put(&pair, 10, 7));
	take(&pair, 10, 7);
	assert_empty(&pair);
}

Test(lane, a_tail_that_goes_back_or_ahead_gives_no_room)
{
	struct lane_pair pair;
	const uint64_t hostile[] = {BYTES + 64, UINT64_MAX, UINT64_MAX - 63, 1u << 30, 65};

	pair_init(&pair);
	while (put(&pair, 64, 1))
		;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		pair.tail = hostile[i];
		cr_assert_not(put(&pair, 64, 1), "tail %llu", (unsigned long long)hostile[i]);
	}
	pair.tail = 128;
	cr_assert(put(&pair, 64, 1));
	pair.tail = 0;
	cr_assert_not(put(&pair, 64, 1));
}

Test(lane, a_head_beyond_the_lane_is_corrupt)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 64, 1));
	pair.head.position = BYTES + 64;
	assert_corrupt(&pair);
	pair.head.position = 100;
	assert_corrupt(&pair);
}

Test(lane, a_head_that_goes_back_is_corrupt)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 64, 1));
	take(&pair, 64, 1);
	pair.head.position = 0;
	assert_corrupt(&pair);
}

static void assert_refused(void (*spoil)(struct lane_entry *entry))
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 100, 1));
	spoil((struct lane_entry *)pair.memory);
	assert_corrupt(&pair);
}

static void no_bytes(struct lane_entry *entry)
{
	entry->bytes = 0;
}
static void odd_bytes(struct lane_entry *entry)
{
	entry->bytes += 8;
}
static void more_than_submitted(struct lane_entry *entry)
{
	entry->bytes += 64;
	entry->payload_bytes += 64;
}
static void payload_beyond_entry(struct lane_entry *entry)
{
	entry->payload_bytes = UINT32_MAX;
}
static void unknown_type(struct lane_entry *entry)
{
	entry->type = 9;
}
static void zero_number(struct lane_entry *entry)
{
	entry->number = 0;
}
static void pad_before_wrap(struct lane_entry *entry)
{
	entry->type = LANE_PAD;
}
static void short_step(struct lane_entry *entry)
{
	entry->type = LANE_STEP;
	entry->payload_bytes = sizeof(struct lane_step) - 1;
	entry->bytes = 128;
}

Test(lane, an_entry_without_length_is_corrupt)
{
	assert_refused(no_bytes);
}

Test(lane, an_entry_of_odd_length_is_corrupt)
{
	assert_refused(odd_bytes);
}

Test(lane, an_entry_longer_than_what_was_submitted_is_corrupt)
{
	assert_refused(more_than_submitted);
}

Test(lane, a_payload_longer_than_its_entry_is_corrupt)
{
	assert_refused(payload_beyond_entry);
}

Test(lane, an_unknown_entry_type_is_corrupt)
{
	assert_refused(unknown_type);
}

Test(lane, padding_that_does_not_reach_the_wrap_is_corrupt)
{
	assert_refused(pad_before_wrap);
}

Test(lane, a_step_too_short_for_its_head_is_corrupt)
{
	assert_refused(short_step);
}

Test(lane, an_entry_number_that_jumps_is_corrupt)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 100, 1));
	take(&pair, 100, 1);
	cr_assert(put(&pair, 100, 1));
	((struct lane_entry *)(pair.memory + 192))->number = 3;
	assert_corrupt(&pair);
}

Test(lane, the_first_entry_s_number_is_not_zero)
{
	assert_refused(zero_number);
}

Test(lane, a_second_daemon_goes_on_where_the_first_stopped)
{
	struct lane_pair pair;

	pair_init(&pair);
	for (uint8_t i = 1; i <= 3; i++)
		cr_assert(put(&pair, 80, i));
	take(&pair, 80, 1);
	cr_assert_eq(lane_reader_init(&pair.reader, pair.memory, BYTES, &pair.head, &pair.tail), 0);
	cr_assert_eq(pair.reader.taken, 1);
	take(&pair, 80, 2);
	take(&pair, 80, 3);
	assert_empty(&pair);
}

Test(lane, an_empty_lane_s_count_comes_from_its_head)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 80, 1));
	take(&pair, 80, 1);
	cr_assert_eq(lane_reader_init(&pair.reader, pair.memory, BYTES, &pair.head, &pair.tail), 0);
	cr_assert_eq(pair.reader.taken, 1);
}

Test(lane, a_daemon_that_comes_between_the_two_stores_of_a_submit_loses_nothing)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 80, 1));
	pair.head.number = 0;
	cr_assert_eq(lane_reader_init(&pair.reader, pair.memory, BYTES, &pair.head, &pair.tail), 0);
	take(&pair, 80, 1);
	cr_assert_eq(pair.reader.taken, 1);
}

/* Else what comes behind it would be taken for out of order. */
Test(lane, the_count_of_an_entry_that_is_taken_before_it_counts_is_read_again)
{
	struct lane_pair pair;

	pair_init(&pair);
	cr_assert(put(&pair, 80, 1));
	take(&pair, 80, 1);
	pair.head.number = 0;
	cr_assert_eq(lane_reader_init(&pair.reader, pair.memory, BYTES, &pair.head, &pair.tail), 0);
	assert_empty(&pair);
	pair.head.number = 1;
	assert_empty(&pair);
	cr_assert_eq(pair.reader.taken, 1);
}

Test(lane, a_tail_that_contradicts_the_head_is_refused)
{
	struct lane_pair pair;
	const uint64_t hostile[] = {64, 3, UINT64_MAX - 63};

	pair_init(&pair);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		pair.tail = hostile[i];
		pair.head.position = 0;
		if (hostile[i] == UINT64_MAX - 63)
			pair.head.position = 2 * BYTES;
		cr_assert_eq(
			lane_reader_init(&pair.reader, pair.memory, BYTES, &pair.head, &pair.tail),
			-EBADMSG);
	}
}

/* ---- order over both lanes -------------------------------------------- */

static uint8_t take_next(struct lane_pair *step, struct lane_pair *side)
{
	struct lane_reader *from;
	struct lane_entry entry;
	int error = 0;
	const uint8_t *payload =
		lane_next(&step->reader, &side->reader, false, &from, &entry, &error);
	uint8_t value;

	cr_assert_eq(error, 0);
	cr_assert_not_null(payload);
	value = *payload;
	lane_consume(from, &entry);
	return value;
}

Test(lane, both_lanes_merge_in_the_order_of_submission)
{
	struct lane_pair lanes[2];
	const uint8_t order[] = {1, 1, 0, 0, 1, 0, 1, 1, 1, 0};

	pair_init(&lanes[0]);
	pair_init(&lanes[1]);
	for (uint8_t i = 0; i < sizeof(order); i++)
		cr_assert(put_after(&lanes[order[i]], 1, i, lane_number(&lanes[!order[i]].writer)));
	for (uint8_t i = 0; i < sizeof(order); i++)
		cr_assert_eq(take_next(&lanes[0], &lanes[1]), i);
}

Test(lane, a_step_waits_for_what_was_announced_before_it)
{
	struct lane_pair step, side;
	struct lane_reader *from = NULL;
	struct lane_entry entry;
	int error = 0;

	pair_init(&step);
	pair_init(&side);
	cr_assert(put_after(&step, 1, 7, 1));
	cr_assert_null(lane_next(&step.reader, &side.reader, false, &from, &entry, &error));
	cr_assert_eq(error, 0);
	cr_assert_eq(from, &step.reader, "who waits is told");
	cr_assert(put_after(&side, 1, 8, 0));
	cr_assert_eq(take_next(&step, &side), 8);
	cr_assert_eq(take_next(&step, &side), 7);
}

Test(lane, a_step_waits_no_longer_when_nothing_can_come)
{
	struct lane_pair step, side;
	struct lane_reader *from = NULL;
	struct lane_entry entry;
	int error = 0;

	pair_init(&step);
	pair_init(&side);
	cr_assert(put_after(&step, 1, 7, 1));
	cr_assert_not_null(lane_next(&step.reader, &side.reader, true, &from, &entry, &error));
	cr_assert_eq(from, &step.reader);
	cr_assert_eq(error, 0);
}

Test(lane, an_announcement_after_a_step_that_never_came_is_corrupt)
{
	struct lane_pair step, side;
	struct lane_reader *from;
	struct lane_entry entry;
	int error = 0;

	pair_init(&step);
	pair_init(&side);
	cr_assert(put_after(&side, 1, 1, 1));
	cr_assert_null(lane_next(&step.reader, &side.reader, false, &from, &entry, &error));
	cr_assert_eq(error, -EBADMSG);
}

Test(lane, lanes_that_wait_for_each_other_are_corrupt)
{
	struct lane_pair step, side;
	struct lane_reader *from;
	struct lane_entry entry;
	int error = 0;

	pair_init(&step);
	pair_init(&side);
	cr_assert(put_after(&step, 1, 1, 1));
	cr_assert(put_after(&side, 1, 1, 1));
	cr_assert_null(lane_next(&step.reader, &side.reader, false, &from, &entry, &error));
	cr_assert_eq(error, -EBADMSG);
}

Test(lane, positions_and_numbers_outgrow_32_bits)
{
	const uint64_t position = (1ull << 32) - BYTES, number = UINT32_MAX - 10;
	struct lane_pair pair;

	pair_init(&pair);
	pair.head = (struct lane_head){.position = position, .number = number};
	pair.tail = position;
	lane_writer_init(&pair.writer, pair.memory, BYTES, &pair.head, &pair.tail);
	pair.writer.position = position;
	pair.writer.seen_tail = position;
	pair.writer.number = number;
	cr_assert_eq(lane_reader_init(&pair.reader, pair.memory, BYTES, &pair.head, &pair.tail), 0);
	for (uint32_t i = 0; i < 200; i++) {
		cr_assert(put(&pair, i % 100, (uint8_t)i));
		take(&pair, i % 100, (uint8_t)i);
	}
	cr_expect_eq(lane_number(&pair.writer), number + 200);
	cr_expect_gt(pair.tail, 1ull << 32);
}
