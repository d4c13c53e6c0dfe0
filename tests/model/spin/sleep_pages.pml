/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain thread sleeps, two threads of the producer submit and wake it. A lost
 * wake-up is a deadlock: the second that it sleeps at most is left out.
 *
 *	Producer	channel/lane.c lane_submit(), then channel/pages.c pages_wake()
 *	Drain		channel/pages.c pages_sleep(); capture_daemon/drain_thread.c drain_run(),
 *			drain_idle()
 *
 * With KILL the producer dies at any step; the daemon's main thread, which is told
 * of it (capture_daemon/drain_state.c drain_producer_gone()), then wakes the drain
 * thread. A producer that dies between clearing `sleeping` and raising `wake` has
 * nobody wake it: then only the timeout does, which this variant therefore has.
 *
 * Bounds: two threads, 3 entries each. Orders within a step are those of the code;
 * that the fences give them is shown by relacy/sleep.cpp.
 *
 * model small:
 * model killed: -DKILL
 *
 * mutant FLAG_LATE: `sleeping` set behind the second look
 * mutant NO_SECOND_LOOK: sleeps without looking again
 * mutant WORD_LATE: `wake` loaded behind the second look
 * mutant NO_WORD: woken and the word not raised
 * mutant WAKE_EARLY: wakes in front of submitting
 * mutant GONE_LATE -DKILL: whether the producer is gone is looked at behind the lanes
 * mutant NO_TIMEOUT -DKILL: sleeps on, where the producer died at the wrong step
 */
#define ENTRIES 3
byte submitted[2], wake;
bool sleeping, sleeps, dead, gone;

inline pages_wake()
{
	bool was;

	if
	:: sleeping ->
		atomic { was = sleeping; sleeping = false };
		if
		:: was ->
			was = false;
#ifndef NO_WORD
			wake++;
#endif
			sleeps = false
		:: else
		fi
	:: else
	fi
}

active [2] proctype Producer()
{
	byte n = _pid;

	{
		do
		:: submitted[n] < ENTRIES ->
#ifdef WAKE_EARLY
			pages_wake();
			submitted[n]++
#else
			submitted[n]++;
			pages_wake()
#endif
		:: else -> break
		od
	} unless { dead }
}

#ifdef KILL
active proctype Main()
{
	if
	:: dead = true;
		gone = true;
		pages_wake()
	:: submitted[0] == ENTRIES && submitted[1] == ENTRIES
	fi
}
#endif

#define IDLE (taken[0] == submitted[0] && taken[1] == submitted[1] && !gone)

active proctype Drain()
{
	byte taken[2], value;
	bool was_gone;

	do
	:: taken[0] < submitted[0] -> taken[0]++
	:: taken[1] < submitted[1] -> taken[1]++
#ifndef GONE_LATE
	:: gone && !was_gone -> was_gone = true
#endif
	:: taken[0] == submitted[0] && taken[1] == submitted[1] ->
#ifdef GONE_LATE
		was_gone = gone;
#endif
		if
		:: was_gone ->
			assert(taken[0] == submitted[0] && taken[1] == submitted[1]);
			break
		:: !was_gone && taken[0] == ENTRIES && taken[1] == ENTRIES -> break
		:: else
		fi;
#ifndef WORD_LATE
		value = wake;
#endif
#ifndef FLAG_LATE
		sleeping = true;
#endif
		if
#ifndef NO_SECOND_LOOK
		:: !IDLE
#endif
		:: IDLE ->
#ifdef FLAG_LATE
			sleeping = true;
#endif
#ifdef WORD_LATE
			value = wake;
#endif
			atomic {
				if
				:: wake == value -> sleeps = true
				:: else
				fi
			}
			if
			:: !sleeps
#if defined(KILL) && !defined(NO_TIMEOUT)
			:: dead -> sleeps = false
#endif
			fi
		fi;
		sleeping = false;
		value = 0
	od
}
