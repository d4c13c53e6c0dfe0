/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered readers that sleep while nothing is new, and a writer that makes a
 * system call only when one does. A lost wake-up is a deadlock here: the second
 * that a reader sleeps at most is left out.
 *
 *	Writer		publishes a batch, then ring/gate.c gate_wake(): full fence, look at
 *			each waiting flag, `wake` + 1 and one FUTEX_WAKE
 *	Reader		consumer/wait.c reader_sleep(): sets `waiting` in its own page, full
 *			fence; ring/cursor.c r3ring_cursor_wait(): loads `wake`, looks again,
 *			FUTEX_WAIT(wake, that value)
 *
 * With UNREGISTERED readers have no page: ring/writer.c r3ring_writer_wake()
 * without a gate, ring/cursor.c r3ring_cursor_wait().
 *
 * Bounds: two readers, 4 batches of one record. All steps are in the order of the
 * code here; that the fences give it is shown by relacy/sleep.cpp.
 *
 * model small:
 * model unregistered: -DUNREGISTERED
 *
 * mutant FLAG_LATE: `waiting` set behind the second look
 * mutant NO_SECOND_LOOK: sleeps without looking again
 * mutant WORD_LATE: `wake` loaded behind the second look
 * mutant NO_WORD: the writer wakes and does not raise the word
 * mutant WAKE_EARLY: the writer looks at the flags in front of publishing
 * mutant WAKE_ONE: the writer wakes one sleeper, not all
 */
#define BATCHES 4
byte published, wake;
bool waiting[2], sleeps[2];

/* The kernel: compares and goes to sleep in one step. */
inline futex_wait(n, value)
{
	atomic {
		if
		:: wake == value -> sleeps[n] = true
		:: else
		fi
	}
	!sleeps[n]
}

inline futex_wake()
{
#ifdef WAKE_ONE
	atomic {
		if
		:: sleeps[0] -> sleeps[0] = false
		:: !sleeps[0] -> sleeps[1] = false
		fi
	}
#else
	d_step { sleeps[0] = false; sleeps[1] = false }
#endif
}

inline wake_all()
{
#ifdef UNREGISTERED
	any = true;
#else
	any = waiting[0];
	any = any || waiting[1];
#endif
	if
	:: any ->
#ifndef NO_WORD
		wake++;
#endif
		futex_wake()
	:: else
	fi;
	any = false
}

active proctype Writer()
{
	bool any;

	do
	:: published < BATCHES ->
#ifdef WAKE_EARLY
		wake_all();
		published++
#else
		published++;
		wake_all()
#endif
	:: else -> break
	od
}

active [2] proctype Reader()
{
	byte cursor, value, n = _pid - 1;

	do
	:: cursor == BATCHES -> break
	:: cursor < BATCHES && cursor < published -> cursor++
	:: cursor < BATCHES && cursor >= published ->
#if !defined(FLAG_LATE) && !defined(UNREGISTERED)
		waiting[n] = true;
#endif
#ifndef WORD_LATE
		value = wake;
#endif
		if
#ifndef NO_SECOND_LOOK
		:: cursor < published
#endif
		:: cursor >= published ->
#ifdef FLAG_LATE
			waiting[n] = true;
#endif
#ifdef WORD_LATE
			value = wake;
#endif
			futex_wait(n, value)
		fi;
		waiting[n] = false;
		value = 0
	od
}
