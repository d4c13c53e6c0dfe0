/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the daemon which channels an instance has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel/socket.h"
#include "consumer/listing.h"

#define CHANNELS_MAX 65536u /* more is no daemon of ours */

void listing_init(struct listing *listing, const char *runtime_dir, const char *instance)
{
	*listing = (struct listing){.runtime_dir = runtime_dir, .instance = instance, .fd = -1};
}

void listing_hang_up(struct listing *listing)
{
	if (listing->fd >= 0)
		close(listing->fd);
	listing->fd = -1;
	listing->asked = false;
}

void listing_release(struct listing *listing)
{
	listing_hang_up(listing);
	free(listing->names);
	listing->names = NULL;
}

static int send_question(struct listing *listing)
{
	struct r3ring_list_message list = {.head.type = R3RING_MSG_LIST};

	memcpy(list.instance, listing->instance, strlen(listing->instance) + 1);
	return socket_send(listing->fd, &list.head, sizeof(list), NULL, 0, NULL, 0);
}

int listing_ask(struct listing *listing, struct r3ring_error *err)
{
	int rc = listing->fd >= 0 ? send_question(listing) : -EPIPE;

	if (rc) {
		listing_hang_up(listing);
		listing->fd = socket_connect(listing->runtime_dir, err);
		if (listing->fd < 0)
			return listing->fd;
		rc = send_question(listing);
	}
	/* A daemon that hung up at once may have left a refusal to be read. */
	if (rc && rc != -EPIPE) {
		listing_hang_up(listing);
		return r3ring_error_set(err, rc, "asking the daemon for channels: %s",
					strerror(-rc));
	}
	listing->asked = true;
	listing->count = 0;
	return 0;
}

/* ---- the answer -------------------------------------------------------- */

static int check_page(const struct listing *listing, const struct socket_inbox *inbox,
		      struct r3ring_listed_message *listed, struct r3ring_error *err)
{
	size_t bytes = inbox->len - sizeof(*listed);

	memcpy(listed, inbox->u.bytes, sizeof(*listed));
	if (bytes / sizeof(*listing->names) != listed->count ||
	    bytes % sizeof(*listing->names) != 0 || listed->count > CHANNELS_MAX - listing->count)
		return r3ring_error_set(err, -EBADMSG,
					"the daemon lists %u channels in %zu bytes behind %zu "
					"others",
					listed->count, bytes, listing->count);
	return 0;
}

/* A name of another instance was not asked for. */
static int take_name(struct listing *listing, const uint8_t *bytes, struct r3ring_error *err)
{
	struct r3ring_channel_name *name = &listing->names[listing->count];
	int rc;

	memcpy(name, bytes, sizeof(*name));
	rc = channel_name_check(name, err);
	if (rc || strcmp(name->instance, listing->instance) != 0)
		return r3ring_error_set(err, -EBADMSG,
					"the daemon lists a channel that is none of %s",
					listing->instance);
	listing->count++;
	return 0;
}

static int take_page(struct listing *listing, const struct socket_inbox *inbox, bool *more,
		     struct r3ring_error *err)
{
	struct r3ring_channel_name *names;
	struct r3ring_listed_message listed;
	int rc = check_page(listing, inbox, &listed, err);

	if (rc)
		return rc;
	names = reallocarray(listing->names, listing->count + listed.count + 1, sizeof(*names));
	if (!names)
		return r3ring_error_set(err, -ENOMEM, "no memory for %u channels", listed.count);
	listing->names = names;
	for (uint32_t i = 0; !rc && i < listed.count; i++)
		rc = take_name(listing, inbox->u.bytes + sizeof(listed) + i * sizeof(*names), err);
	*more = listed.more == 1;
	return rc;
}

static int compare_names(const void *a, const void *b)
{
	const struct r3ring_channel_name *left = a, *right = b;

	if (left->draft != right->draft)
		return left->draft < right->draft ? -1 : 1;
	return (left->rank > right->rank) - (left->rank < right->rank);
}

int listing_take(struct listing *listing, int timeout_ms, struct r3ring_error *err)
{
	struct socket_inbox inbox;
	bool more = true;
	int rc = 0;

	while (!rc && more) {
		rc = socket_answer(listing->fd, &inbox, R3RING_MSG_LISTED,
				   sizeof(struct r3ring_listed_message), timeout_ms, err);
		if (rc == -ETIMEDOUT)
			return rc;
		if (rc)
			break;
		socket_inbox_close_fds(&inbox);
		rc = take_page(listing, &inbox, &more, err);
	}
	listing->asked = false;
	if (rc) {
		listing_hang_up(listing);
		return rc;
	}
	if (listing->count)
		qsort(listing->names, listing->count, sizeof(*listing->names), compare_names);
	return 0;
}
