/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: the insides of a channel. */
#ifndef TOOLS_REPLAY_CHANNEL_H
#define TOOLS_REPLAY_CHANNEL_H

#include <r3ring/bind.h>

#include "tools/replay.h"

/*
 * Steps under way. The buffer holds four of the largest: these, one whose end is told before
 * its room is given back, and what is left over where one does not fit the buffer's end.
 */
#define REPLAY_WINDOW 2u
#define REPLAY_NUMBERS 256u /* steps that late spans may still be of */

/* Numbers of a step. */
struct replay_number {
	uint64_t old, new;
};

/* A record that came while a step was open, and goes behind it. */
struct replay_side {
	struct replay_side *next;
	uint16_t type;
	uint32_t len;
	uint64_t data[];
};

struct replay_channel {
	const struct replay_shared *shared;
	const char *name; /* in the archive */
	uint32_t rank, draft;
	uint8_t uuid[16]; /* of the archive's generation */
	bool begun;       /* there is one */

	struct r3ring_producer *producer;
	struct replay_flow *flow;
	struct r3ring_schema_record schema;
	struct r3ring_layer_entry *layers; /* [schema.layers] */
	struct bound_layer *bound;         /* likewise */

	struct replay_handles *handles;
	struct replay_side *sides, **last_side;

	struct replay_step step; /* open in the archive; head.step 0: none */
	struct replay_step late; /* spans that came late, for their columns */
	int32_t *wide;           /* ids of a part, where they do not fit int16 */
	size_t wide_room;

	uint64_t newest; /* step of the archive that was run or lost last; 0: none */
	uint64_t number; /* of the newest new step */
	uint64_t runs;   /* steps run, of which the newest have these numbers: */
	uint64_t under_way[REPLAY_WINDOW];
	struct replay_number numbers[REPLAY_NUMBERS]; /* by old number */
	uint64_t lost_to;                             /* told by LOST, and */
	uint64_t lost_rows; /* of steps that are still to be announced as lost */
	bool late_begin;    /* the archive begins in the middle of the generation */
	bool doubt;         /* what was lost may have been keys */
};

/* "NAME: why", the producer's words where there are any; returns @code. */
int replay_fail(const struct replay_channel *channel, int code);
int replay_no_memory(const struct replay_channel *channel);
bool replay_stopped(const struct replay_channel *channel);

/* A record that is of no step (REQUEST, EPLB, KEY_COPY) or came late (SPANS): now, or
 * behind the step that is open. */
int replay_side_take(struct replay_channel *channel, const struct archive_item *item,
		     const struct r3ring_record *record);
/* Those that wait. */
int replay_side_flush(struct replay_channel *channel);
void replay_side_free(struct replay_channel *channel);

/* Binds all layers of the schema: who looks at the channel sees that they are captured. Returns
 * 0 or what ends the replay. */
int replay_bind(struct replay_channel *channel);
/* Once the producer was closed. */
void replay_unbind(struct replay_channel *channel);

/* Runs the step that is open. @end: its STEP_END; NULL where the archive does not have it:
 * then nobody knows which of its layers are whole, and none is captured. */
int replay_run_step(struct replay_channel *channel, const struct r3ring_record *end);

/* Announces as lost what was lost behind the newest step. */
int replay_lose_rest(struct replay_channel *channel);

#endif
