/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when a lossless reader does not keep up: the channel waits, for a
 * while, in naps; then the reader is demoted. Only this channel's thread waits.
 */
#ifndef DAEMON_STALL_H
#define DAEMON_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/gate.h"

struct stall_policy {
	uint64_t limit_bytes; /* arena bytes that a reader may leave unread; 0: 3/4 */
	uint64_t limit_ns;    /* how long the channel waits */
	bool drop;            /* then drops new steps, instead of demoting */
};

/* Zeroed: no reader is registered, and nothing ever waits. */
struct stall {
	struct stall_policy policy;
	struct gate *gate;
	bool (*carry_on)(void *ctx); /* whether to wait on; shows signs of life */
	void *ctx;
	uint64_t waits;     /* how often the channel had to wait; any thread reads */
	uint64_t waited_ns; /* in all */
	uint64_t demoted;   /* readers */
};

/* One wait, however many naps; zeroed when it begins. */
struct stall_wait {
	uint64_t nap_ns;
	uint64_t waited_ns;
};

/*
 * Naps once, the gate being shut. Demotes readers that have had their time; all
 * that are in the way once this wait has lasted for the policy's limit, or when
 * there is no carrying on.
 */
void stall_wait(struct stall *stall, struct r3ring_writer *writer, struct stall_wait *wait);

/* Naps once, for what can be left undone: demotes nobody. Returns false when the
 * policy's limit is over. */
bool stall_nap(struct stall *stall, struct r3ring_writer *writer, struct stall_wait *wait);

/* Waits for nobody any more: for the last records, after the thread has ended. */
void stall_end(struct stall *stall);

/* After that: a thread publishes again, with the readers that there are. */
void stall_resume(struct stall *stall, const struct stall_policy *policy,
		  bool (*carry_on)(void *ctx), void *ctx);

#endif
