/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that die one after the other, at any step, and a lossless reader that comes back
 * to any of them, or to none for as long as it likes: while it lives, and nobody's time is
 * over, nothing that it has yet to read is overwritten.
 *
 *	Writer		ring/gate_keep.c gate_keep(), gate_hold(), gate_begin_of();
 *			ring/gate.c gate_admits(), follow(), gate_is_behind();
 *			capture_daemon/drain_state.c some_are_absent(), let_go()
 *	Reader		consumer/follow.c take_answer(), register_anew()
 *
 * A record is a byte long, so that the limits in records and in bytes are one. The ring is
 * that of a channel that drops steps, which may go beyond what a reader is granted.
 *
 * model small:
 *
 * mutant KEEP_ANEW: a daemon keeps the newest part, whatever the dead one kept
 * mutant ADMIT_NEWEST: who comes back is admitted at its own limit of the newest part
 * mutant LET_GO_BEHIND: let go though the reader has more unread than the next one keeps
 * mutant LET_GO_ABSENT: let go though nobody has come back
 * mutant KEEP_GRANTED: kept is what a reader is granted, not what it can have left unread
 */
#define RING 6
#define HELD 5
#define KEPT 4
#define GRANTED 2
#define DEATHS 4
#define RECORDS 13

byte tail = 1;		/* of the next record */
byte cursor = 1;	/* of the reader */
byte epoch, shown;	/* of the writer; under which the reader's lock is */
byte kept_from;
bool keeps;

/* The present daemon's, and gone with it. */
bool serving, asked, member;
byte page, member_at;

#define LAG(seq) (tail - (seq))
#define DIE								\
	if								\
	:: deaths < DEATHS -> deaths++; goto dead			\
	:: true								\
	fi

inline find_kept(most)
{
#ifndef KEEP_ANEW
	if
	:: keeps && kept_from <= tail && LAG(kept_from) <= HELD -> from = kept_from
	:: else
#endif
		from = (tail > most + 1 -> tail - most : 1)
#ifndef KEEP_ANEW
	fi
#endif
}

inline admit()
{
	d_step {
#ifdef ADMIT_NEWEST
		member_at = (tail > GRANTED + 1 -> tail - GRANTED : 1);
#else
		member_at = (tail > GRANTED + 1 -> tail - GRANTED : 1);
		if
		:: keeps && LAG(kept_from) <= HELD && kept_from < member_at ->
			member_at = kept_from
		:: else
		fi;
#endif
		member = true;
		asked = false
	}
}

inline follow()
{
	if
	:: page > member_at -> member_at = page
	:: else
	fi
}

active proctype Writer()
{
	byte from, deaths;
	bool hold;

	d_step { serving = true; member = true; member_at = 1 };
	goto work;
dead:
	skip;
	d_step { serving = false; asked = false; member = false; page = 0; member_at = 0 };
	epoch++;
	DIE;
	d_step {
#ifdef KEEP_GRANTED
		find_kept(GRANTED);
#else
		find_kept(KEPT);
#endif
		kept_from = from
	};
	DIE;
	keeps = true;
	DIE;
	hold = true;
	serving = true;
work:
	do
	:: asked -> admit(); DIE
	:: atomic {
		tail <= RECORDS && (!hold || LAG(from) < HELD) ->
		if
		:: member -> follow()
		:: else
		fi;
		if
		:: !member || LAG(member_at) < KEPT ->
			tail++;
			assert(tail - cursor <= RING)
		:: else
		fi
	   };
	   DIE
#ifdef LET_GO_ABSENT
	:: atomic { hold ->
#else
	:: atomic { hold && shown == epoch && member && !asked ->
#endif
		follow();
		if
#ifdef LET_GO_BEHIND
		:: true ->
#else
		:: !member || LAG(member_at) <= KEPT ->
#endif
			keeps = false;
			hold = false
#ifndef LET_GO_BEHIND
		:: else
#endif
		fi
	   };
	   DIE
	:: tail > RECORDS && !asked -> break
	od
}

/* Looks and reads on whether or not the present daemon knows it. */
active proctype Reader()
{
	byte known, answered;

	do
	:: cursor > RECORDS -> break
	:: cursor < tail && cursor <= RECORDS ->
		cursor++;
		atomic {
			if
			:: known == epoch -> page = cursor
			:: else
			fi
		}
	:: atomic { cursor <= RECORDS && serving && known != epoch ->
		asked = true;
		answered = epoch
	   };
	   shown = answered;
	   atomic {
		if
		:: answered == epoch -> page = cursor
		:: else
		fi;
		known = answered
	   }
	od
}
