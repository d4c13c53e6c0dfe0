/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record is taken where it lies in the ring. A layer's ids are counted there, into a table
 * that holds whatever they may be, before anybody knows whether they were overwritten meanwhile;
 * what is counted is only believed, or thrown away whole, when the reader has looked. Everything
 * else of a record is a private copy: the head of a layer, all of other types.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

/* Whether what the channel knows speaks of this record too. */
static bool may_look(const struct load_channel *channel, const struct r3ring_view *view)
{
	return view->type == R3RING_LAYER && channel->schema_seen &&
	       view->generation == channel->generation;
}

static void forget_looked(struct r3ring_load *load)
{
	memset(load->any, 0, CELLS_ANY_ID * sizeof(*load->any));
}

static int make_room(struct r3ring_load *load, size_t bytes)
{
	void *room;

	if (bytes <= load->copy_bytes)
		return 0;
	room = realloc(load->copy, bytes);
	if (!room)
		return -ENOMEM;
	load->copy = room;
	load->copy_bytes = bytes;
	return 0;
}

static int feed_copy(struct r3ring_load *load, struct load_channel *channel,
		     const struct r3ring_view *view, r3ring_load_intact intact, void *reader)
{
	struct r3ring_record record;
	int checked, r = make_room(load, view->len);

	if (r == 0 && view->len)
		memcpy(load->copy, view->data, view->len);
	checked = intact(reader);
	if (checked < 0 || r < 0)
		return checked < 0 ? checked : r;
	r = r3ring_record_decode(&record, view->type, load->copy, view->len, NULL);
	return r < 0 ? r : load_take_record(load, channel, view, &record, false);
}

int r3ring_load_feed_view(struct r3ring_load *load, uint32_t index, const struct r3ring_view *view,
			  r3ring_load_intact intact, void *reader)
{
	struct load_channel *channel;
	struct r3ring_record record;
	int r;

	if (index >= load->channels)
		return -EINVAL;
	channel = load->channel[index];
	if (!may_look(channel, view) ||
	    r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0 ||
	    !load_step_look(load, channel, &record))
		return feed_copy(load, channel, view, intact, reader);
	r = intact(reader);
	if (r < 0) {
		forget_looked(load);
		return r;
	}
	record.u.layer.ids = NULL;
	return load_take_record(load, channel, view, &record, true);
}
