/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/archive_tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/archive_story.h"

/* Where a channel is. */
struct tally_channel {
	const char *name;
	uint64_t generation, seq;
};

#define CHANNELS 16u

static void check_layer(struct archive_tally *tally, const struct archive_item *item)
{
	struct r3ring_record record;
	const struct r3ring_layer_record *head = &record.u.layer.head;

	if (r3ring_record_decode(&record, item->view.type, item->view.data, item->view.len, NULL)) {
		tally->wrong++;
		return;
	}
	tally->layers++;
	tally->layer_rows += head->rows;
	for (uint32_t row = 0; row < head->rows; row++)
		for (uint32_t k = 0; k < head->top_k; k++)
			tally->wrong += record.u.layer.ids[row * head->top_k + k] !=
					story_id(item->view.generation, head->step, head->row + row,
						 head->layer_index, k);
}

static struct tally_channel *channel_of(struct tally_channel *channels, const char *name)
{
	struct tally_channel *channel = channels;

	while (channel->name && strcmp(channel->name, name) != 0)
		channel++;
	channel->name = name;
	return channel;
}

/* A sequence behind the one before, in a generation that is none of before. */
static void check_order(struct archive_tally *tally, struct tally_channel *channel,
			const struct archive_item *item)
{
	if (item->view.generation != channel->generation)
		channel->seq = 0;
	tally->wrong += item->view.generation < channel->generation;
	tally->wrong += item->view.seq <= channel->seq;
	channel->generation = item->view.generation;
	channel->seq = item->view.seq;
}

static void take(struct archive_tally *tally, struct tally_channel *channels,
		 const struct archive_item *item)
{
	if (item->repeated) {
		tally->repeated++;
		return;
	}
	tally->items++;
	if (item->kind == ARCHIVE_GAP) {
		tally->gaps++;
		tally->lost += item->u.gap.lost;
		tally->gaps_unsized += !item->u.gap.lost;
	}
	if (item->kind != ARCHIVE_RECORD)
		return;
	tally->records++;
	check_order(tally, channel_of(channels, item->name), item);
	if (item->view.type == R3RING_LAYER)
		check_layer(tally, item);
}

void archive_tally_read(struct archive_tally *tally, struct archive_reader *reader)
{
	struct tally_channel channels[CHANNELS] = {0};
	struct r3ring_error err = {0};
	struct archive_item item;
	int code;

	do {
		code = archive_reader_next(reader, &item, &err);
		if (code == 1)
			take(tally, channels, &item);
		if (code < 0 && !tally->text[0])
			snprintf(tally->text, sizeof(tally->text), "%s", err.text);
		tally->damaged += code == -EBADMSG;
	} while (code == 1 || code == -EBADMSG);
	tally->code = code;
}

struct archive_tally archive_tally(const char *dir)
{
	struct archive_tally tally = {0};
	struct archive_reader *reader;
	struct r3ring_error err = {0};

	tally.opened = archive_reader_open(&reader, dir, &err);
	snprintf(tally.text, sizeof(tally.text), "%s", err.text);
	if (tally.opened)
		return tally;
	tally.text[0] = '\0';
	archive_tally_read(&tally, reader);
	archive_reader_close(reader);
	return tally;
}
