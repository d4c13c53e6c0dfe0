/* SPDX-License-Identifier: Apache-2.0 */
/* What the beginning of a segment says again. */
#include <string.h>

#include <r3ring/record.h>

#include "archive/writer_internal.h"

/* A channel's, whose records are numbered from 0 on. */
struct repeated {
	struct archive_writer *writer;
	uint16_t channel;
	uint64_t seq;
};

static int say(struct archive_writer *writer, uint16_t kind, uint16_t channel, const void *payload,
	       size_t bytes)
{
	return writer_append(writer, &(struct entry_spec){
					     .head = {.kind = kind,
						      .flags = ARCHIVE_ENTRY_REPEATED,
						      .channel = channel,
						      .bytes = (uint32_t)bytes},
					     .payload = payload,
				     });
}

static int say_record(struct repeated *repeated, uint16_t type, uint16_t flags, const void *payload,
		      size_t bytes)
{
	return writer_append(repeated->writer,
			     &(struct entry_spec){
				     .head = {.kind = ARCHIVE_RECORD,
					      .type = type,
					      .flags = flags | ARCHIVE_ENTRY_REPEATED,
					      .channel = repeated->channel,
					      .bytes = (uint32_t)bytes,
					      .seq = repeated->seq++},
				     .payload = payload,
			     });
}

static int say_table(struct repeated *repeated, uint16_t type, const struct live_payload *table)
{
	int r = 0;

	for (const struct live_payload *p = table; r == 0 && p; p = p->hh.next)
		r = say_record(repeated, type, R3RING_DESC_REPEATED, p->bytes, p->len);
	return r;
}

static int say_keyframe(struct repeated *repeated, const struct channel_state *state)
{
	struct r3ring_keyframe_record keyframe = state->keyframe;
	uint16_t flags = R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY;

	if (state->live.lacks)
		flags |= R3RING_DESC_ABRIDGED;
	keyframe.live_requests = HASH_COUNT(state->live.requests);
	keyframe.records = 1 + HASH_COUNT(state->live.maps) + keyframe.live_requests;
	return say_record(repeated, R3RING_KEYFRAME, flags, &keyframe, sizeof(keyframe));
}

/* Where it is not known what is live, nothing says that this is all. */
static int say_state(struct repeated *repeated, const struct channel_state *state)
{
	int r = 0;

	if (!state->schema)
		return 0;
	if (state->whole)
		r = say_keyframe(repeated, state);
	if (r == 0)
		r = say_record(repeated, R3RING_SCHEMA, R3RING_DESC_REPEATED, state->schema,
			       state->schema_bytes);
	if (r == 0)
		r = say_table(repeated, R3RING_EPLB, state->live.maps);
	if (r == 0)
		r = say_table(repeated, R3RING_REQUEST, state->live.requests);
	return r;
}

static int repeat_channel(struct archive_writer *writer, uint32_t index)
{
	const struct channel_state *state = &writer->states.channels[index];
	struct repeated repeated = {.writer = writer, .channel = (uint16_t)index};
	int r = say(writer, ARCHIVE_CHANNEL, repeated.channel, state->name, strlen(state->name));

	if (r < 0 || !state->begun)
		return r;
	r = say(writer, ARCHIVE_GENERATION, repeated.channel, &state->generation,
		sizeof(state->generation));
	return r < 0 ? r : say_state(&repeated, state);
}

int writer_repeat(struct archive_writer *writer)
{
	int r = 0;

	if (writer->resuming)
		r = writer_append(writer, &(struct entry_spec){
						  .head = {.kind = ARCHIVE_RESUMED,
							   .bytes = sizeof(struct archive_resumed)},
						  .payload = &writer->resumption.record,
					  });
	writer->resuming = false;
	for (uint32_t i = 0; r == 0 && i < writer->states.count; i++)
		r = repeat_channel(writer, i);
	if (r == 0)
		r = writer_append(writer, &(struct entry_spec){.head.kind = ARCHIVE_READY});
	return r;
}

/* ---- its size ----------------------------------------------------------- */

static uint64_t table_bytes(const struct live_payload *table)
{
	uint64_t bytes = 0;

	for (const struct live_payload *p = table; p; p = p->hh.next)
		bytes += writer_entry_span(p->len);
	return bytes;
}

static uint64_t channel_bytes(const struct channel_state *state)
{
	uint64_t bytes = writer_entry_span(strlen(state->name)) +
			 writer_entry_span(sizeof(state->generation));

	if (!state->schema)
		return bytes;
	return bytes + writer_entry_span(sizeof(state->keyframe)) +
	       writer_entry_span(state->schema_bytes) + table_bytes(state->live.maps) +
	       table_bytes(state->live.requests);
}

uint64_t writer_repeat_bytes(const struct archive_writer *writer)
{
	uint64_t bytes = writer_entry_span(sizeof(struct archive_resumed)) + writer_entry_span(0);

	for (uint32_t i = 0; i < writer->states.count; i++)
		bytes += channel_bytes(&writer->states.channels[i]);
	return bytes + (bytes / ARCHIVE_BLOCK_BYTES + 1) * 2 * sizeof(struct archive_block_head);
}
