/* SPDX-License-Identifier: Apache-2.0 */
/* The reader from inside. */
#ifndef CONSUMER_INTERNAL_H
#define CONSUMER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reader.h>

#include "channel/clock.h"
#include "consumer/attach.h"
#include "consumer/readiness.h"

/* How a reader finds the generation after its present one. */
struct follower {
	struct attach_request request;
	struct attachment next; /* found, not yet moved to */
	uint64_t named;         /* generation to ask for, as CLOSED did; 0: the newest */
	uint64_t gone;          /* all up to this one were asked for in vain, or read */
	bool promised;          /* CLOSED named one, and it was not yet looked for in vain */
	bool asked_own;         /* the question is for the present generation */
	bool own_gone;          /* and the daemon knows it no more */
	bool ended;             /* as follower_look() was told last */
	uint64_t found_ns;      /* when `next` was */
	uint64_t ask_at_ns;     /* not before */
	uint64_t again_ns;      /* between two questions: longer the longer there is no answer */
	uint64_t give_up_ns;    /* the question that stands is given up then */
	uint64_t epoch;         /* writer that knows of this reader */
	uint64_t hung_up_at_ns; /* the connection is looked at then */
	uint64_t alive_ns;      /* the present segment's writer was known to live */
	bool writer_dead;       /* no sign of life, and no daemon vouches for it */
};

struct r3ring_reader {
	struct attach_target target;
	char *runtime_dir;
	enum r3ring_cursor_mode mode;
	bool stay;

	struct readiness readiness;
	uint32_t armed;       /* as last stored in the page */
	uint64_t told_cursor; /* as last stored in the page */
	uint64_t seen_lost;   /* of the present generation, as last looked at */
	uint64_t spin_ns;     /* how long it pays to spin, learned */
	uint64_t nap_ns;      /* between two looks of one that is not registered */
	struct attachment now;
	struct r3ring_cursor *cursor;
	struct follower follower;

	bool view_open; /* given out by next(), not yet checked */
	bool found;     /* wait() has found something that next() has yet to tell */
	int found_code;
	struct r3ring_view found_view;

	bool missed;     /* some in front of the present generation: not yet told */
	bool left_alive; /* more may have come in those since: their writer lived */
	bool end_told;   /* -EPIPE of the present generation */
	bool death_told; /* -EOWNERDEAD of the present writer */

	struct r3ring_reader_stats sums; /* all but `now` */
	struct r3ring_error err;
};

/* Begins reading an attachment, which is taken over on success. */
int reader_enter(struct r3ring_reader *reader, struct attachment *attachment,
		 enum r3ring_cursor_start from, uint64_t seq);

/* Tells the writer up to where all is done with. */
void reader_tell_cursor(struct r3ring_reader *reader);

/* Notes for `left_alive` what the present generation is left as, whose end was come to. */
void reader_leave(struct r3ring_reader *reader);

/* Whether its ring says of a sequence that it is its newest which cannot be. */
bool reader_tail_lies(const struct r3ring_reader *reader);

/* To be called when `now` has another page and connection; before the former one is
 * closed, readiness_drop_connection(). */
void reader_registered(struct r3ring_reader *reader);

/* Whether next() has something to tell that it has not told yet. */
bool reader_look(struct r3ring_reader *reader);

/* The same of one that found nothing and is about to sleep, or not to look again: an empty slot
 * in front of the newest record is damaged. */
bool reader_look_twice(struct r3ring_reader *reader);

/*
 * Sleeps until the writer wakes or there is something to tell. No wake-up is lost:
 * either the last look sees what the writer published, or the writer sees that the
 * page says `waiting` and changes the word that is slept on.
 */
void reader_sleep(struct r3ring_reader_page *page, const struct r3ring_cursor *cursor,
		  uint64_t timeout_ns);

/* What next() does, wherever its result goes. Never blocks. */
int reader_advance(struct r3ring_reader *reader, struct r3ring_view *view);

void follower_init(struct follower *follower);
void follower_release(struct follower *follower);

/* To be called when a generation is entered. */
void follower_enter(struct follower *follower);

/* Takes note of CLOSED. */
void follower_note(struct follower *follower, const struct r3ring_view *view);

/*
 * Looks for a newer generation when there is reason to: the present one has
 * @ended, its daemon has hung up, or its writer shows no sign of life. Never blocks: goes as far as it can
 * without waiting for an answer, which a later call takes.
 * Returns whether follower.next is filled.
 */
bool follower_look(struct r3ring_reader *reader, bool ended);

/* When follower_look() is to be called again though neither the present connection nor
 * the question's has become readable. */
uint64_t follower_due_ns(struct r3ring_reader *reader, uint64_t now);

/* Whether another writer goes on in the present segment, which knows nothing of this
 * registered reader: follower_look() then makes it known. */
bool follower_unknown(const struct r3ring_reader *reader);

#endif
