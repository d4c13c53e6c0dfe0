/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel, in one generation: from its producer's welcome (or from a segment that
 * a dead daemon left) until its segment is gone.
 *
 *	LIVE -> ENDED      the producer closed or died, and all was drained
 *	ORPHAN -> ENDED    a dead daemon's; its producer did not come back in time
 *	retiring           a newer generation has the name; ends when it is drained
 */
#ifndef DAEMON_CHANNEL_H
#define DAEMON_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>
#include <r3ring/ring.h>

#include "capture_daemon/drain.h"
#include "capture_daemon/loop.h"
#include "channel/leftover.h"
#include "channel/socket.h"

struct daemon;
struct session;

enum channel_state {
	CHANNEL_LIVE,
	CHANNEL_ENDED,
	CHANNEL_ORPHAN,
};

struct channel {
	struct channel *prev, *next;
	struct daemon *daemon;
	struct r3ring_channel_name name;
	char text[CHANNEL_NAME_TEXT];
	enum channel_state state;
	bool crashed; /* its daemon died under its producer: more may be lost than is known */
	bool retiring;
	uint64_t next_generation; /* of the one that it makes room for */
	char next_name[128];

	uid_t user;
	pid_t producer_pid;
	struct session *producer; /* NULL once it is gone */
	struct loop_source pidfd; /* of the producer; fd -1 when none */
	struct loop_source done;  /* the drain thread has ended */
	uint64_t memory;          /* counted against the user's limit */
	uint64_t buffer_bytes;
	char device[16];
	enum r3ring_buffer_kind buffer_kind;
	enum r3ring_export_reason export_reason;
	enum r3ring_order order;
	uint8_t gpu_uuid[16];
	int64_t since;        /* CLOCK_REALTIME seconds */
	uint64_t deadline_ns; /* ORPHAN: when it is waited for no longer */

	struct r3ring_segment *segment;
	struct drain drain; /* its publisher writes the segment, also of an orphan */
};

/* The channel of that name which is not retiring; NULL when there is none. */
struct channel *channel_find(struct daemon *daemon, const struct r3ring_channel_name *name);

/* The one of that generation, also while it is retiring; NULL when there is none. */
struct channel *channel_find_generation(struct daemon *daemon,
					const struct r3ring_channel_name *name,
					uint64_t generation);

/* The producer said BYE, or is gone; drains what is left. One that said BYE and waits
 * for its buffer stays connected until all is drained. */
void channel_producer_gone(struct channel *channel, enum drain_producer how);

/* Whether the producer is dead or has hung up, though no event has said so yet. */
bool channel_producer_is_gone(const struct channel *channel);

/* The producer hung up, or its process is gone, without a BYE that was read. */
void channel_producer_lost(struct channel *channel);

/* Notes in the list of segments how its ring ended. */
void channel_note_end(const struct channel *channel, enum leftover_end end);

/*
 * Publishes the last record, removes the segment, frees the channel. Its drain
 * thread must have ended. The reason is CRASHED, whatever is given, for one that has.
 */
void channel_retire(struct channel *channel, enum r3ring_closed_reason reason);

/* Leaves to its producer's next generation what this one has of requests and steps. */
void channel_leave(const struct channel *channel);

/* Lets go of a channel that never came to be. */
void channel_abandon(struct channel *channel);

/* The drain thread has ended; loop_source.ready of `done` calls it. */
void channel_drained(struct channel *channel);

/* Names what continues this channel; retires it now, or once it is drained. */
void channel_supersede(struct channel *channel, uint64_t generation, const char *segment_name);

/* What a channel does about lossless readers, by the daemon's options and its own name. */
struct stall_policy channel_policy(const struct channel *channel);

bool channel_draining(const struct channel *channel);
/* Whether another generation of the same name still is. */
bool channel_older_drain(const struct channel *channel);

#endif
