/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lossless readers hold the writer back, up to their limit; then they are demoted
 * and read on as lossy readers. A reader may stop for ever at any step.
 *
 *	ADMITTED()	ring/gate.c gate_admits(), look(), holds_back(): the slots that a
 *			record and its marker take, and the arena up to its intent as rounded
 *			up, must have been released by every reader that is not demoted. The
 *			code grants at most 7/8 of the ring, which covers marker and rounding
 *	Writer		ring/writer.c r3ring_writer_put() behind that gate; where it is
 *			shut either a cursor moves or the limit is over
 *	Reader		ring/cursor.c r3ring_cursor_next(), r3ring_cursor_check(); then
 *			consumer/reader.c stores the cursor, behind the last use of a view
 *
 * What a reader must see: no torn record, no loss before it was demoted, every
 * record got or lost. What the writer must see: it gets to its end whatever readers
 * do (else there is a deadlock here).
 *
 * Bounds: two readers, records of one arena unit with two words, 4 slots and 8
 * units, or 8 slots and 4 units; intent in steps of 2 units.
 *
 * model small: -DRECORDS=5 -DDEPTH=4 -DARENA=8
 * model few_slots: -DRECORDS=7 -DDEPTH=4 -DARENA=8
 * model small_arena: -DRECORDS=7 -DDEPTH=8 -DARENA=4
 *
 * mutant NO_GATE -DRECORDS=6 -DDEPTH=4 -DARENA=8: nobody holds the writer back
 * mutant GATE_ONE -DRECORDS=6 -DDEPTH=4 -DARENA=8: one reader alone is looked at
 * mutant NO_MARKER_SLOT -DRECORDS=6 -DDEPTH=4 -DARENA=8: no slot for the marker
 * mutant NO_ROUNDING -DRECORDS=6 -DDEPTH=8 -DARENA=4: the intent's rounding is left out
 * mutant RELEASE_EARLY -DRECORDS=6 -DDEPTH=8 -DARENA=4: released in front of the use
 * mutant NO_DEMOTION -DRECORDS=6 -DDEPTH=4 -DARENA=8: a stopped reader holds for ever
 * mutant GATED_STILL -DRECORDS=6 -DDEPTH=4 -DARENA=8: a demoted one still holds
 * mutant NO_CHECK -DRECORDS=6 -DDEPTH=8 -DARENA=4: views of lossless readers unchecked
 */
#define READERS 2
#define SLOT(s) ((s) % DEPTH)
#define UNIT(s) (((s) - 1) % ARENA)
#define ROUNDED(s) (((s) + 1) / 2 * 2)
#define KEPT(s) (intent <= (s) - 1 + ARENA)

byte intent, slot[DEPTH], word0[ARENA], word1[ARENA];
byte released[READERS];		/* in the reader's page: up to which it has read */
bool demoted[READERS];
bool closed;

#ifdef NO_MARKER_SLOT
#define SLOTS_FREE(s, n) ((s) <= released[n] + DEPTH)
#else
#define SLOTS_FREE(s, n) ((s) + 1 <= released[n] + DEPTH)
#endif
#ifdef NO_ROUNDING
#define UNITS_FREE(s, n) ((s) <= released[n] + ARENA)
#else
#define UNITS_FREE(s, n) (ROUNDED(s) <= released[n] + ARENA)
#endif
#ifdef GATED_STILL
#define ADMITTED(s, n) (SLOTS_FREE(s, n) && UNITS_FREE(s, n))
#else
#define ADMITTED(s, n) (demoted[n] || (SLOTS_FREE(s, n) && UNITS_FREE(s, n)))
#endif

inline pass(n)
{
	if
	:: ADMITTED(s, n)
#ifndef NO_DEMOTION
	:: d_step { !ADMITTED(s, n) && !demoted[n] -> demoted[n] = true }
#endif
	fi
}

active proctype Writer()
{
	byte s = 1;

	do
	:: s <= RECORDS ->
#ifndef NO_GATE
		pass(0);
#ifndef GATE_ONE
		pass(1);
#endif
#endif
		intent = ROUNDED(s);
		word0[UNIT(s)] = s;
		word1[UNIT(s)] = s;
		slot[SLOT(s)] = s;
		slot[SLOT(s + 1)] = s;
		s++
	:: else -> break
	od;
	closed = true
}

active [READERS] proctype Reader()
{
	byte cursor = 1, got, lost, n = _pid - 1;
	bool torn, whole;

next:
	assert(got + lost == cursor - 1);
	if
	:: slot[SLOT(cursor)] == cursor
	:: slot[SLOT(cursor)] > cursor -> goto gone
	:: closed && slot[SLOT(cursor)] < cursor ->
		assert(cursor == RECORDS + 1);
		goto done
	:: cursor <= RECORDS -> goto done		/* stopped for ever */
	fi;
#ifdef RELEASE_EARLY
	released[n] = cursor;
#endif
	torn = (word0[UNIT(cursor)] != cursor);
	torn = (torn || word1[UNIT(cursor)] != cursor);
#ifdef NO_CHECK
	whole = true;
#else
	whole = KEPT(cursor);
#endif
	if
	:: whole ->
		assert(!torn);
		d_step { got++; cursor++; torn = false; whole = false }
		released[n] = cursor - 1;
		goto next
	:: !whole -> goto gone
	fi;

gone:
	assert(demoted[n]);		/* nothing is lost before */
	d_step { lost++; cursor++; torn = false; whole = false };
	goto next;
done:
	skip
}
