/* SPDX-License-Identifier: Apache-2.0 */
/* Keyframes: what a reader that comes late, or was lapped, has to know. */
#include <stdlib.h>

#include "capture_daemon/publish.h"

struct keyframe_room {
	uint64_t bytes;
	uint64_t records;
};

bool keyframe_due(const struct publisher *publisher)
{
	return publisher->keyframe_owed ||
	       r3ring_writer_position(publisher->writer) - publisher->keyframe_position >=
		       publisher->arena_bytes / KEYFRAME_SHARE ||
	       r3ring_writer_next_seq(publisher->writer) - publisher->keyframe_seq >=
		       publisher->depth / KEYFRAME_SHARE;
}

/* How many payloads of a table, from its end (newest first), fit the room. */
static uint32_t fitting(struct live_payload *table, struct keyframe_room *room)
{
	struct live_payload *last = table ? ELMT_FROM_HH(table->hh.tbl, table->hh.tbl->tail) : NULL;
	uint32_t count = 0;

	for (struct live_payload *p = last; p; p = p->hh.prev) {
		uint64_t bytes = (p->len + R3RING_RECORD_ALIGN - 1) & ~(R3RING_RECORD_ALIGN - 1ull);

		if (bytes > room->bytes || room->records == 0)
			break;
		room->bytes -= bytes;
		room->records--;
		count++;
	}
	return count;
}

/* Says the last @count payloads of a table again, oldest first. */
static int repeat(struct publisher *publisher, struct live_payload *table, uint32_t count,
		  uint16_t type)
{
	uint32_t passed = HASH_COUNT(table) - count;
	int r = 0;

	for (struct live_payload *p = table; r == 0 && p; p = p->hh.next) {
		struct r3ring_record_spec spec = {
			.len = (uint32_t)p->len,
			.type = type,
			.flags = R3RING_DESC_REPEATED,
		};

		if (passed)
			passed--;
		else
			r = publisher_put(publisher, &spec, p->bytes);
	}
	return r;
}

int publish_keyframe(struct publisher *publisher)
{
	struct keyframe_room room = {publisher->arena_bytes / KEYFRAME_SHARE,
				     publisher->depth / KEYFRAME_SHARE};
	struct live *live = &publisher->live;
	uint32_t maps = fitting(live->maps, &room);
	uint32_t requests = fitting(live->requests, &room);
	struct r3ring_record record = {.type = R3RING_KEYFRAME};
	uint64_t seq = r3ring_writer_next_seq(publisher->writer);
	uint16_t flags = R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY;
	int r;

	publisher->left_out = HASH_COUNT(live->requests) - requests;
	if (publisher->left_out || live->lacks)
		flags |= R3RING_DESC_ABRIDGED;
	record.u.keyframe.step = publisher->newest_step;
	record.u.keyframe.records = 1 + maps + requests;
	record.u.keyframe.live_requests = requests;
	record.u.keyframe.totals = publisher->totals;
	r = publish_record(publisher, &record, flags);
	if (r == 0)
		r = publish_schema(publisher, R3RING_DESC_REPEATED);
	if (r == 0)
		r = repeat(publisher, live->maps, maps, R3RING_EPLB);
	if (r == 0)
		r = repeat(publisher, live->requests, requests, R3RING_REQUEST);
	if (r < 0)
		return r;
	r3ring_writer_set_keyframe(publisher->writer, seq);
	publisher->keyframe_owed = false;
	publisher->keyframe_position = r3ring_writer_position(publisher->writer);
	publisher->keyframe_seq = r3ring_writer_next_seq(publisher->writer);
	return 0;
}
