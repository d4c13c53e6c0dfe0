/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of a daemon that died. Their producer is waited for, 10 seconds; when it
 * comes back they are continued, in the same ring or in a next generation. One whose
 * producer does not is a channel that has ended, and is readable as long as any other.
 */
#ifndef DAEMON_ORPHANS_H
#define DAEMON_ORPHANS_H

#include <stdbool.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>
#include <r3ring/record.h>

#include "capture_daemon/carried.h"

struct channel;
struct daemon;
struct remains;

/* Takes over the segments that are listed in the runtime directory and that nobody
 * owns; removes those that cannot be gone on with. Those of others are left alone. */
void orphans_adopt(struct daemon *daemon);

/* Waits no longer for the producers of those whose time is over. */
void orphans_expire(struct daemon *daemon);

/*
 * Whether the producer that says @hello wrote the orphan: it was welcomed to that generation,
 * or to the one that this went on from, and never heard of it.
 */
bool orphan_is_of(const struct channel *orphan, const struct r3ring_hello_producer_message *hello);

/*
 * Whether the producer that says @hello and @schema goes on in the orphan's own ring:
 * it wrote it before, its layers are still the same, and all that was told of the
 * step at work is known. Never where the device of the dead daemon may still be
 * writing into the ring (every kind but host memory): that one is left alone, and
 * the next generation begun.
 */
bool orphan_continues(const struct channel *orphan,
		      const struct r3ring_hello_producer_message *hello,
		      const struct r3ring_record *schema);

/*
 * Gives the orphan's ring to @channel, which is attached to its producer, goes on in
 * it, and frees the orphan. Returns 0, or a negative errno and then the orphan is as
 * it was.
 */
int orphan_resume(struct channel *orphan, struct channel *channel, struct r3ring_error *err);

/* Takes over what the dead daemon knew, as its ring has it; the publisher is open. */
void orphan_take(struct channel *orphan, struct remains *remains);

/* Up to which step all is told, or will be by orphan_say_lost(): what the producer's next
 * generation is not to tell. */
struct carried_told orphan_told(const struct channel *orphan);

/*
 * Publishes what of the orphan's steps is lost, because its ring is not gone on with. A
 * step at work that was dropped is lost by its own cause, once for all; what else was at
 * work by the daemon's death, in this generation: the next one has it, if there is one.
 */
void orphan_say_lost(struct channel *orphan);

#endif
