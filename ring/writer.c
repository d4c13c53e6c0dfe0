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

#include "ring/gate.h"
#include "ring/internal.h"

#define CALLER_FLAGS (R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY | R3RING_DESC_REPEATED)

#define INTENT_STEP_MAX 16384u

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
	if (intent % R3RING_RECORD_ALIGN || intent < desc_end(&last) ||
	    intent - desc_end(&last) > segment->arena_bytes)
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
	/* Pairs with the acquire of tail_seq in window_find(). */
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
	return spec->len > r3ring_segment_max_record(writer->segment) ? -EMSGSIZE : 0;
}

/* From here on no reader accepts what the new record overwrites. */
static void announce(struct r3ring_writer *writer, uint64_t end)
{
	if (end > writer->intent) {
		writer->intent = ring_align(end, writer->intent_step);
		r3ring_store_relaxed_u64(&writer->segment->lines->intent_pos, writer->intent);
		R3RING_TEST_POINT("ring intent");
	}
	/* Pairs with the acquire fences in desc_copy(), view_intact() and overrun(). */
	r3ring_fence_release();
	writer->position = end;
	writer->next_seq++;
}

/* Words at a time: loads of what was just stored in pieces wait for the pieces. */
static void describe(struct r3ring_writer *writer, const struct r3ring_record_spec *spec,
		     uint64_t begin, struct r3ring_desc *desc)
{
	uint64_t flags = is_inline(spec->len) ? spec->flags | R3RING_DESC_INLINE : spec->flags;
	uint64_t len_type_flags = spec->len | (uint64_t)spec->type << 32 | flags << 48;

	writer->units += spec->units;
	desc->seq = writer->next_seq;
	desc->pos = begin;
	desc->step = spec->step;
	desc->units = writer->units;
	memcpy(&desc->len, &len_type_flags, sizeof(len_type_flags));
	memset(desc->inline_data, 0, sizeof(desc->inline_data));
	desc->check = 0;
}

#define DESC_WORDS (sizeof(struct r3ring_desc) / sizeof(uint64_t))

/* Everything but `seq` and, in the last word, the checksum @check. */
static void store_fields(struct r3ring_desc *shared, const struct r3ring_desc *desc, uint32_t check)
{
	uint64_t *to = (uint64_t *)(void *)shared;
	uint64_t words[DESC_WORDS];
	uint32_t tail;

	memcpy(words, desc, sizeof(words));
	for (size_t i = 1; i < DESC_WORDS - 1; i++)
		r3ring_store_relaxed_u64(&to[i], words[i]);
	memcpy(&tail, (const uint8_t *)desc + sizeof(*desc) - 8, sizeof(tail));
	r3ring_store_relaxed_u64(&to[DESC_WORDS - 1], tail | (uint64_t)check << 32);
}

static void publish(struct r3ring_writer *writer, struct r3ring_desc *shared,
		    const struct r3ring_desc *desc)
{
	struct r3ring_writer_lines *lines = writer->segment->lines;

	/* Pairs with the acquire in desc_copy(). */
	r3ring_store_release_u64(&shared->seq, desc->seq);
	R3RING_TEST_POINT("ring seq");
	if (desc->flags & R3RING_DESC_BOUNDARY)
		/* Relaxed: used up to the tail only, and who has that has the record. */
		r3ring_store_relaxed_u64(&lines->boundary_seq, desc->seq);
	writer->committed = desc_end(desc);
	r3ring_store_relaxed_u64(&lines->tail_pos, writer->committed);
	R3RING_TEST_POINT("ring tail position");
	/* Pairs with the acquire of tail_seq in window_find(). */
	r3ring_store_release_u64(&lines->tail_seq, desc->seq);
	R3RING_TEST_POINT("ring tail");
	writer->commit_seq = desc->seq + 1;
	writer->published_bytes += desc->len;
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
	const struct gate_front front = writer_front(writer);

	return writer->gate && !gate_admits(writer->gate, &front, writer->next_seq + 1, end);
}

int r3ring_writer_reserve(struct r3ring_writer *writer, const struct r3ring_record_spec *spec,
			  struct r3ring_slot *slot)
{
	struct r3ring_segment *segment = writer->segment;
	struct r3ring_desc *shared = ring_desc(segment, writer->next_seq);
	struct place place = choose_place(writer, spec->len);
	struct r3ring_desc desc;
	int rc = check_spec(writer, spec);

	if (rc)
		return rc;
	if (too_much_reserved(writer, place.end))
		return -ENOBUFS;
	if (gate_shut(writer, place.end))
		return -EAGAIN;
	describe(writer, spec, place.begin, &desc);
	announce(writer, place.end);
	store_fields(shared, &desc, 0);
	mark_next(writer);
	R3RING_TEST_POINT("ring reserved");
	/* The device's writes are ordered behind nothing of this thread's but what
	 * is visible already when its copy is enqueued. */
	r3ring_fence_full();
	slot->seq = desc.seq;
	slot->len = spec->len;
	slot->data = is_inline(spec->len)
			     ? shared->inline_data
			     : segment->arena + (place.begin & (segment->arena_bytes - 1));
	return 0;
}

int r3ring_writer_commit(struct r3ring_writer *writer, const struct r3ring_slot *slot)
{
	struct r3ring_desc *shared = ring_desc(writer->segment, writer->commit_seq);
	struct r3ring_desc desc;

	if (writer->commit_seq == writer->next_seq || slot->seq != writer->commit_seq)
		return -EINVAL;
	memcpy(&desc, shared, sizeof(desc));
	desc.seq = slot->seq;
	shared->check = desc_checksum(&desc);
	R3RING_TEST_POINT("ring checked");
	publish(writer, shared, &desc);
	return 0;
}

/* The next record is most likely as long as this one. Its lines lie with readers, or
 * nowhere near: they are asked for while this record is copied. */
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
	struct r3ring_desc desc;
	uint32_t check;
	int rc = check_spec(writer, spec);

	if (rc)
		return rc;
	if (writer->commit_seq != writer->next_seq)
		return -EBUSY;
	if (gate_shut(writer, place.end))
		return -EAGAIN;
	describe(writer, spec, place.begin, &desc);
	if (is_inline(spec->len) && spec->len)
		memcpy(desc.inline_data, payload, spec->len);
	check = desc_checksum(&desc);
	announce(writer, place.end);
	prefetch_next(writer, place.end, spec->len);
	if (!is_inline(spec->len))
		memcpy(segment->arena + (place.begin & (segment->arena_bytes - 1)), payload,
		       spec->len);
	R3RING_TEST_POINT("ring payload");
	store_fields(shared, &desc, check);
	R3RING_TEST_POINT("ring fields");
	publish(writer, shared, &desc);
	mark_next(writer);
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
