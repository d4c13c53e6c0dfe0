/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lossless readers hold the writer back within their limits; then they are demoted
 * and read on as lossy readers. A reader may stop for ever at any step, one comes while
 * the writer writes, and with LIAR its page holds whatever somebody stores there.
 *
 *	oldest_within()	ring/gate_keep.c oldest_within(): where a reader that comes begins
 *	admit_new()	admit_new(), admit()
 *	follow()	follow(), with note_progress()
 *	look()		look(), granted(), hard_end()
 *	admit		gate_admits(), with the answer that is kept
 *	stall()		gate_demote(), in_the_way(), demote() and capture_daemon/stall.c; with
 *			LIAR a reader's time is counted in turns, without it may be over at any
 *	Writer		ring/writer.c r3ring_writer_put() behind gate_shut()
 *	Registrar	gate_add()
 *	Reader		ring/cursor.c r3ring_cursor_next(), r3ring_cursor_check(); then
 *			consumer/reader.c stores the cursor, behind the last use of a view
 *
 * What a reader must see: no torn record, no loss before it was demoted, every
 * record from the first that is held for it got or lost; and it is held for from the
 * writer's next record on. What the writer must see: it
 * gets to its end whatever readers do (else there is a deadlock here), and a liar makes
 * it wait no longer than its time.
 *
 * Bounds: two readers, records of one arena unit; 4 slots and 8 units, or 8 and 4; intent
 * in steps of 2 units; limits of a quarter of both for one reader, of three for the other.
 * RESERVE: 8 slots and 16 units, 7/8 for both.
 *
 * model small: -DRECORDS=5 -DDEPTH=4 -DARENA=8
 * model few_slots: -DRECORDS=7 -DDEPTH=4 -DARENA=8
 * model small_arena: -DRECORDS=7 -DDEPTH=8 -DARENA=4
 * model reserve: -DRECORDS=9 -DDEPTH=8 -DARENA=16 -DRESERVE
 * model liar: -DRECORDS=5 -DDEPTH=4 -DARENA=8 -DLIAR
 *
 * mutant NO_GATE -DRECORDS=6 -DDEPTH=4 -DARENA=8: nobody holds the writer back
 * mutant GATE_ONE -DRECORDS=6 -DDEPTH=4 -DARENA=8: one reader alone is looked at
 * mutant NO_SEQ_LIMIT -DRECORDS=6 -DDEPTH=4 -DARENA=8: descriptors are not counted
 * mutant NO_BYTE_LIMIT -DRECORDS=6 -DDEPTH=8 -DARENA=4: the arena is not counted
 * mutant NO_MARKER_ROOM -DRECORDS=6 -DDEPTH=4 -DARENA=8: slots up to the last are granted
 * mutant NO_INTENT_ROOM -DRECORDS=6 -DDEPTH=8 -DARENA=4: arena up to the last unit is granted
 * mutant CHANGES_IGNORED -DRECORDS=6 -DDEPTH=4 -DARENA=8: the kept answer holds though a reader came
 * mutant HELD_TOO_OLD -DRECORDS=6 -DDEPTH=4 -DARENA=8: a reader that comes begins beyond its limits
 * mutant RELEASE_EARLY -DRECORDS=6 -DDEPTH=8 -DARENA=4: released in front of the use
 * mutant NO_DEMOTION -DRECORDS=6 -DDEPTH=4 -DARENA=8: a stopped reader holds for ever
 * mutant GATED_STILL -DRECORDS=6 -DDEPTH=4 -DARENA=8: a demoted one still holds
 * mutant NO_CHECK -DRECORDS=6 -DDEPTH=8 -DARENA=4: views of lossless readers unchecked
 * mutant CURSOR_BACK -DRECORDS=5 -DDEPTH=4 -DARENA=8 -DLIAR: a cursor that goes back is believed
 */
#define READERS 2
#define INTENT_STEP 2
#define SLOT(s) ((s) % DEPTH)
#define ROUNDED(x) (((x) + INTENT_STEP - 1) / INTENT_STEP * INTENT_STEP)
#define KEPT(s) (intent <= pos[s] + ARENA)
#define STALL_TURNS 2

mtype = { ADMITTING, ADMITTED, DEMOTED };

/* the segment */
byte intent, slot[DEPTH], arena[ARENA];
bool closed;
/* the readers' pages: their own line, and the daemon's */
byte cursor_of[READERS] = 1, held[READERS];
mtype state[READERS] = ADMITTING;
/* members of the gate */
bool present[READERS];
byte changes;
/* where each record lies, and the writer's front */
byte pos[RECORDS + 3], next_seq = 1, position;
/* of the ring, in eighths */
byte share[READERS];

#define RECORD_LIMIT(n) (share[n] * DEPTH / 8)
#define BYTE_LIMIT(n) (share[n] * ARENA / 8)
#ifdef RESERVE
#define GRANTED_RECORDS(n) (7 * DEPTH / 8)
#define GRANTED_BYTES(n) (7 * ARENA / 8)
#elif defined(NO_MARKER_ROOM)
#define GRANTED_RECORDS(n) (DEPTH + 1)
#define GRANTED_BYTES(n) BYTE_LIMIT(n)
#elif defined(NO_INTENT_ROOM)
#define GRANTED_RECORDS(n) RECORD_LIMIT(n)
#define GRANTED_BYTES(n) (ARENA)
#else
#define GRANTED_RECORDS(n) RECORD_LIMIT(n)
#define GRANTED_BYTES(n) BYTE_LIMIT(n)
#endif
#ifdef NO_SEQ_LIMIT
#define SEQ_END(n) 255
#else
#define SEQ_END(n) (believed[n] + GRANTED_RECORDS(n))
#endif
#ifdef NO_BYTE_LIMIT
#define POS_END(n) 255
#else
#define POS_END(n) (POS(believed[n]) + GRANTED_BYTES(n))
#endif
#define POS(s) ((s) >= next_seq -> position : pos[s])
#ifdef GATED_STILL
#define HOLDS(n) (present[n] && state[n] != ADMITTING)
#else
#define HOLDS(n) (present[n] && state[n] == ADMITTED)
#endif

/* With the lock held; nobody else stores what it looks at but the pages' cursors. */
inline oldest_within(n)
{
#ifdef HELD_TOO_OLD
	i = (next_seq > DEPTH -> next_seq - DEPTH : 1);
#else
	i = 1;
	do
	:: i < next_seq && (next_seq - i > RECORD_LIMIT(n) || position - POS(i) > BYTE_LIMIT(n)) ->
		i++
	:: else -> break
	od;
#endif
	believed[n] = i;
	held[n] = i;
	i = 0
}

inline admit_new()
{
	if
	:: present[1] && state[1] == ADMITTING ->
		oldest_within(1);
		state[1] = ADMITTED
	:: else
	fi;
	seen = changes
}

inline follow(n)
{
	i = cursor_of[n];
	if
#ifndef CURSOR_BACK
	:: i < believed[n] -> i = believed[n]
#endif
	:: i > next_seq -> i = next_seq
	:: else
	fi;
#ifdef LIAR
	/* Unsigned: a way back looks like a long way forward. */
	if
	:: i != believed[n] -> stalled[n] = 0
	:: else
	fi;
#endif
	believed[n] = i;
	i = 0
}

inline look_at(n)
{
	if
	:: HOLDS(n) ->
		follow(n);
		if
		:: SEQ_END(n) < free_seq -> free_seq = SEQ_END(n)
		:: else
		fi;
		if
		:: POS_END(n) < free_pos -> free_pos = POS_END(n)
		:: else
		fi
	:: else
	fi
}

#ifdef CHANGES_IGNORED
#define KNOWN true
#else
#define KNOWN (changes == seen)
#endif
#define COVERED (next_seq + 1 <= free_seq && end <= free_pos)
#define IN_THE_WAY(n) (HOLDS(n) && (next_seq + 1 > SEQ_END(n) || end > POS_END(n)))

/* The gate is shut: somebody's time is over, or somebody makes room. */
inline stall()
{
#ifdef LIAR
	n = 0;
	do
	:: n < READERS && IN_THE_WAY(n) ->
		stalled[n]++;
		if
		:: stalled[n] == STALL_TURNS -> state[n] = DEMOTED; stalled[n] = 0
		:: else
		fi;
		n++
	:: n < READERS && !IN_THE_WAY(n) -> n++
	:: n == READERS -> n = 0; break
	od;
	turns++;
	assert(turns <= STALL_TURNS * DEPTH)
#else
	if
	:: IN_THE_WAY(0) && cursor_of[0] > believed[0]
	:: IN_THE_WAY(1) && cursor_of[1] > believed[1]
#ifndef NO_DEMOTION
	:: IN_THE_WAY(0) && state[0] == ADMITTED -> state[0] = DEMOTED
	:: IN_THE_WAY(1) && state[1] == ADMITTED -> state[1] = DEMOTED
#endif
	fi
#endif
}

proctype Writer()
{
	byte believed[READERS] = 1;
	byte seen, free_seq, free_pos, end, i;
	bool came;	/* a reader that is there at the record's begin */
#ifdef LIAR
	byte stalled[READERS], n, turns;
#endif

reserve:
	atomic {
		if
		:: next_seq > RECORDS -> goto finish
		:: else -> pos[next_seq] = position; end = position + 1; came = present[1]
		fi
	}
#ifndef NO_GATE
admit:
	atomic {
		if
		:: KNOWN && COVERED -> goto write
		:: else
		fi;
		if
		:: changes != seen -> admit_new()
		:: else
		fi;
		free_seq = 255;
		free_pos = 255;
		look_at(0)
	}
	atomic {
#ifndef GATE_ONE
		look_at(1);
#endif
		if
		:: COVERED -> goto write
		:: else -> free_seq = 0; free_pos = 0
		fi
	}
	atomic { stall(); goto admit }
#endif
write:
	atomic {
#ifndef NO_GATE
		assert(!came || state[1] != ADMITTING);
#endif
		came = false;
#ifdef LIAR
		turns = 0;
#endif
		if
		:: end > intent -> intent = ROUNDED(end)
		:: else
		fi
	}
	arena[pos[next_seq] % ARENA] = next_seq;
	atomic {
		slot[SLOT(next_seq)] = next_seq;
		position = end;
		end = 0;
		next_seq++
	}
	slot[SLOT(next_seq)] = next_seq - 1;
	goto reserve;

finish:
	closed = true
}

proctype Registrar()
{
	d_step { present[1] = true; changes++ }
}

#ifdef LIAR
proctype Liar()
{
	byte stores;

	do
	:: stores < 4 ->
		if
		:: cursor_of[1] = 0
		:: cursor_of[1] = next_seq - 1
		:: cursor_of[1] = next_seq + 1
		fi;
		stores++
	:: closed -> break
	:: stores == 4 ->
		/* For ever on: forward and back again. */
		if
		:: closed -> break
		:: cursor_of[1] = (cursor_of[1] == 0 -> next_seq - 1 : 0)
		fi
	od
}
#endif

proctype Reader(byte n)
{
	byte cursor;
	bool torn, whole;

	state[n] != ADMITTING || closed;
	if
	:: state[n] == ADMITTING -> goto done
	:: else -> cursor = held[n]
	fi;
next:
	if
	:: slot[SLOT(cursor)] == cursor
	:: slot[SLOT(cursor)] > cursor -> goto gone
	:: closed && slot[SLOT(cursor)] < cursor ->
		assert(cursor == RECORDS + 1);
		goto done
	:: cursor <= RECORDS -> goto done		/* stopped for ever */
	fi;
#ifdef RELEASE_EARLY
	cursor_of[n] = cursor + 1;
#endif
	torn = (arena[pos[cursor] % ARENA] != cursor);
#ifdef NO_CHECK
	whole = true;
#else
	whole = KEPT(cursor);
#endif
	if
	:: whole ->
		assert(!torn);
		d_step { cursor++; torn = false; whole = false }
		cursor_of[n] = cursor;
		goto next
	:: !whole -> goto gone
	fi;

gone:
	assert(state[n] == DEMOTED);		/* nothing is lost before */
	d_step { cursor++; torn = false; whole = false };
	goto next;
done:
	skip
}

init
{
	atomic {
		present[0] = true;
		state[0] = ADMITTED;
		held[0] = 1;
		if
		:: share[0] = 2; share[1] = 6
		:: share[0] = 6; share[1] = 2
		fi;
		run Writer();
		run Registrar();
		run Reader(0);
#ifdef LIAR
		run Liar()
#else
		run Reader(1)
#endif
	}
}
