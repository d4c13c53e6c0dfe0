/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer. Publishing a record is, in this order,
 *
 *	intent_pos >= end of the record		relaxed
 *	fence
 *	payload and fields of the descriptor
 *	desc.seq = sequence			release
 *	tail					release
 *	desc.seq of the next slot = sequence	relaxed (the marker)
 *
 * A reader that saw any byte of the new record therefore finds, behind its
 * acquire fence, the new intent and the marker of the record before, and refuses
 * what it read.
 *
 * Both are stored ahead of need, since each store to a line that readers look at
 * takes it from them: the intent in steps of many small records, the marker while
 * no reader looks at its slot yet. A reader that keeps up then costs the writer
 * one line a record besides the payload.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "ring/descriptor.h"
#include "ring/gate.h"
#include "ring/internal.h"

#define CALLER_FLAGS                                                                               \
	(R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY | R3RING_DESC_REPEATED | R3RING_DESC_ABRIDGED)

#define INTENT_STEP_MAX 131072u

/* How much of the next record's place is asked for ahead. */
#define PREFETCH_BYTES 1024u

struct r3ring_writer {
	struct r3ring_segment *segment;
	uint64_t next_seq;   /* of the next reservation */
	uint64_t commit_seq; /* oldest that is reserved and not committed */
	uint64_t position;   /* behind the last reservation */
	uint64_t intent;     /* as stored: at or before it readers know of all writing */
	uint64_t intent_step;
	uint64_t committed; /* position behind the last committed record */
	uint64_t units;     /* running total, the last reservation included */
	uint64_t published_bytes;
	struct gate *gate; /* what lossless readers grant; NULL: overwrites as it goes */
	bool finished;
};

/* ---- opening and adopting ---------------------------------------------- */

/* The newest record up to the tail; false when it is not what the tail says. */
static bool copy_last(const struct r3ring_segment *segment, uint64_t tail, struct r3ring_desc *last)
{
	if (tail == segment->header.first_seq - 1) {
		*last = (struct r3ring_desc){.seq = tail, .flags = R3RING_DESC_INLINE};
		return true;
	}
	return tail >= segment->header.first_seq && tail < RING_NUMBER_LIMIT &&
	       desc_copy(segment, tail, last) == DESC_INTACT;
}

/* What the dead writer published but did not add to the tail any more; what
 * follows the publishing of a record is made up for here. */
static void walk_behind_tail(struct r3ring_writer *writer, struct r3ring_desc *last)
{
	struct r3ring_writer_lines *lines = writer->segment->lines;
	struct r3ring_desc desc;

	for (uint64_t steps = 0; steps < writer->segment->depth; steps++) {
		if (desc_copy(writer->segment, last->seq + 1, &desc) != DESC_INTACT)
			break;
		*last = desc;
		writer->published_bytes += desc.len;
		if (desc.flags & R3RING_DESC_BOUNDARY)
			r3ring_store_relaxed_u64(&lines->boundary_seq, desc.seq);
	}
}

/* Whether a writer can have come to @end and announced @intent; with room behind them. */
static bool is_end(const struct r3ring_segment *segment, uint64_t end, uint64_t intent)
{
	return end % R3RING_RECORD_ALIGN == 0 && intent % R3RING_RECORD_ALIGN == 0 &&
	       end < RING_NUMBER_LIMIT / 2 && intent >= end && intent - end <= segment->arena_bytes;
}

/* In a new segment there is nothing to find: it begins at first_seq. */
static int find_end(struct r3ring_writer *writer)
{
	struct r3ring_segment *segment = writer->segment;
	struct r3ring_writer_lines *lines = segment->lines;
	/* Pairs with the release in publish(). */
	uint64_t tail = r3ring_load_acquire_u64(&lines->tail_seq);
	uint64_t intent = r3ring_load_relaxed_u64(&lines->intent_pos);
	struct r3ring_desc last;

	if (r3ring_load_relaxed_u32(&lines->closed))
		return -EPIPE;
	if (!copy_last(segment, tail, &last))
		return -EBADMSG;
	writer->published_bytes = r3ring_load_relaxed_u64(&lines->published_bytes);
	walk_behind_tail(writer, &last);
	if (!is_end(segment, desc_end(&last), intent))
		return -EBADMSG;
	writer->units = last.units;
	writer->next_seq = last.seq + 1;
	writer->commit_seq = writer->next_seq;
	/* What the dead one was writing there nobody was shown, and the intent says no to
	 * all that it overwrote: to go on behind it would take more with every death. */
	writer->position = desc_end(&last);
	writer->committed = writer->position;
	writer->intent = intent;
	writer->intent_step = segment->arena_bytes / 64;
	if (writer->intent_step > INTENT_STEP_MAX)
		writer->intent_step = INTENT_STEP_MAX;
	return 0;
}

/* Kills what the slot of the next record holds. */
static void mark_next(const struct r3ring_writer *writer)
{
	/* Ordered by the fence of the announcement of what will be written there. */
	r3ring_store_relaxed_u64(&ring_desc(writer->segment, writer->next_seq)->seq,
				 writer->next_seq - 1);
}

static void announce_adoption(struct r3ring_writer *writer)
{
	struct r3ring_writer_lines *lines = writer->segment->lines;

	r3ring_store_relaxed_u64(&lines->published_records,
				 writer->next_seq - writer->segment->header.first_seq);
	r3ring_store_relaxed_u64(&lines->published_bytes, writer->published_bytes);
	/* Pairs with the acquire in tail_newest(). */
	r3ring_store_release_u64(&lines->tail_seq, writer->next_seq - 1);
	R3RING_TEST_POINT("ring adopted");
	r3ring_fetch_add_u64(&lines->writer_epoch, 1);
	r3ring_writer_wake(writer);
}

int r3ring_writer_open(struct r3ring_writer **writer, struct r3ring_segment *segment)
{
	struct r3ring_writer *opened;
	int rc;

	if (!segment->writable)
		return -EINVAL;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->segment = segment;
	rc = find_end(opened);
	if (rc) {
		free(opened);
		return rc;
	}
	mark_next(opened);
	if (segment->adopted)
		announce_adoption(opened);
	*writer = opened;
	return 0;
}

void r3ring_writer_close(struct r3ring_writer *writer)
{
	free(writer);
}

/* ---- publishing -------------------------------------------------------- */

/* Where a record goes: its first byte and the position behind it. */
struct place {
	uint64_t begin;
	uint64_t end;
};

static bool is_inline(uint32_t len)
{
	return len <= R3RING_INLINE_MAX;
}

/* A record never wraps: what is left at the arena's end is skipped. */
static struct place choose_place(const struct r3ring_writer *writer, uint32_t len)
{
	uint64_t arena = writer->segment->arena_bytes;
	struct place place = {writer->position, writer->position};
	uint64_t left = arena - (place.begin & (arena - 1));

	if (is_inline(len))
		return place;
	if (len > left)
		place.begin += left;
	place.end = place.begin + ring_align(len, R3RING_RECORD_ALIGN);
	return place;
}

static int check_spec(const struct r3ring_writer *writer, const struct r3ring_record_spec *spec)
{
	if (writer->finished)
		return -EPIPE;
	if (writer->next_seq >= RING_NUMBER_LIMIT)
		return -EOVERFLOW;
	if (spec->flags & ~CALLER_FLAGS)
		return -EINVAL;
	return spec->len > ring_max_record(writer->segment) ? -EMSGSIZE : 0;
}

/* From here on no reader accepts what the new record overwrites. */
static RING_HOT void announce(struct r3ring_writer *writer, uint64_t end)
{
	if (end > writer->intent) {
		writer->intent = ring_align(end, writer->intent_step);
		r3ring_store_relaxed_u64(&writer->segment->lines->intent_pos, writer->intent);
		R3RING_TEST_POINT("ring intent");
	}
	/* Pairs with the acquire fences in desc_load(), view_intact() and overrun(). */
	r3ring_fence_release();
	writer->position = end;
	writer->next_seq++;
}

static RING_HOT void describe(struct r3ring_writer *writer, const struct r3ring_record_spec *spec,
			      uint64_t begin, uint64_t words[DESC_WORDS])
{
	uint64_t flags = is_inline(spec->len) ? spec->flags | R3RING_DESC_INLINE : spec->flags;

	writer->units += spec->units;
	words[DESC_SEQ] = writer->next_seq;
	words[DESC_POS] = begin;
	words[DESC_STEP] = spec->step;
	words[DESC_UNITS] = writer->units;
	words[DESC_SHAPE] = desc_shape(spec->len, spec->type, flags);
	words[DESC_INLINE0] = 0;
	words[DESC_INLINE1] = 0;
	words[DESC_LAST] = 0;
}

static void describe_inline(const void *payload, uint32_t len, uint64_t words[DESC_WORDS])
{
	uint64_t data[DESC_WORDS - DESC_INLINE0] = {0};

	if (len)
		memcpy(data, payload, len);
	words[DESC_INLINE0] = data[0];
	words[DESC_INLINE1] = data[1];
	words[DESC_LAST] = data[2];
}

/* The oldest record reserved; @shape is that word of it, @end the arena position behind. */
static RING_HOT void publish(struct r3ring_writer *writer, struct r3ring_desc *shared,
			     uint64_t shape, uint64_t end)
{
	struct r3ring_writer_lines *lines = writer->segment->lines;
	uint64_t seq = writer->commit_seq++;

	/* Pairs with the acquire in desc_load(). */
	r3ring_store_release_u64(&shared->seq, seq);
	R3RING_TEST_POINT("ring seq");
	if (desc_shape_flags(shape) & R3RING_DESC_BOUNDARY)
		/* Relaxed: used up to the tail only, and who has that has the record. */
		r3ring_store_relaxed_u64(&lines->boundary_seq, seq);
	writer->committed = end;
	r3ring_store_relaxed_u64(&lines->tail_pos, end);
	R3RING_TEST_POINT("ring tail position");
	/* Pairs with the acquire in tail_newest(). */
	r3ring_store_release_u64(&lines->tail_seq, seq);
	R3RING_TEST_POINT("ring tail");
	writer->published_bytes += desc_shape_len(shape);
	r3ring_store_relaxed_u64(&lines->published_bytes, writer->published_bytes);
	r3ring_store_relaxed_u64(&lines->published_records,
				 writer->commit_seq - writer->segment->header.first_seq);
	R3RING_TEST_POINT("ring counts");
}

static bool too_much_reserved(const struct r3ring_writer *writer, uint64_t end)
{
	uint64_t open = writer->next_seq - writer->commit_seq;

	return open >= writer->segment->depth / 2 ||
	       (open && end - writer->committed > writer->segment->arena_bytes / 2);
}

static bool gate_shut(const struct r3ring_writer *writer, uint64_t end)
{
	struct gate_front front;

	if (!writer->gate)
		return false;
	front = writer_front(writer);
	return !gate_admits(writer->gate, &front, writer->next_seq + 1, end);
}

int r3ring_writer_reserve(struct r3ring_writer *writer, const struct r3ring_record_spec *spec,
			  struct r3ring_slot *slot)
{
	struct r3ring_segment *segment = writer->segment;
	struct r3ring_desc *shared = ring_desc(segment, writer->next_seq);
	struct place place = choose_place(writer, spec->len);
	uint64_t words[DESC_WORDS];
	int rc = check_spec(writer, spec);

	if (rc)
		return rc;
	if (too_much_reserved(writer, place.end))
		return -ENOBUFS;
	if (gate_shut(writer, place.end))
		return -EAGAIN;
	describe(writer, spec, place.begin, words);
	announce(writer, place.end);
	desc_store_fields(shared, words);
	mark_next(writer);
	R3RING_TEST_POINT("ring reserved");
	/* The device's writes are ordered behind nothing of this thread's but what
	 * is visible already when its copy is enqueued. */
	r3ring_fence_full();
	slot->seq = words[DESC_SEQ];
	slot->len = spec->len;
	slot->data = is_inline(spec->len)
			     ? shared->inline_data
			     : segment->arena + (place.begin & (segment->arena_bytes - 1));
	return 0;
}

int r3ring_writer_commit(struct r3ring_writer *writer, const struct r3ring_slot *slot)
{
	struct r3ring_desc *shared = ring_desc(writer->segment, writer->commit_seq);
	uint64_t words[DESC_WORDS];

	if (writer->commit_seq == writer->next_seq || slot->seq != writer->commit_seq)
		return -EINVAL;
	memcpy(words, shared, sizeof(words));
	words[DESC_SEQ] = slot->seq;
	shared->check = desc_words_checksum(words);
	R3RING_TEST_POINT("ring checked");
	publish(writer, shared, words[DESC_SHAPE], desc_words_end(words));
	return 0;
}

/* The next record is most likely as long as this one. Its lines lie with readers, or
 * nowhere near: they are asked for as soon as this record is out, and it does not wait for them. */
static void prefetch_next(const struct r3ring_writer *writer, uint64_t end, uint32_t len)
{
	const struct r3ring_segment *segment = writer->segment;
	uint32_t bytes = is_inline(len) ? 0 : len < PREFETCH_BYTES ? len : PREFETCH_BYTES;

	r3ring_prefetch_write(ring_desc(segment, writer->next_seq + 1));
	for (uint32_t offset = 0; offset < bytes; offset += R3RING_RECORD_ALIGN)
		r3ring_prefetch_write(segment->arena +
				      ((end + offset) & (segment->arena_bytes - 1)));
}

int r3ring_writer_put(struct r3ring_writer *writer, const struct r3ring_record_spec *spec,
		      const void *payload)
{
	struct r3ring_segment *segment = writer->segment;
	struct r3ring_desc *shared = ring_desc(segment, writer->next_seq);
	struct place place = choose_place(writer, spec->len);
	uint64_t words[DESC_WORDS];
	int rc = check_spec(writer, spec);

	if (rc)
		return rc;
	if (writer->commit_seq != writer->next_seq)
		return -EBUSY;
	if (gate_shut(writer, place.end))
		return -EAGAIN;
	describe(writer, spec, place.begin, words);
	if (is_inline(spec->len))
		describe_inline(payload, spec->len, words);
	words[DESC_LAST] |= (uint64_t)desc_words_checksum(words) << 32;
	announce(writer, place.end);
	if (!is_inline(spec->len))
		memcpy(segment->arena + (place.begin & (segment->arena_bytes - 1)), payload,
		       spec->len);
	R3RING_TEST_POINT("ring payload");
	desc_store_fields(shared, words);
	R3RING_TEST_POINT("ring fields");
	publish(writer, shared, words[DESC_SHAPE], place.end);
	mark_next(writer);
	prefetch_next(writer, place.end, spec->len);
	R3RING_TEST_POINT("ring marker");
	return 0;
}

/* ---- words beside the records ------------------------------------------ */

/* Without a gate nobody can say that it sleeps: one system call a batch. */
void r3ring_writer_wake(struct r3ring_writer *writer)
{
	uint32_t *wake = &writer->segment->lines->wake;

	if (writer->gate) {
		gate_wake(writer->gate, wake);
		return;
	}
	/* Pairs with the acquire of `wake` in r3ring_cursor_wait(). */
	r3ring_fetch_add_u32(wake, 1);
	R3RING_TEST_POINT("ring wake");
	syscall(SYS_futex, wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void r3ring_writer_set_keyframe(struct r3ring_writer *writer, uint64_t seq)
{
	/* Relaxed, as boundary_seq is in publish(). */
	r3ring_store_relaxed_u64(&writer->segment->lines->keyframe_seq, seq);
	R3RING_TEST_POINT("ring keyframe");
}

void r3ring_writer_heartbeat(struct r3ring_writer *writer, uint64_t now_ns)
{
	r3ring_store_relaxed_u64(&writer->segment->lines->heartbeat_ns, now_ns);
}

void r3ring_writer_finish(struct r3ring_writer *writer)
{
	writer->finished = true;
	/* Pairs with the acquire of `closed` in r3ring_cursor_next(). */
	r3ring_store_release_u32(&writer->segment->lines->closed, 1);
	R3RING_TEST_POINT("ring closed");
	r3ring_writer_wake(writer);
}

uint64_t r3ring_writer_next_seq(const struct r3ring_writer *writer)
{
	return writer->next_seq;
}

uint64_t r3ring_writer_position(const struct r3ring_writer *writer)
{
	return writer->position;
}

uint64_t r3ring_writer_bytes(const struct r3ring_writer *writer)
{
	return writer->published_bytes;
}

void writer_set_gate(struct r3ring_writer *writer, struct gate *gate)
{
	writer->gate = gate;
}

struct gate_front writer_front(const struct r3ring_writer *writer)
{
	return (struct gate_front){writer->commit_seq, writer->next_seq, writer->position};
}
