/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of an instance from inside. */
#ifndef CONSUMER_INSTANCE_INTERNAL_H
#define CONSUMER_INSTANCE_INTERNAL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include <r3ring/instance.h>
#include <r3ring/proto.h>

#include "channel/socket.h"
#include "consumer/listing.h"

struct instance_channel {
	struct r3ring_channel_name name;
	char text[CHANNEL_NAME_TEXT];
	struct r3ring_reader *reader; /* NULL: could not be attached to yet */
	int refused;                  /* the error of that which was told, 0: none */
	bool ended;                   /* -EPIPE was the last that it said */
};

struct r3ring_instance {
	struct r3ring_instance_options options; /* strings are owned */
	struct listing listing;
	struct instance_channel **channels; /* each stays where it is: names are given out */
	struct pollfd *polled;              /* room for one more than channels */
	uint32_t count, capacity;
	uint32_t turn;    /* whose turn it is */
	uint32_t current; /* of whom was spoken last */
	int refusal;      /* wait() met with it, and next() has yet to tell it */
	uint64_t ask_at_ns;
	uint64_t give_up_ns; /* the question that stands is given up then */
	struct r3ring_error err;
};

/* Whether a channel's draft flag is wanted. */
bool instance_wants(const struct r3ring_instance *instance, const struct r3ring_channel_name *name);

/*
 * Attaches to what the newest list names and is not attached to yet. @from: where
 * new ones begin. Returns 0, -ENOMEM, or the first refusal that was not told yet,
 * with its words in @err and its channel in instance->current.
 */
int instance_join(struct r3ring_instance *instance, enum r3ring_cursor_start from,
		  struct r3ring_error *err);

/* Whether in the channel's last generation before the present one more may have come since its end
 * was come to: its writer lived, and had not ended it. */
bool instance_left_alive(const struct r3ring_instance *instance, uint32_t index);

/* Looks for new channels when it is time to. Returns as instance_join(). */
int instance_look(struct r3ring_instance *instance);

/* Says @text of a channel, with its name in front. Returns @code. */
int instance_say(struct r3ring_error *err, const struct instance_channel *channel, int code,
		 const char *text);

#endif
