/* SPDX-License-Identifier: Apache-2.0 */
/* Live requests and EPLB maps of a channel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/live.h"

static struct live_payload *payload_find(struct live_payload *table, uint64_t key)
{
	struct live_payload *found;

	HASH_FIND(hh, table, &key, sizeof(key), found);
	return found;
}

static void payload_remove(struct live *live, struct live_payload **table, uint64_t key)
{
	struct live_payload *old = payload_find(*table, key);

	if (!old)
		return;
	HASH_DEL(*table, old);
	live->bytes -= sizeof(*old) + old->len;
	free(old);
}

static int payload_add(struct live *live, struct live_payload **table, uint64_t key,
		       const void *bytes, size_t len)
{
	struct live_payload *made;

	payload_remove(live, table, key);
	if (live->bytes + sizeof(*made) + len > LIVE_BYTES_MAX)
		return -ENOBUFS;
	made = malloc(sizeof(*made) + len);
	if (!made)
		return -ENOMEM;
	made->key = key;
	made->len = len;
	memcpy(made->bytes, bytes, len);
	HASH_ADD(hh, *table, key, sizeof(made->key), made);
	if (!made->hh.tbl) {
		free(made);
		return -ENOMEM;
	}
	live->bytes += sizeof(*made) + len;
	return 0;
}

int live_note_request(struct live *live, const struct r3ring_request_record *head,
		      const void *payload, size_t len)
{
	int r = 0;

	if (head->event == R3RING_REQUEST_BEGIN)
		r = payload_add(live, &live->requests, head->handle, payload, len);
	else
		payload_remove(live, &live->requests, head->handle);
	live->lacks |= r < 0;
	return r;
}

bool live_has_request(const struct live *live, const struct r3ring_request_record *head)
{
	const struct live_payload *known = payload_find(live->requests, head->handle);
	struct r3ring_request_record begin;

	if (!known)
		return false;
	memcpy(&begin, known->bytes, sizeof(begin));
	return begin.attempt == head->attempt;
}

int live_note_map(struct live *live, const struct r3ring_eplb_record *head, const void *payload,
		  size_t len)
{
	return payload_add(live, &live->maps, head->first_layer, payload, len);
}

void live_move_requests(struct live *to, struct live *from)
{
	size_t bytes = 0;

	for (const struct live_payload *p = from->requests; p; p = p->hh.next)
		bytes += sizeof(*p) + p->len;
	to->requests = from->requests;
	to->bytes += bytes;
	from->requests = NULL;
	from->bytes -= bytes;
	to->lacks |= from->lacks;
	from->lacks = false;
}

static void table_clear(struct live *live, struct live_payload **table)
{
	struct live_payload *entry, *next;

	HASH_ITER (hh, *table, entry, next)
		payload_remove(live, table, entry->key);
}

void live_clear(struct live *live)
{
	table_clear(live, &live->requests);
	table_clear(live, &live->maps);
	live->lacks = false;
}
