/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: from entries of a block to items. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <r3ring/record.h>

#include "archive/entry.h"
#include "archive/reader_internal.h"

#define PASS_OVER 2

static int refuse(const struct archive_reader *reader, struct r3ring_error *err, const char *what)
{
	return archive_refuse(err, -EBADMSG, reader->segment.number, reader->segment.start,
			      "block %" PRIu64 ", entry %u: %s", reader->segment.block.number,
			      reader->entry, what);
}

static void fill_in(const struct archive_reader *reader, const struct archive_entry *entry,
		    const struct archive_channel *channel, struct archive_item *item)
{
	*item = (struct archive_item){
		.kind = entry->kind,
		.repeated = (entry->flags & ARCHIVE_ENTRY_REPEATED) != 0,
		.time_ns = reader->segment.block.time_ns,
		.place = {reader->segment.number, reader->segment.start, reader->entry},
	};
	if (!channel)
		return;
	item->channel = channel->number;
	item->name = channel->name;
	item->view.generation = channel->generation;
}

static void fill_in_view(const struct archive_entry *entry, const void *payload,
			 struct r3ring_view *view)
{
	view->seq = entry->seq;
	view->step = entry->step;
	view->units = entry->units;
	view->data = payload;
	view->len = entry->bytes;
	view->type = entry->type;
	view->flags = (uint16_t)(entry->flags & ~ARCHIVE_ENTRY_REPEATED);
	if (entry->flags & ARCHIVE_ENTRY_REPEATED)
		view->flags |= R3RING_DESC_REPEATED;
}

/* ---- what was lost behind damage --------------------------------------- */

/* What the channel had in front of this segment begins behind what was read of it. */
static void owe_gap(struct archive_reader *reader, const struct archive_channel *channel,
		    const struct archive_generation *said, const struct archive_item *generation)
{
	struct archive_item item = *generation;
	bool same = channel->said_in && channel->generation == said->generation &&
		    memcmp(channel->uuid, said->uuid, sizeof(said->uuid)) == 0 &&
		    channel->seq <= said->seq;

	if (same && channel->seq == said->seq)
		return;
	item.u.gap = (struct archive_gap){.cause = ARCHIVE_GAP_DAMAGED};
	if (same) {
		item.u.gap.lost = said->seq - channel->seq;
		item.u.gap.from_seq = channel->seq + 1;
		item.u.gap.to_seq = said->seq;
	}
	item.kind = ARCHIVE_GAP;
	item.repeated = 0;
	reader->owed = item;
	reader->gap_owed = true;
}

/* Records from the channel's next on, up to @end; 0: how many is not known. */
static void fill_in_gap(const struct archive_reader *reader, struct archive_channel *channel,
			uint64_t end, struct archive_item *item)
{
	const struct archive_entry entry = {.kind = ARCHIVE_GAP};

	fill_in(reader, &entry, channel, item);
	item->u.gap = (struct archive_gap){
		.lost = end ? end - channel->seq : 0,
		.from_seq = channel->seq + 1,
		.to_seq = end,
		.cause = ARCHIVE_GAP_DAMAGED,
	};
	if (end)
		channel->seq = end;
}

/* Sequence of the first record that the entry tells of; 0: of none. */
static uint64_t first_seq(const struct archive_entry *entry, const uint8_t *payload)
{
	struct archive_gap gap;

	if (entry->kind != ARCHIVE_GAP)
		return entry->seq;
	memcpy(&gap, payload, sizeof(gap));
	return gap.from_seq;
}

/* Up to its end; and no other generation can have followed it. */
static bool is_all_read(const struct archive_channel *channel)
{
	return channel->closed && channel->certainty != ARCHIVE_UNCERTAIN;
}

/*
 * The first entry of a channel behind blocks that are not read, in its generation: what is
 * missing in front of it. Returns 1 (@item is a gap, and the entry is still to be taken), 0,
 * or -EBADMSG.
 */
static int settle_doubt(struct archive_reader *reader, struct archive_channel *channel,
			const struct archive_entry *entry, const uint8_t *payload,
			struct archive_item *item, struct r3ring_error *err)
{
	bool ends = entry->kind == ARCHIVE_GENERATION; /* the one before */
	uint64_t first = ends ? 0 : first_seq(entry, payload);

	channel->doubt = false;
	if (!ends && first <= channel->seq)
		return refuse(reader, err, "goes back behind what was read of its channel");
	if (ends ? is_all_read(channel) : first == channel->seq + 1)
		return 0;
	fill_in_gap(reader, channel, ends ? 0 : first - 1, item);
	return 1;
}

/* The channel of an entry that settles what is in doubt of it; NULL: it does not. */
static struct archive_channel *doubtful(const struct archive_reader *reader,
					const struct archive_entry *entry)
{
	struct archive_channel *channel;

	if (entry->flags & ARCHIVE_ENTRY_REPEATED || entry->kind == ARCHIVE_CHANNEL ||
	    entry->kind == ARCHIVE_READY || entry->kind == ARCHIVE_RESUMED)
		return NULL;
	channel = archive_channels_get(reader->channels, entry->channel);
	return channel && channel->doubt && channel->said_in == reader->segment.number ? channel
										       : NULL;
}

int archive_reader_take_rest(struct archive_reader *reader, struct archive_item *item)
{
	struct archive_channel *channel;

	while ((channel = archive_channels_doubtful(reader->channels))) {
		channel->doubt = false;
		if (is_all_read(channel))
			continue;
		fill_in_gap(reader, channel, 0, item);
		return 1;
	}
	return 0;
}

/* ---- what is hidden behind lost state ----------------------------------- */

/*
 * Whether the record or gap is of the generation that was said last. Another one's first is
 * number 1, and where only state was lost none of this one can be missing.
 */
static bool goes_on(const struct archive_channel *channel, const struct archive_entry *entry,
		    const uint8_t *payload)
{
	return channel->certainty == ARCHIVE_CERTAIN ||
	       (channel->certainty == ARCHIVE_UNLESS_NEW && channel->seq && !channel->closed &&
		first_seq(entry, payload) == channel->seq + 1);
}

static bool is_hidden(const struct archive_reader *reader, const struct archive_entry *entry,
		      const uint8_t *payload)
{
	struct archive_channel *channel;

	if (entry->kind == ARCHIVE_CHANNEL || entry->kind == ARCHIVE_READY ||
	    entry->kind == ARCHIVE_RESUMED)
		return false;
	channel = archive_channels_get(reader->channels, entry->channel);
	if (!channel)
		return true;
	if (entry->kind == ARCHIVE_GENERATION)
		return false;
	if (channel->said_in == reader->segment.number && goes_on(channel, entry, payload)) {
		channel->certainty = ARCHIVE_CERTAIN;
		return false;
	}
	channel->certainty = ARCHIVE_UNCERTAIN;
	channel->doubt = true;
	return true;
}

static void pass(struct archive_reader *reader, const struct archive_entry *entry)
{
	reader->at += (uint32_t)archive_entry_bytes(entry);
	reader->entry++;
	reader->entries_left--;
}

static int pass_hidden(struct archive_reader *reader, const struct archive_entry *entry)
{
	reader->unread.records += entry->kind == ARCHIVE_RECORD || entry->kind == ARCHIVE_SKIPPED;
	pass(reader, entry);
	return PASS_OVER;
}

/* ---- entries ----------------------------------------------------------- */

static void take_generation(struct archive_reader *reader, struct archive_channel *channel,
			    struct archive_item *item)
{
	const struct archive_generation *said = &item->u.generation;

	item->view.generation = said->generation;
	if (item->repeated ? reader->resuming
			   : channel->doubt && channel->said_in != reader->segment.number)
		owe_gap(reader, channel, said, item);
	/* Who has read what is before it knows better where that ended. */
	if (!item->repeated || !reader->continued)
		channel->seq = said->seq;
	channel->generation = said->generation;
	memcpy(channel->uuid, said->uuid, sizeof(channel->uuid));
	channel->said_in = reader->segment.number;
	channel->closed = said->closed;
	channel->doubt = false;
	channel->certainty = ARCHIVE_CERTAIN;
}

static int take_content(struct archive_reader *reader, const struct archive_entry *entry,
			const uint8_t *payload, struct archive_channel *channel,
			struct archive_item *item, struct r3ring_error *err)
{
	switch (entry->kind) {
	case ARCHIVE_GENERATION:
		memcpy(&item->u.generation, payload, sizeof(item->u.generation));
		take_generation(reader, channel, item);
		return 1;
	case ARCHIVE_RECORD:
	case ARCHIVE_SKIPPED:
		if (channel->said_in != reader->segment.number)
			return refuse(reader, err, "a record in front of its generation");
		if (!item->repeated) {
			channel->seq = entry->seq;
			channel->closed = entry->type == R3RING_CLOSED;
		}
		fill_in_view(entry, payload, &item->view);
		if (entry->kind == ARCHIVE_SKIPPED)
			item->u.kept = (struct archive_kept){reader->segment.head.layer_first,
							     reader->segment.head.layer_end};
		return 1;
	case ARCHIVE_GAP:
		memcpy(&item->u.gap, payload, sizeof(item->u.gap));
		channel->closed = false;
		if (item->u.gap.lost)
			channel->seq = item->u.gap.to_seq;
		return 1;
	case ARCHIVE_UNFOLLOWED:
		if (channel->said_in != reader->segment.number)
			return refuse(reader, err, "the end of a generation that was not said");
		fill_in_view(entry, NULL, &item->view);
		return 1;
	default:
		return 1;
	}
}

static int take_channel(struct archive_reader *reader, const struct archive_entry *entry,
			const void *payload, struct r3ring_error *err)
{
	int code =
		archive_channels_declare(reader->channels, entry->channel, payload, entry->bytes);

	if (code == -ENOMEM)
		return r3ring_error_set(err, code, "no memory for one more channel");
	return code ? refuse(reader, err, "the channel has another name already") : 0;
}

/* What is said again comes first, and belongs to no record of the ring. */
static int check_ready(struct archive_reader *reader, const struct archive_entry *entry,
		       struct r3ring_error *err)
{
	if (entry->kind == ARCHIVE_READY)
		reader->ready = true;
	else if (reader->ready && (entry->flags & ARCHIVE_ENTRY_REPEATED))
		return refuse(reader, err, "said again behind READY");
	return 0;
}

static int take_channels_entry(struct archive_reader *reader, const struct archive_entry *entry,
			       const uint8_t *payload, struct archive_item *item,
			       struct r3ring_error *err)
{
	struct archive_channel *channel;
	int code = 0;

	if (entry->kind == ARCHIVE_CHANNEL)
		code = take_channel(reader, entry, payload, err);
	if (code)
		return code;
	channel = archive_channels_get(reader->channels, entry->channel);
	if (!channel)
		return refuse(reader, err, "of a channel that was not declared");
	fill_in(reader, entry, channel, item);
	return take_content(reader, entry, payload, channel, item, err);
}

static int take(struct archive_reader *reader, const struct archive_entry *entry,
		const uint8_t *payload, struct archive_item *item, struct r3ring_error *err)
{
	int code = check_ready(reader, entry, err);

	if (code)
		return code;
	if (entry->kind != ARCHIVE_RESUMED && entry->kind != ARCHIVE_READY)
		return take_channels_entry(reader, entry, payload, item, err);
	fill_in(reader, entry, NULL, item);
	if (entry->kind == ARCHIVE_RESUMED)
		memcpy(&item->u.resumed, payload, sizeof(item->u.resumed));
	return 1;
}

static bool is_wanted(const struct archive_reader *reader, const struct archive_item *item)
{
	return item->kind != ARCHIVE_READY &&
	       (!item->repeated || !reader->continued || reader->keep_repeated);
}

int archive_reader_take(struct archive_reader *reader, struct archive_item *item,
			struct r3ring_error *err)
{
	struct archive_item taken = {0};
	struct archive_entry entry;
	const uint8_t *payload = reader->segment.entries + reader->at + sizeof(entry);
	struct archive_channel *channel;
	int code;

	if (reader->gap_owed) {
		*item = reader->owed;
		reader->gap_owed = false;
		return 1;
	}
	memcpy(&entry, payload - sizeof(entry), sizeof(entry));
	if (reader->unsettled && is_hidden(reader, &entry, payload))
		return pass_hidden(reader, &entry);
	channel = doubtful(reader, &entry);
	code = channel ? settle_doubt(reader, channel, &entry, payload, item, err) : 0;
	if (code)
		return code;
	code = take(reader, &entry, payload, &taken, err);
	if (code < 0)
		return code;
	pass(reader, &entry);
	if (!is_wanted(reader, &taken))
		return PASS_OVER;
	*item = taken;
	return 1;
}
