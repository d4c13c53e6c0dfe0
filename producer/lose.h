/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that somebody else has lost: a replay announces them, and runs none of them. */
#ifndef PRODUCER_LOSE_H
#define PRODUCER_LOSE_H

#include <r3ring/producer.h>
#include <r3ring/record.h>

/* What is known of such a step's spans. */
enum producer_lost_map {
	PRODUCER_MAP_KNOWN,   /* those that it names are all */
	PRODUCER_MAP_UNKNOWN, /* readers are told so, and forget what it may have done */
	/* Likewise, and told with the next step alone: for many, which take no room so. Causes
	 * other than R3RING_CAUSE_DAEMON_RESTART and _TOO_BIG become _QUEUE_FULL. */
	PRODUCER_MAP_MERGED,
};

/*
 * Gives the step its number and announces it as lost; one that is open is ended.
 *
 * @step:  its rows and spans.
 * @cause: R3RING_CAUSE_BUFFER_FULL to _CONFLICT.
 *
 * Returns 0, or as r3ring_step_begin(). In the thread that makes step calls.
 */
int producer_lose_step(struct r3ring_producer *producer, const struct r3ring_step *step,
		       enum r3ring_cause cause, enum producer_lost_map map);

#endif
