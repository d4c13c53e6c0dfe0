/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that died between any two of its stores: what it had published stays,
 * nothing half written appears, and its successor goes on without a seam.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/internal.h"
#include "tests/unit/ring_fixture.h"

#define DEPTH 64u
#define ARENA 65536u
#define PUBLISHED 100u
#define LEN 700u
#define STRIDE 704u

static struct ring_fixture ring;
static struct r3ring_cursor *cursor;

static void setup(void)
{
	ring_fixture_open(&ring, DEPTH, ARENA);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	for (uint64_t seq = 1; seq <= PUBLISHED; seq++) {
		ring_fixture_put(&ring, LEN, 1, 0);
		ring_fixture_expect(cursor, seq, LEN);
	}
}

static void teardown(void)
{
	r3ring_cursor_close(cursor);
	ring_fixture_close(&ring);
}

TestSuite(ring_adopt, .init = setup, .fini = teardown);

static struct r3ring_writer_lines *lines(void)
{
	return ring.segment->lines;
}

/* The successor's records follow those up to @last without a gap, in units too, and
 * in the arena; the intent stays. */
static void expect_seamless(uint64_t last)
{
	uint64_t intent = ring.seen->lines->intent_pos;
	uint64_t end = desc_end(ring_desc(ring.segment, last));
	struct r3ring_view view;

	ring_fixture_kill_writer(&ring);
	ring_fixture_adopt(&ring);
	cr_assert_eq(r3ring_writer_next_seq(ring.writer), last + 1);
	cr_assert_eq(ring.seen->lines->intent_pos, intent);
	cr_assert_eq(r3ring_writer_position(ring.writer), end);
	cr_assert_eq(r3ring_segment_tail(ring.seen), last);
	for (uint64_t seq = PUBLISHED + 1; seq <= last; seq++)
		ring_fixture_expect(cursor, seq, LEN);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	cr_assert_eq(ring_fixture_put(&ring, LEN, 1, 0), last + 1);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert(ring_fixture_matches(&view, last + 1, LEN));
	cr_assert_eq(view.units, last + 1);
	cr_assert_geq(ring.seen->lines->intent_pos, intent, "it went back");
	cr_assert_eq(r3ring_cursor_check(cursor), 0);
	cr_assert_eq(ring_fixture_account(cursor).got, last + 1);
	cr_assert_eq(ring.seen->lines->published_records, last + 1);
}

static struct r3ring_slot reserve(void)
{
	struct r3ring_record_spec spec = {.len = LEN, .units = 1, .flags = R3RING_DESC_BOUNDARY};
	struct r3ring_slot slot;

	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), 0);
	return slot;
}

static void commit(const struct r3ring_slot *slot)
{
	for (uint32_t i = 0; i < slot->len; i++)
		((uint8_t *)slot->data)[i] = ring_fixture_byte(slot->seq, i);
	cr_assert_eq(r3ring_writer_commit(ring.writer, slot), 0);
}

Test(ring_adopt, death_between_two_records)
{
	expect_seamless(PUBLISHED);
}

Test(ring_adopt, death_behind_the_store_of_intent)
{
	lines()->intent_pos += STRIDE;
	expect_seamless(PUBLISHED);
}

Test(ring_adopt, death_before_the_marker_of_the_next_slot)
{
	ring_desc(ring.segment, PUBLISHED + 1)->seq = PUBLISHED + 1 - DEPTH;
	expect_seamless(PUBLISHED);
}

Test(ring_adopt, death_in_the_middle_of_the_payload)
{
	struct r3ring_slot slot = reserve();

	memset(slot.data, 0xab, LEN / 2);
	expect_seamless(PUBLISHED);
}

Test(ring_adopt, death_with_several_records_in_flight)
{
	reserve();
	reserve();
	reserve();
	expect_seamless(PUBLISHED);
}

Test(ring_adopt, death_with_one_of_several_published)
{
	struct r3ring_slot first = reserve();

	reserve();
	reserve();
	commit(&first);
	expect_seamless(PUBLISHED + 1);
}

Test(ring_adopt, death_behind_the_descriptors_sequence)
{
	struct r3ring_writer_lines before = *lines();
	struct r3ring_slot slot = reserve();

	commit(&slot);
	lines()->boundary_seq = before.boundary_seq;
	lines()->tail_pos = before.tail_pos;
	lines()->tail_seq = before.tail_seq;
	lines()->published_bytes = before.published_bytes;
	lines()->published_records = before.published_records;
	expect_seamless(PUBLISHED + 1);
	cr_assert_eq(ring.seen->lines->boundary_seq, PUBLISHED + 1);
	cr_assert_eq(ring.seen->lines->published_bytes, (PUBLISHED + 2) * LEN);
}

Test(ring_adopt, death_behind_the_boundary)
{
	struct r3ring_writer_lines before = *lines();
	struct r3ring_slot slot = reserve();

	commit(&slot);
	lines()->tail_pos = before.tail_pos;
	lines()->tail_seq = before.tail_seq;
	lines()->published_records = before.published_records;
	expect_seamless(PUBLISHED + 1);
}

Test(ring_adopt, death_behind_the_tail)
{
	struct r3ring_writer_lines before = *lines();
	struct r3ring_slot slot = reserve();

	commit(&slot);
	lines()->published_records = before.published_records;
	expect_seamless(PUBLISHED + 1);
}

Test(ring_adopt, death_before_the_first_record)
{
	struct ring_fixture empty = {0};

	ring_fixture_open(&empty, DEPTH, ARENA);
	ring_fixture_kill_writer(&empty);
	ring_fixture_adopt(&empty);
	cr_assert_eq(ring_fixture_put(&empty, LEN, 1, 0), 1);
	ring_fixture_close(&empty);
}

Test(ring_adopt, successors_that_die_before_they_publish_take_nothing_from_readers)
{
	uint64_t oldest, intent;

	reserve();
	ring_fixture_kill_writer(&ring);
	ring_fixture_adopt(&ring);
	oldest = r3ring_segment_oldest(ring.seen);
	intent = lines()->intent_pos;
	for (int i = 0; i < 500; i++) { /* in all more than the arena */
		reserve();
		ring_fixture_kill_writer(&ring);
		ring_fixture_adopt(&ring);
	}
	cr_assert_eq(lines()->intent_pos, intent);
	cr_assert_eq(r3ring_segment_oldest(ring.seen), oldest);
	expect_seamless(PUBLISHED);
}

Test(ring_adopt, a_successor_raises_epoch_and_wake)
{
	uint64_t epoch = lines()->writer_epoch;
	uint32_t wake = lines()->wake;

	ring_fixture_kill_writer(&ring);
	ring_fixture_adopt(&ring);
	cr_assert_eq(lines()->writer_epoch, epoch + 1);
	cr_assert_eq(lines()->wake, wake + 1);
}

Test(ring_adopt, what_a_dead_writer_reserved_is_never_shown)
{
	struct r3ring_slot slot = reserve();
	struct r3ring_view view;

	memset(slot.data, 0xab, LEN);
	ring_fixture_kill_writer(&ring);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	ring_fixture_adopt(&ring);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
}

Test(ring_adopt, a_living_writer_is_not_robbed)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_adopt(&segment, ring.name, &err), -EBUSY);
	cr_assert_not_null(strstr(err.text, ring.name), "%s", err.text);
	cr_assert_null(segment);
}

Test(ring_adopt, a_finished_ring_takes_no_successor)
{
	struct r3ring_writer *writer = NULL;

	r3ring_writer_finish(ring.writer);
	ring_fixture_kill_writer(&ring);
	cr_assert_eq(r3ring_segment_adopt(&ring.segment, ring.name, NULL), 0);
	cr_assert_eq(r3ring_writer_open(&writer, ring.segment), -EPIPE);
	cr_assert_null(writer);
}

Test(ring_adopt, a_corrupt_header_is_not_adopted)
{
	struct r3ring_segment *segment = NULL;

	((struct r3ring_segment_header *)(void *)ring.segment->base)->abi_major++;
	ring_fixture_kill_writer(&ring);
	cr_assert_eq(r3ring_segment_adopt(&segment, ring.name, NULL), -EPROTO);
	cr_assert_null(segment);
}

static void expect_not_continued(void)
{
	struct r3ring_writer *writer = NULL;

	ring_fixture_kill_writer(&ring);
	cr_assert_eq(r3ring_segment_adopt(&ring.segment, ring.name, NULL), 0);
	cr_assert_eq(r3ring_writer_open(&writer, ring.segment), -EBADMSG);
	cr_assert_null(writer);
}

Test(ring_adopt, a_tail_that_cannot_be_is_not_continued)
{
	lines()->tail_seq = ~0ull;
	expect_not_continued();
}

Test(ring_adopt, an_intent_that_cannot_be_is_not_continued)
{
	lines()->intent_pos = ~0ull;
	expect_not_continued();
}

Test(ring_adopt, an_intent_before_the_tail_is_not_continued)
{
	lines()->intent_pos = 64;
	expect_not_continued();
}

Test(ring_adopt, a_corrupt_last_record_is_not_continued)
{
	ring_desc(ring.segment, PUBLISHED)->units++;
	expect_not_continued();
}

/* An inline record takes no bytes, but lies where the next one will begin. */
Test(ring_adopt, a_last_record_between_two_lines_is_not_continued)
{
	struct r3ring_desc *last = ring_desc(ring.segment, ring_fixture_put(&ring, 8, 1, 0));

	last->pos -= 1;
	last->check = desc_checksum(last);
	expect_not_continued();
}

Test(ring_adopt, a_position_without_room_behind_it_is_not_continued)
{
	struct r3ring_desc *last = ring_desc(ring.segment, ring_fixture_put(&ring, 8, 1, 0));

	last->pos = RING_NUMBER_LIMIT - R3RING_RECORD_ALIGN;
	last->check = desc_checksum(last);
	lines()->intent_pos = last->pos;
	expect_not_continued();
}

/* ---- dead processes ------------------------------------------------------ */

static pid_t spawn_writer(void)
{
	pid_t parent = getpid(), pid = fork();
	struct r3ring_record_spec spec = {.len = 300, .units = 1};
	uint8_t payload[300] = {0};

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The child holds the lock alone once its parent has let go. */
	while (getppid() == parent)
		if (r3ring_writer_put(ring.writer, &spec, payload))
			break;
	_exit(0);
}

Test(ring_adopt, failure_38_a_writer_killed_at_full_speed_holds_nobody_up, .timeout = 20)
{
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;
	uint64_t tail;
	int status, rc;
	pid_t pid;

	for (int round = 0; round < 10; round++) {
		tail = r3ring_segment_tail(ring.seen);
		pid = spawn_writer();
		cr_assert_gt(pid, 0);
		ring_fixture_kill_writer(&ring); /* closes this process's share of the lock */
		while (r3ring_segment_tail(ring.seen) < tail + 500)
			r3ring_cursor_next(cursor, &view);
		cr_assert_eq(kill(pid, SIGKILL), 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		while ((rc = r3ring_cursor_next(cursor, &view)))
			cr_assert(rc == 1 || rc == -EOVERFLOW, "%d", rc);
		ring_fixture_adopt(&ring);
		tail = r3ring_segment_tail(ring.seen);
		stats = ring_fixture_account(cursor);
		cr_assert_eq(stats.cursor, tail + 1);
		cr_assert_eq(ring_fixture_put(&ring, LEN, 1, 0), tail + 1);
		ring_fixture_expect(cursor, tail + 1, LEN);
		cr_assert_eq(ring_fixture_account(cursor).lost, stats.lost);
	}
}
