/* SPDX-License-Identifier: Apache-2.0 */
/* LIST: which channels there are, by name alone, for readers of whole instances. */
#include <errno.h>
#include <string.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/listing.h"

#define NAMES_A_MESSAGE 256u

/* Names that wait to be sent. */
struct page {
	struct r3ring_channel_name names[NAMES_A_MESSAGE];
	uint32_t count;
};

static int page_send(struct session *session, struct page *page, bool more)
{
	struct r3ring_listed_message listed = {
		.head.type = R3RING_MSG_LISTED,
		.count = page->count,
		.more = more,
	};
	size_t bytes = page->count * sizeof(page->names[0]);

	page->count = 0;
	return session_send(session, &listed.head, sizeof(listed), page->names, bytes, NULL, 0);
}

static int send_names(struct session *session, const char *instance)
{
	struct page page = {.count = 0};
	int r = 0;

	for (const struct channel *c = session->daemon->channels; r == 0 && c; c = c->next) {
		if (c->retiring || (instance[0] && strcmp(c->name.instance, instance) != 0))
			continue;
		if (page.count == NAMES_A_MESSAGE)
			r = page_send(session, &page, true);
		page.names[page.count++] = c->name;
	}
	return r == 0 ? page_send(session, &page, false) : r;
}

int listing_send(struct session *session, struct r3ring_error *err)
{
	const struct socket_inbox *inbox = &session->daemon->inbox;
	struct r3ring_list_message list;
	int r = 0;

	if (inbox->len != sizeof(list))
		return r3ring_error_set(err, -EBADMSG, "question for channels of %zu bytes",
					inbox->len);
	memcpy(&list, inbox->u.bytes, sizeof(list));
	if (!memchr(list.instance, 0, sizeof(list.instance)))
		return r3ring_error_set(err, -EBADMSG, "an instance's name without an end");
	if (list.instance[0])
		r = channel_instance_check(list.instance, err);
	if (r < 0)
		return r;
	r = send_names(session, list.instance);
	return r < 0 ? r3ring_error_set(err, r, "the list of channels cannot be sent: %s",
					strerror(-r))
		     : 0;
}
