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
	uint32_t *captured;                /* likewise: rows of the step at work */

	struct replay_handles *handles;
	struct replay_side *sides, **last_side;

	struct replay_step step; /* open in the archive; head.step 0: none */
	struct replay_step late; /* spans that came late, for their columns */
	int32_t *wide;           /* ids of a part, where they do not fit int16 */
	size_t wide_room;

	uint64_t newest;    /* step of the archive that was run or lost last; 0: none */
	uint64_t number;    /* of the newest new step */
	uint64_t announced; /* new steps that were announced as lost */
	uint64_t runs;      /* steps run, of which the newest have these numbers: */
	uint64_t under_way[REPLAY_WINDOW];
	struct replay_number numbers[REPLAY_NUMBERS]; /* by old number */
	uint64_t ahead;  /* steps lost behind the newest whose old numbers are not known */
	bool late_begin; /* the archive begins in the middle of the generation */
	bool missed;     /* nothing was told of one before it, or of its end */
	bool doubt;      /* something was lost behind the newest step, and keys with it */
	bool step_doubt; /* or since the step that is open began */
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

/* The step that was open has its number; what waited for it goes behind it. */
int replay_step_over(struct replay_channel *channel);

/* ---- losses ------------------------------------------------------------ */

/* Something was lost here that may have been of any step, request or key. */
void replay_doubt(struct replay_channel *channel);

/* A new step with so many rows was announced as lost. */
void replay_note_lost(struct replay_channel *channel, uint64_t rows);

/* Announces what was lost: in front of step @step; of a number that is not known, now; at
 * the generation's end. */
int replay_lose_up_to(struct replay_channel *channel, uint64_t step);
int replay_lose_doubt(struct replay_channel *channel);
int replay_lose_rest(struct replay_channel *channel);

/* A LOST record. */
int replay_take_lost(struct replay_channel *channel, const struct r3ring_lost_record *lost);

#endif
