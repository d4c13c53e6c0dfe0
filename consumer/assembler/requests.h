/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, by text id. A part is what one channel knows of a request; a part has
 * attempts, an attempt a row for each position.
 */
#ifndef CONSUMER_ASSEMBLER_REQUESTS_H
#define CONSUMER_ASSEMBLER_REQUESTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include <r3ring/assembler.h>

#include "consumer/assembler/memory.h"
#include "consumer/assembler/rows.h"

/* Another pass of the same weights over a position: it does not agree with the row that the
 * attempt has of it, or may not agree with what other channels have where that row is lost. */
struct contradiction {
	uint32_t position;
	bool instead; /* a cache may have found it, and not the one that the attempt has */
	struct row *row;
};

/* Steps one behind the other that told of as many rows of an attempt each, where the one before ended. */
struct told {
	uint64_t step; /* the first of them, */
	uint32_t steps;
	uint32_t position; /* where it began, */
	uint32_t rows;     /* and for how many */
};

#define NEVER_LOST UINT64_MAX

struct attempt {
	struct request *request;
	uint64_t serial;                /* no other attempt of this process has it */
	uint64_t touched;               /* when a step ran it last, */
	uint64_t handle;                /* that it was begun under last; 0: not seen */
	uint64_t first;                 /* that its request's first one there was; 0: not known */
	uint64_t begun;                 /* by the assembler's clock, when it was first heard of */
	uint64_t first_step, last_step; /* that had spans of it; 0: none, */
	uint64_t first_ns, last_ns;     /* and when its host began those */
	struct told *told;              /* [tolds] the first span of each step, by step, */
	uint32_t tolds, told_room;
	bool told_apart; /* of several generations, or not kept: its steps are not others' */
	uint64_t lost; /* and as that was when records of its time were lost last; or NEVER_LOST */
	uint16_t number;
	uint32_t prompt;
	uint32_t accepted;  /* R3RING_UNKNOWN_U32 when nobody said */
	uint32_t found;     /* leading positions that a prefix cache was asked for */
	uint32_t positions; /* of `row` */
	uint32_t capacity;
	struct row **row;    /* [positions] NULL: nothing is known of it */
	struct row **newest; /* [recomputed] run again, which do not count; NULL: as `row` */
	uint32_t recomputed;
	struct contradiction *contradiction; /* [contradictions] in the order of their coming */
	uint32_t contradictions;
	uint32_t run; /* of its channel's engine, that it was begun in */
	bool guessed; /* nobody told of which request of its id it is, */
	bool early; /* and the one before it was to end yet on its channel, which had lost nothing */
	bool ended;    /* its end was told, */
	bool given_up; /* but not by its engine, nor how much was kept */
	bool renewed; /* new weights may have come in what was lost: it may have run further before */
	bool torn;    /* records of its time were lost, the last time behind */
	uint64_t torn_step; /* this step, of */
	uint64_t torn_era;  /* this one of its channel's */
};

struct part {
	struct request *request;
	uint32_t channel;
	uint64_t handle;     /* newest */
	uint32_t place;      /* in its channel's order, when it was last in a step */
	uint64_t keyframe;   /* number of the newest keyframe that named it */
	uint64_t bound_ns;   /* when its engine was, as of its newest begin; 0: not known */
	uint64_t generation; /* that it began in, or was named in last, */
	uint64_t former;     /* and the one that its engine was in before, see former_of() */
	bool live;           /* in its channel's table, of this generation or the last one */
	bool final;          /* its channel told of the request's end, or must have: */
	bool guessed;        /* it named it no more */
	bool left;           /* its channel began another request of the id: this one is over */
	bool unsure;         /* how many of the id its channel ran before it is not known */
	uint8_t gap;         /* cause, when records of its time were lost */
	uint32_t attempts;
	struct attempt **attempt; /* [attempts], by number; each stays where it is */
	struct part *next;        /* of the request */
	UT_hash_handle hh;        /* by handle, in its channel */
};

struct request {
	char *text[4]; /* id, session, turn, sample */
	struct part *part;
	bool aborted;
	bool cut;         /* it had positions beyond `max_tokens` */
	bool has_twin;    /* another request of the id was run on the second of these channels, */
	uint32_t twin[2]; /* while this one was on the first: both say to be the same rank */
	bool has_others;  /* there were of the id: it is not the request's alone */
	bool unclear;     /* an attempt of it, told of on the first of these channels, may be of */
	uint32_t unclear_by[2];        /* another request of the id, told of on the second */
	void *seen;                    /* the onlooker's */
	uint64_t begun;                /* by the assembler's clock, when it was first heard of */
	struct memory *memory;         /* of the assembler: */
	uint64_t bytes;                /* what the request takes of it, its rows aside */
	bool sorted;                   /* see room.c */
	uint64_t touched;              /* and when something else was said of the request */
	struct request *prev, *next;   /* of all that there are */
	struct request *same, *before; /* of the same id, in the order of their coming; the
					* first one's `before` is the last */
	UT_hash_handle hh;             /* by id: the first of those that have it */
};

struct request *request_create(const struct r3ring_record *record, struct memory *memory);
void request_free(struct request *request);
/* An allocation of the request's changes its size. */
void request_account(struct request *request, size_t before, size_t now);
/* When something was said of it last, by a step or otherwise. */
uint64_t request_touched_at(const struct request *request);

/* The part of a channel, made when there is none; NULL when memory is out. */
struct part *request_part(struct request *request, uint32_t channel);

static inline struct attempt *part_find_attempt(const struct part *part, uint16_t number)
{
	uint32_t first = 0, end = part->attempts, at = end ? part->attempt[0]->number : 0;

	/* Most parts have all attempts from their first one on. */
	if (number >= at && number - at < end && part->attempt[number - at]->number == number)
		return part->attempt[number - at];
	while (first < end) {
		at = first + (end - first) / 2;
		if (part->attempt[at]->number == number)
			return part->attempt[at];
		if (part->attempt[at]->number < number)
			first = at + 1;
		else
			end = at;
	}
	return NULL;
}

/* The one that runs, or NULL. */
static inline struct attempt *part_newest(const struct part *part)
{
	return part->attempts ? part->attempt[part->attempts - 1] : NULL;
}

enum telling { TOLD_NOTHING, TOLD_OTHERS, TOLD_ONE };
/* told.c: whether the steps that told of both attempts, of two channels, told of the same rows. */
enum telling attempts_told(const struct attempt *attempt, const struct attempt *other);
/* Keeps that the step told of the rows. Without memory nothing is proved by what was told. */
void attempt_tell(struct attempt *attempt, uint64_t step, uint32_t position, uint32_t rows);

/* A step that has spans of it is settled. */
static inline void attempt_run(struct attempt *attempt, uint64_t touched,
			       const struct r3ring_step_record *step,
			       const struct r3ring_span *span)
{
	attempt->touched = touched;
	attempt_tell(attempt, step->step, span->position, span->rows);
	attempt->last_step = step->step;
	attempt->last_ns = step->host_ns;
	if (attempt->first_step)
		return;
	attempt->first_step = step->step;
	attempt->first_ns = step->host_ns;
}

/* Whether it may have run on behind the newest step that it is known to have run in: records were
 * lost since. */
static inline bool attempt_is_open(const struct attempt *attempt)
{
	return attempt->lost == attempt->touched;
}

/* One that it has not. */
struct attempt *part_add_attempt(struct part *part, uint16_t number);

/* The attempt, made when there is none; NULL when memory is out. */
static inline struct attempt *part_attempt(struct part *part, uint16_t number)
{
	struct attempt *attempt = part_find_attempt(part, number);

	return attempt ? attempt : part_add_attempt(part, number);
}

/* What room for @position takes, for which there is none. */
uint64_t attempt_growth(const struct attempt *attempt, uint32_t position);
/* Makes room for @position, for which there is none; 0 or -ENOMEM. */
int attempt_grow(struct attempt *attempt, uint32_t position);

/* Makes @position one of those that there are; 0 or -ENOMEM. */
static inline int attempt_reach(struct attempt *attempt, uint32_t position)
{
	if (position >= attempt->capacity && attempt_grow(attempt, position) < 0)
		return -ENOMEM;
	while (attempt->positions <= position)
		attempt->row[attempt->positions++] = NULL;
	return 0;
}

static inline struct row *attempt_row(const struct attempt *attempt, uint32_t position)
{
	return position < attempt->positions ? attempt->row[position] : NULL;
}

/* Keeps @row, borrowed, beside the one that is there; without memory neither is kept. @instead: as in
 * struct contradiction. */
void attempt_contradict(struct attempt *attempt, uint32_t position, struct row *row, bool instead);

/* Whether a cache may have found another row of the position than the one that is there. */
bool attempt_found_either(const struct attempt *attempt, uint32_t position);

/* Keeps @row, borrowed, as what is in KV now. Without memory nothing is known to be. */
void attempt_recompute(struct attempt *attempt, uint32_t position, struct row *row);

/* The row of the pass that filled KV last. */
static inline struct row *attempt_newest(const struct attempt *attempt, uint32_t position)
{
	if (position < attempt->recomputed && attempt->newest[position])
		return attempt->newest[position];
	return attempt_row(attempt, position);
}

/* Forgets the positions from @end on. */
void attempt_cut(struct attempt *attempt, uint32_t end);

/* Puts @row (its own reference) where there was none or another; it is what is in KV now. */
static inline void attempt_put(struct attempt *attempt, uint32_t position, struct row *row)
{
	row_drop(attempt->row[position]);
	attempt->row[position] = row;
	if (position >= attempt->recomputed)
		return;
	row_drop(attempt->newest[position]);
	attempt->newest[position] = NULL;
}

#endif
