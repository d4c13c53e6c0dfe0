/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's reader: takes every record of a channel as it comes, with the time
 * of its arrival, and leaves the checking for later, so that the times are those
 * of a reader that keeps up.
 */
#ifndef TESTS_DEMO_RECEIVE_H
#define TESTS_DEMO_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/reader.h>

struct received_record {
	struct r3ring_view view; /* its data is this record's own copy */
	uint64_t arrived_ns;     /* CLOCK_MONOTONIC */
};

struct received {
	struct received_record *records;
	size_t count, room;
	uint64_t attached_ns;
	uint64_t bytes; /* payloads */
	struct r3ring_reader_stats stats;
};

/*
 * Reads @channel from its oldest record until its producer is gone and nothing
 * more comes.
 *
 * @producer_gone: looked at now and then; also ends the wait for the channel.
 *
 * Returns 0 or a negative errno with the reason in @err. Pairs with
 * received_free(), also after a failure; a zeroed struct is fine.
 */
int receive(struct received *received, const char *runtime_dir, const char *channel,
	    bool (*producer_gone)(void *ctx), void *ctx, struct r3ring_error *err);
void received_free(struct received *received);

uint64_t receive_now_ns(void);

#endif
