/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: one record after the other in place, and exact accounts of what was
 * not read. Every path that moves the cursor enters what it passed over in one
 * of got, lost and skipped.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "ring/cursor.h"
#include "ring/descriptor.h"

/* How far a reader that is behind asks ahead: for descriptors, and for bytes of the
 * next payload; behind those the processor has seen where the reading goes. */
#define PREFETCH_RECORDS 4u
#define PREFETCH_BYTES 1024u

/* A reader that got so many records without waiting has caught up with a writer that is
 * at work, and looks away for so long. One at its heels takes from it each line that it
 * is about to write, and costs both more than the time. */
#define STREAM_RECORDS 4u
#define LOOK_AWAY_NS 4000u

/* ---- accounts ---------------------------------------------------------- */

/* Each gap by itself, though it begin where the last one ended: it is told by itself. */
static void note_gap(struct r3ring_cursor_stats *stats, uint64_t from, uint64_t to)
{
	stats->gap_from = from;
	stats->gap_to = to;
}

/* Moves the cursor to @to; what is in front of it was lost. @total: running
 * total of units in front of @to. */
static void lose_until(struct r3ring_cursor *cursor, uint64_t to, uint64_t total)
{
	struct r3ring_cursor_stats *stats = &cursor->stats;

	if (to == stats->cursor)
		return;
	note_gap(stats, stats->cursor, to - 1);
	stats->lost += to - stats->cursor;
	stats->cursor = to;
	if (cursor->total_known)
		stats->lost_units += total - cursor->total;
	cursor->total = total;
	cursor->total_known = true;
}

static void skip_until(struct r3ring_cursor *cursor, uint64_t to, uint64_t total)
{
	struct r3ring_cursor_stats *stats = &cursor->stats;

	stats->skipped += to - stats->cursor;
	stats->cursor = to;
	if (cursor->total_known)
		stats->skipped_units += total - cursor->total;
	cursor->total = total;
	cursor->total_known = true;
}

/* Records up to @to whose units nobody can know. */
static int lose_unknown(struct r3ring_cursor *cursor, uint64_t to)
{
	struct r3ring_cursor_stats *stats = &cursor->stats;

	note_gap(stats, stats->cursor, to - 1);
	stats->lost += to - stats->cursor;
	stats->cursor = to;
	cursor->total_known = false;
	return -EBADMSG;
}

static int lose_corrupt(struct r3ring_cursor *cursor)
{
	return lose_unknown(cursor, cursor->stats.cursor + 1);
}

/* The next record up to the tail whose slot is not empty; behind the tail when there is none.
 * Where each slot of the ring is empty there is no more to come either. */
static uint64_t next_there(const struct r3ring_cursor *cursor, uint64_t tail)
{
	const struct r3ring_segment *segment = cursor->segment;
	const uint64_t first = cursor->stats.cursor + 1;

	for (uint64_t seq = first; seq <= tail && seq - first < segment->depth; seq++)
		/* Pairs with the release of `seq` in the writer's publish. */
		if (r3ring_load_acquire_u64(&ring_desc(segment, seq)->seq) >= seq)
			return seq;
	return tail + 1;
}

/*
 * The writer lies: its intent cannot be, or a slot is ahead of the newest record. What is shown
 * to be there is lost at once; beyond that there is no more than a ring may hold.
 */
static int lose_lies(struct r3ring_cursor *cursor)
{
	const struct r3ring_segment *segment = cursor->segment;
	const uint64_t at = cursor->stats.cursor, tail = tail_newest(segment);

	if (tail >= at)
		return lose_unknown(cursor, tail + 1);
	if (at - tail <= segment->depth)
		return lose_corrupt(cursor);
	return -EPIPE; /* who lies has ended, closed or not */
}

/*
 * What a tail claims behind an empty slot at the cursor is lost, if a writer can have come so far:
 * else somebody wrote over the word. That is told once, and takes no record: who is at work stores
 * it again with the next one.
 */
static int lose_claimed(struct r3ring_cursor *cursor, uint64_t tail, bool closed)
{
	const struct r3ring_segment *segment = cursor->segment;

	if (tail_is_shown(segment, tail) || tail - cursor->stats.cursor < segment->depth)
		return lose_unknown(cursor, next_there(cursor, tail));
	if (cursor->told_tail == tail)
		return closed ? -EPIPE : 0;
	cursor->told_tail = tail;
	return -EBADMSG;
}

/* ---- where to go on ---------------------------------------------------- */

static int overrun(struct r3ring_cursor *cursor)
{
	const struct r3ring_segment *segment = cursor->segment;
	/* Pairs with the release of `closed` in r3ring_writer_finish(): nothing changes any more. */
	const bool closed = r3ring_load_acquire_u32(&segment->lines->closed);
	uint64_t seq, total;
	struct window window;
	int rc = -EAGAIN;

	/* Pairs with the writer's fence in announce(): the tail found now is not older
	 * than the record that is lost, else the writer would seem to lie. */
	r3ring_fence_acquire();
	for (int tries = 0; tries < RESUME_TRIES; tries++) {
		rc = window_find(segment, cursor->stats.cursor + 1, &window);
		if (rc == -EBADMSG || (!rc && window.tail < cursor->stats.cursor))
			return lose_lies(cursor);
		if (rc)
			continue;
		if (cursor->mode == R3RING_LATEST) {
			if (!window_newest_boundary(segment, &window, &seq, &total))
				continue;
			lose_until(cursor, window.oldest, window.units_before);
			skip_until(cursor, seq, total);
			return -EOVERFLOW;
		}
		if (window_safe_resume(segment, &window, &seq, &total)) {
			lose_until(cursor, seq, total);
			return -EOVERFLOW;
		}
	}
	if (rc && closed)
		return lose_lies(cursor);
	if (rc)
		return 0; /* overtaken each time: nothing was moved, the next call tries again */
	lose_until(cursor, window.oldest, window.units_before);
	return -EOVERFLOW;
}

/* ---- next, check, read ------------------------------------------------- */

static bool slot_empty(const struct r3ring_cursor *cursor)
{
	/* Pairs with the release of `seq` in the writer's publish. */
	return r3ring_load_acquire_u64(&ring_desc(cursor->segment, cursor->stats.cursor)->seq) <
	       cursor->stats.cursor;
}

/* The next payload most likely lies behind the last one: asks for its first line
 * while the descriptor is still on its way. */
static void prefetch_expected(const struct r3ring_cursor *cursor)
{
	const struct r3ring_segment *segment = cursor->segment;

	r3ring_prefetch_read(segment->arena +
			     (desc_end(&cursor->desc) & (segment->arena_bytes - 1)));
}

/* Asks for the next record while the one at hand is used. Only where it is published:
 * lines that the writer is writing would be taken from it. */
static void prefetch_next(const struct r3ring_cursor *cursor)
{
	const struct r3ring_segment *segment = cursor->segment;
	uint64_t next = cursor->desc.seq + 1, begin = desc_end(&cursor->desc);
	uint64_t bytes = cursor->desc.len < PREFETCH_BYTES ? cursor->desc.len : PREFETCH_BYTES;

	r3ring_prefetch_read(ring_desc(segment, cursor->desc.seq + PREFETCH_RECORDS));
	if (r3ring_load_relaxed_u64(&ring_desc(segment, next)->seq) != next)
		return;
	for (uint64_t offset = 0; offset < bytes; offset += R3RING_RECORD_ALIGN)
		r3ring_prefetch_read(segment->arena +
				     ((begin + offset) & (segment->arena_bytes - 1)));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void look_away(void)
{
	uint64_t begun = now_ns();

	while (now_ns() - begun < LOOK_AWAY_NS)
		r3ring_cpu_relax();
}

void cursor_doubt(struct r3ring_cursor *cursor)
{
	cursor->empty_looks = RING_EMPTY_LOOKS;
}

/* Nothing at the cursor: not yet, never more, or the slot lies. */
static int nothing_new(struct r3ring_cursor *cursor)
{
	/* Pairs with the release of `closed` in r3ring_writer_finish(). */
	bool closed = r3ring_load_acquire_u32(&cursor->segment->lines->closed);
	uint64_t tail;

	if (cursor->streak >= STREAM_RECORDS)
		look_away();
	cursor->streak = 0;
	prefetch_expected(cursor);
	if (!closed && ++cursor->empty_looks < RING_EMPTY_LOOKS)
		return 0;
	cursor->empty_looks = 0;
	/* A record was there before `closed` and before the tail that covers it. */
	/* Pairs with the release of tail_seq in the writer's publish. */
	tail = r3ring_load_acquire_u64(&cursor->segment->lines->tail_seq);
	if (tail >= cursor->stats.cursor && slot_empty(cursor))
		return lose_claimed(cursor, tail, closed);
	return closed && slot_empty(cursor) ? -EPIPE : 0;
}

static void fill_view(const struct r3ring_cursor *cursor, const uint64_t words[DESC_WORDS],
		      struct r3ring_view *view)
{
	view->seq = words[DESC_SEQ];
	view->step = words[DESC_STEP];
	view->units = words[DESC_UNITS];
	view->generation = cursor->segment->header.generation;
	view->len = desc_shape_len(words[DESC_SHAPE]);
	view->type = desc_shape_type(words[DESC_SHAPE]);
	view->flags = desc_shape_flags(words[DESC_SHAPE]);
}

static const void *payload_of(const struct r3ring_cursor *cursor, const uint64_t words[DESC_WORDS])
{
	if (desc_shape_flags(words[DESC_SHAPE]) & R3RING_DESC_INLINE)
		return cursor->desc.inline_data;
	return cursor->segment->arena + (words[DESC_POS] & (cursor->segment->arena_bytes - 1));
}

/* Whether the payload of the record is still what the writer put there. An inline
 * payload is a private copy and cannot change. */
static inline bool view_intact(const struct r3ring_cursor *cursor, uint64_t pos, uint64_t flags)
{
	if (flags & R3RING_DESC_INLINE)
		return true;
	/* Pairs with the writer's fence behind the intent. The slot may be another's by
	 * now: its descriptor was copied and checked before. */
	r3ring_fence_acquire();
	return desc_payload_kept(cursor->segment, pos);
}

/* Enters the open view, which these words describe, in the accounts. */
static RING_HOT int check(struct r3ring_cursor *cursor, uint64_t seq, uint64_t pos, uint64_t units,
			  uint64_t flags)
{
	cursor->view_open = false;
	if (!view_intact(cursor, pos, flags)) {
		lose_until(cursor, seq + 1, units);
		return -EOVERFLOW;
	}
	cursor->stats.got++;
	cursor->stats.cursor++;
	cursor->total = units;
	cursor->total_known = true;
	return 0;
}

int r3ring_cursor_check(struct r3ring_cursor *cursor)
{
	const struct r3ring_desc *desc = &cursor->desc;

	if (!cursor->view_open)
		return -EINVAL;
	return check(cursor, desc->seq, desc->pos, desc->units, desc->flags);
}

/* Opens a view of the record at the cursor and leaves its words; 1, or as
 * r3ring_cursor_next(). */
static RING_HOT int find_next(struct r3ring_cursor *cursor, uint64_t words[DESC_WORDS])
{
	int rc = cursor->view_open ? r3ring_cursor_check(cursor) : 0;

	if (rc)
		return rc;
	switch (desc_load(cursor->segment, cursor->stats.cursor, words)) {
	case DESC_NOT_YET:
		return nothing_new(cursor);
	case DESC_OVERRUN:
		return overrun(cursor);
	case DESC_CORRUPT:
		return lose_corrupt(cursor);
	case DESC_INTACT:
		break;
	}
	cursor->desc.seq = words[DESC_SEQ];
	desc_store_fields(&cursor->desc, words);
	cursor->empty_looks = 0;
	if (cursor->total_known && words[DESC_UNITS] < cursor->total)
		return lose_corrupt(cursor);
	if (!view_intact(cursor, words[DESC_POS], desc_shape_flags(words[DESC_SHAPE])))
		return overrun(cursor);
	cursor->view_open = true;
	if (cursor->streak++)
		prefetch_next(cursor);
	return 1;
}

int r3ring_cursor_next(struct r3ring_cursor *cursor, struct r3ring_view *view)
{
	uint64_t words[DESC_WORDS] = {0};
	int rc = find_next(cursor, words);

	if (rc == 1) {
		fill_view(cursor, words, view);
		view->data = payload_of(cursor, words);
	}
	return rc;
}

int r3ring_cursor_read(struct r3ring_cursor *cursor, struct r3ring_view *view, void *buffer,
		       size_t capacity)
{
	uint64_t words[DESC_WORDS] = {0};
	int rc = find_next(cursor, words);
	uint32_t len = desc_shape_len(words[DESC_SHAPE]);

	if (rc != 1)
		return rc;
	if (len > capacity) {
		cursor->view_open = false;
		fill_view(cursor, words, view);
		view->data = NULL;
		return -EMSGSIZE;
	}
	if (len)
		memcpy(buffer, payload_of(cursor, words), len);
	rc = check(cursor, words[DESC_SEQ], words[DESC_POS], words[DESC_UNITS],
		   desc_shape_flags(words[DESC_SHAPE]));
	if (rc)
		return rc;
	fill_view(cursor, words, view);
	view->data = buffer;
	return 1;
}

void r3ring_cursor_skip(struct r3ring_cursor *cursor)
{
	uint64_t seq, total;
	struct window window;

	if (cursor->view_open)
		r3ring_cursor_check(cursor);
	for (int tries = 0; tries < RESUME_TRIES; tries++) {
		if (window_find(cursor->segment, cursor->stats.cursor, &window) ||
		    !window_newest_boundary(cursor->segment, &window, &seq, &total))
			continue;
		if (seq > cursor->stats.cursor)
			skip_until(cursor, seq, total);
		return;
	}
}

/* ---- waiting ----------------------------------------------------------- */

static bool something_to_tell(const struct r3ring_cursor *cursor)
{
	/* Pairs with the release of `closed` in r3ring_writer_finish(). */
	return cursor->view_open || !slot_empty(cursor) ||
	       r3ring_load_acquire_u32(&cursor->segment->lines->closed);
}

int r3ring_cursor_wait(const struct r3ring_cursor *cursor, uint64_t timeout_ns)
{
	const uint32_t *wake = &cursor->segment->lines->wake;
	/* Pairs with the addition in r3ring_writer_wake(): what was published before
	 * it is seen below, what comes later changes the word. */
	uint32_t before = r3ring_load_acquire_u32(wake);
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	if (something_to_tell(cursor))
		return 1;
	syscall(SYS_futex, wake, FUTEX_WAIT, before, &timeout, NULL, 0);
	return something_to_tell(cursor);
}

void r3ring_cursor_get_stats(const struct r3ring_cursor *cursor, struct r3ring_cursor_stats *stats)
{
	*stats = cursor->stats;
}
