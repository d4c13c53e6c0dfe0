/* SPDX-License-Identifier: Apache-2.0 */
/* Entries into blocks. */
#include <errno.h>
#include <string.h>

#include "archive/block.h"
#include "archive/entry.h"
#include "archive/writer_internal.h"
#include "channel/clock.h"

#define ENTRY_ALIGN 8u

uint64_t writer_entry_span(uint64_t payload)
{
	return sizeof(struct archive_entry) + archive_align(payload, ENTRY_ALIGN);
}

uint8_t *writer_place(const struct block *block)
{
	uint8_t *memory = block->large ? block->large : block->raw;

	return memory + sizeof(struct archive_block_head) + block->head.raw;
}

void writer_hand_on(struct archive_writer *writer, bool last)
{
	struct block *block = writer->block;

	/* What a segment says again does not end it, else it would never get on. */
	if (!writer->repeating &&
	    blocks_segment_bytes(&writer->blocks) >= writer->options.segment_bytes)
		last = true;
	writer->segment_over = last;
	writer->block = NULL;
	blocks_give(&writer->blocks, block);
}

static bool takes(const struct block *block, uint64_t span, bool state)
{
	return block->head.raw + span <= block->capacity &&
	       (block->has_state == state || !block->head.entries);
}

static int take_block(struct archive_writer *writer, uint64_t span)
{
	struct block *block = blocks_take(&writer->blocks);
	int r = block_enlarge(block, span);

	if (r < 0)
		return r;
	writer->block = block;
	writer->since_ns = clock_coarse_ns();
	return 0;
}

static int begin_segment(struct archive_writer *writer)
{
	int r = take_block(writer, 0);

	if (r < 0)
		return r;
	writer->segment_over = false;
	writer->block->begins_segment = true;
	writer->repeating = true;
	r = writer_repeat(writer);
	writer->repeating = false;
	return r;
}

static int make_room(struct archive_writer *writer, uint64_t span, bool state)
{
	int r = 0;

	if (writer->block && !takes(writer->block, span, state))
		writer_hand_on(writer, false);
	if (!writer->block && writer->segment_over)
		r = begin_segment(writer);
	if (r == 0 && writer->block && !takes(writer->block, span, state))
		writer_hand_on(writer, false);
	if (r == 0 && !writer->block)
		r = take_block(writer, span);
	return r;
}

struct block *writer_block(struct archive_writer *writer, uint64_t payload, bool state, int *code)
{
	*code = store_failed(&writer->store);
	if (*code == 0 && payload > ARCHIVE_RECORD_MAX)
		*code = -EMSGSIZE;
	if (*code == 0)
		*code = make_room(writer, writer_entry_span(payload), state);
	return *code ? NULL : writer->block;
}

static bool is_counted(const struct archive_entry *head)
{
	return (head->kind == ARCHIVE_RECORD || head->kind == ARCHIVE_SKIPPED) &&
	       !(head->flags & ARCHIVE_ENTRY_REPEATED);
}

int writer_append(struct archive_writer *writer, const struct entry_spec *spec)
{
	const struct archive_entry *head = &spec->head;
	size_t span = writer_entry_span(head->bytes);
	struct block *block;
	uint8_t *place;
	int code;

	block = writer_block(writer, head->bytes, archive_entry_is_state(head), &code);
	if (!block)
		return code;
	place = writer_place(block);
	memcpy(place, head, sizeof(*head));
	place += sizeof(*head);
	if (head->bytes && spec->payload != place)
		memcpy(place, spec->payload, head->bytes);
	memset(place + head->bytes, 0, span - sizeof(*head) - head->bytes);
	block->head.raw += (uint32_t)span;
	block->head.entries++;
	block->has_state |= archive_entry_is_state(head);
	if (is_counted(head)) {
		block->head.own++;
		writer->records++;
	}
	return 0;
}

int archive_writer_poll(struct archive_writer *writer)
{
	uint64_t limit = writer->options.sync_ms * 1000000ull;

	if (writer->block && writer->block->head.entries &&
	    clock_coarse_ns() - writer->since_ns >= limit)
		writer_hand_on(writer, false);
	return store_failed(&writer->store);
}
