/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that dies between any two of its steps, and another one that adopts
 * the ring; that one may die as well. What was published stays, is neither
 * published again nor changed, and readers go on reading meanwhile. See ring.inc
 * and writer.inc for what else stands for which function.
 *
 *	find_end()	ring/writer.c find_end(), copy_last(), walk_behind_tail()
 *	Writer		ring/writer.c r3ring_writer_open(), announce_adoption(); then a
 *			small record (as the daemon's LOST), then others, put or reserved
 *	Device		a copy, which dies with the writer that enqueued it: where it may
 *			outlive it, the daemon does not adopt (mutant COPY_OUTLIVES)
 *
 * Bounds: 4 slots, 8 arena words, intent in steps of 2 words, up to 6 records of
 * 0, 1 and 3 words, one or two deaths.
 *
 * model small: -DRECORDS=4 -DPUTS
 * model put: -DRECORDS=6 -DPUTS
 * model put_two_deaths: -DRECORDS=4 -DPUTS -DDEATHS=2
 * model reserved: -DRECORDS=5
 *
 * mutant NO_WALK: goes on behind the tail, whatever is published there
 * mutant INTENT_BACK: the intent goes back behind the last record, as the writer does
 * mutant AT_INTENT -DRECORDS=4 -DPUTS -DDEATHS=4: goes on at the intent, further on with each death
 * mutant NO_MARK_AT_OPEN -DPUTS: the first record's slot is not marked
 * mutant NO_ARENA_LIMIT -DRECORDS=6: more than half of the arena in flight
 * mutant COPY_OUTLIVES -DRECORDS=4: a copy of the dead writer still goes on
 */
#ifndef RECORDS
#define RECORDS 5
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define DEPTH 4
#define ARENA 8
#define INTENT_STEP 2
#include "ring.inc"

chan jobs = [4] of { byte };
bool copied[RECORDS + 2];
byte deaths, alive;
bool dead;

#ifdef COPY_OUTLIVES
#define KILLED false
#else
#define KILLED dead
#endif
#define EPOCH epoch
#include "writer.inc"

proctype Device(byte epoch)
{
	byte s, i, to;

	{
end_idle:
		do
		:: atomic { epoch == deaths && nempty(jobs) ->
				jobs?s;
				i = pos[s];
				to = end[s]
			}
			do
			:: i < to -> d_step { arena[i % ARENA] = TAG_OF(s); i++ }
			:: else -> break
			od;
			atomic { copied[s] = (copied[s] || epoch == deaths); s = 0; i = 0; to = 0 }
		od
	} unless { KILLED };
	atomic { alive--; s = 0; i = 0; to = 0 }
}

inline find_end()
{
	byte last, steps;

	last = tail;
	if
	:: last > 0 ->
		look(last, state);
		assert(state == INTACT)		/* else it could not be adopted */
	:: else
	fi;
#ifndef NO_WALK
	do
	:: steps < DEPTH ->
		look(last + 1, state);
		if
		:: state == INTACT ->
			last++;
			if
			:: FLAGGED(last) -> boundary = last
			:: else
			fi
		:: else -> break
		fi;
		steps++
	:: else -> break
	od;
#endif
	position = end[last];
	assert(intent >= position && intent - position <= ARENA);	/* else -EBADMSG */
#ifdef AT_INTENT
	position = intent;
#endif
#ifdef INTENT_BACK
	intent = position;
#endif
	atomic {
		s = last + 1;
		commit_seq = s;
		committed = position;
		state = NOT_YET;
		steps = 0;
		last = 0
	}
}

proctype Writer(byte epoch)
{
	byte s = 1, commit_seq = 1, position, committed, words, i;
	bool mixed;
	mtype state;

	{
		find_end();
#ifndef NO_MARK_AT_OPEN
		mark(s);
#endif
		if
		:: epoch > 0 ->
			tail = s - 1;
			if
			:: s <= RECORDS ->
				words = 1;
				put()
			:: else
			fi
		:: else
		fi;
		do
#ifdef PUTS
		:: s <= RECORDS ->
			words = WORDS(s);
			put()
#else
		:: s <= RECORDS ->
			words = WORDS(s);
		choose_place();
			do
			:: SLOTS_RESERVED || ARENA_RESERVED -> commit()
			:: !SLOTS_RESERVED && !ARENA_RESERVED -> break
			od;
			reserve()
#endif
		:: commit_seq < s -> commit()
		:: s > RECORDS && commit_seq == s -> break
		od;
		closed = true
	} unless { dead };
	atomic {
		alive--;
		s = 0;
		commit_seq = 0;
		position = 0;
		committed = 0;
		words = 0;
		i = 0
	}
}

init
{
	atomic {
		if
		:: large = true
		:: large = false
		fi;
		run Reader(false);
		alive = 2;
		run Device(0);
		run Writer(0)
	}
	do
	:: atomic { deaths < DEATHS && !closed ->
			deaths++;
			dead = true
		}
#ifdef COPY_OUTLIVES
		alive == 1;
#else
		alive == 0;
#endif
		atomic {
			dead = false;
			do
			:: jobs?_
			:: empty(jobs) -> break
			od;
			alive = 2;
			run Device(deaths);
			run Writer(deaths)
		}
	:: closed -> break
	od
}
