/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records reserved, filled by a device's copies in flight, which two engines do at
 * their own pace and in any order, and published in order. See ring.inc and
 * writer.inc for what stands for which function.
 *
 *	Device		device/host.c host_copy(), or the copy engines of a GPU
 *
 * Bounds: 4 slots (so 2 in flight), 8 arena words, intent in steps of 2 words, 7
 * records of 0, 1 and 3 words.
 *
 * model small: -DRECORDS=5
 * model lossy: -DRECORDS=7
 * model buffered: -DRECORDS=5 -DBUFFERED
 *
 * mutant INTENT_LATE: announced at commit, not before the copy begins
 * mutant NO_MARKER: the next slot is not marked
 * mutant NO_SLOT_LIMIT: as many records in flight as there are slots and more
 * mutant COMMIT_EARLY: published before its copy is done
 * mutant NO_FULL_FENCE -DRECORDS=6 -DBUFFERED: a copy is enqueued while the intent is still on its way
 * mutant NO_INTENT_CHECK: the reader ignores the intent
 * mutant NO_CHECK_AFTER_USE: views are believed unchecked
 */
#ifndef RECORDS
#define RECORDS 7
#endif
#define DEPTH 4
#define ARENA 8
#define INTENT_STEP 2
#include "ring.inc"

chan jobs = [8] of { byte };
bool copied[RECORDS + 2];

#include "writer.inc"

proctype Device()
{
	byte s, i;

end_idle:
	do
	:: atomic { jobs?s -> i = pos[s] }
		do
		:: i < end[s] -> d_step { arena[i % ARENA] = TAG_OF(s); i++ }
		:: else -> break
		od;
		atomic { copied[s] = true; s = 0; i = 0 }
	od
}

proctype Writer()
{
	byte s = 1, commit_seq = 1, position, committed, words;
#ifdef BUFFERED
	byte announced;
#endif

	do
	:: s <= RECORDS ->
		words = WORDS(s);
		choose_place();
		do
		:: SLOTS_RESERVED || ARENA_RESERVED -> commit()
		:: !SLOTS_RESERVED && !ARENA_RESERVED -> break
		od;
		reserve()
	:: commit_seq < s -> commit()
	:: s > RECORDS && commit_seq == s -> break
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
		run Device();
		run Device();
#ifdef BUFFERED
		run StoreBuffer();
#endif
		run Reader(false)
	}
}
