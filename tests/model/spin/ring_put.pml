/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records put one at a time, copied by the writer itself; readers that are
 * overrun find their way back. See ring.inc and writer.inc for what stands for
 * which function.
 *
 * Bounds: 4 slots, 8 arena words, intent in steps of 2 words, up to 9 records of
 * 0 (inline), 1 and 3 words.
 *
 * model small: -DRECORDS=7
 * model lossy: -DRECORDS=9
 * model latest: -DRECORDS=8 -DLATEST=true
 * model two_readers: -DRECORDS=4 -DTWO_READERS
 *
 * mutant NO_INTENT: what is overwritten is not announced
 * mutant INTENT_LATE: announced behind the payload
 * mutant NO_MARKER: the next slot is not marked
 * mutant MARKER_LATE: marked behind the fields
 * mutant SEQ_EARLY: published in front of the fields
 * mutant TAIL_EARLY: the tail in front of the record's sequence
 * mutant NO_SECOND_LOOK: the copied descriptor's sequence is not looked at again
 * mutant NO_INTENT_CHECK: the reader ignores the intent
 * mutant NO_CHECK_AFTER_USE: views are believed unchecked
 */
#ifndef RECORDS
#define RECORDS 8
#endif
#ifndef LATEST
#define LATEST false
#endif
#define DEPTH 4
#define ARENA 8
#define INTENT_STEP 2
#include "ring.inc"
#include "writer.inc"

proctype Writer()
{
	byte s = 1, commit_seq = 1, position, committed, words, i;

	do
	:: s <= RECORDS ->
		words = WORDS(s);
		put()
	:: else -> break
	od;
	closed = true
}

init
{
	atomic {
		if
		:: large = true
		:: large = false
		fi;
		run Writer();
		run Reader(LATEST);
#ifdef TWO_READERS
		run Reader(true)
#endif
	}
}
