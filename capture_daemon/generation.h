/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's next generation: its ring is numbered, listed, made; then it begins. */
#ifndef DAEMON_GENERATION_H
#define DAEMON_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "capture_daemon/hello.h"
#include "capture_daemon/sizing.h"

struct channel;

struct generation_options {
	struct ring_sizes sizes;
	uint64_t last; /* the producer's own newest, 0 when it has none */
	/* Asked while memory is allocated, with the bytes that are there, by the thread that
	 * does: false ends it. */
	bool (*carry_on)(void *ctx, uint64_t bytes);
	void *ctx;
};

/*
 * Makes @channel->segment, at about a second a gigabyte. Any thread, as long as no other
 * makes one of this channel's name.
 *
 * Returns 0, -ECANCELED, or what r3ring_segment_create() or writing to the runtime
 * directory gave, with a message.
 */
int generation_make(struct channel *channel, const struct generation_options *options,
		    struct r3ring_error *err);

/*
 * Publishes into the ring that was made what comes first, what lived in the generation
 * before included, and starts the drain thread. The buffer must be imported.
 *
 * @orphan: what a dead daemon left of the channel; NULL: nothing. On failure it is as it was.
 */
int generation_begin(struct channel *channel, struct hello *hello, struct channel *orphan,
		     struct r3ring_error *err);

#endif
