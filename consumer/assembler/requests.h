/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, by text id. A part is what one channel knows of a request; a part has
 * attempts, an attempt a row for each position.
 */
#ifndef CONSUMER_ASSEMBLER_REQUESTS_H
#define CONSUMER_ASSEMBLER_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include <r3ring/assembler.h>

#include "consumer/assembler/rows.h"

struct attempt {
	uint64_t serial; /* no other attempt of this process has it */
	uint16_t number;
	uint32_t prompt;
	uint32_t accepted;  /* R3RING_UNKNOWN_U32 when nobody said */
	uint32_t positions; /* of `row` */
	uint32_t capacity;
	struct row **row; /* [positions] NULL: nothing is known of it */
};

struct part {
	struct request *request;
	uint32_t channel;
	uint64_t handle;   /* newest */
	uint64_t keyframe; /* number of the newest keyframe that named it */
	bool live;         /* in its channel's table, of this generation or the last one */
	uint8_t gap;       /* cause, when records of its time were lost */
	uint32_t attempts;
	struct attempt *attempt; /* [attempts], by number */
	struct part *next;       /* of the request */
	UT_hash_handle hh;       /* by handle, in its channel */
};

struct request {
	char *text[4]; /* id, session, turn, sample */
	struct part *part;
	bool over; /* an end that was no preemption was seen */
	bool aborted;
	bool guessed;                  /* its end was not seen, but must have been */
	void *seen;                    /* the onlooker's */
	struct request *older, *newer; /* by the last time that something was said of it */
	UT_hash_handle hh;             /* by id */
};

struct request *request_create(const struct r3ring_record *record);
void request_free(struct request *request);

/* The part of a channel, made when there is none; NULL when memory is out. */
struct part *request_part(struct request *request, uint32_t channel);

/* The attempt, made when there is none; NULL when memory is out. */
struct attempt *part_attempt(struct part *part, uint16_t number);
struct attempt *part_find_attempt(const struct part *part, uint16_t number);

/* Makes room for @position; 0 or -ENOMEM. */
int attempt_reach(struct attempt *attempt, uint32_t position);

static inline struct row *attempt_row(const struct attempt *attempt, uint32_t position)
{
	return position < attempt->positions ? attempt->row[position] : NULL;
}

/* Puts @row (its own reference) where there was none or another. */
void attempt_put(struct attempt *attempt, uint32_t position, struct row *row);

#endif
