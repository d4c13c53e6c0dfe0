/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers in a poll loop, which are told by a message on their socket that something
 * came, and a writer that sends one only when it was asked for. A lost wake-up is a
 * deadlock.
 *
 *	Writer		publishes a batch, then ring/gate_watch.c gate_wake(), poke();
 *			capture_daemon/registration.c poke(): a socket that is full has enough
 *	Reader		consumer/poll.c r3ring_reader_arm(): takes messages off, raises `armed`,
 *			full fence, looks; then poll()
 *
 * Bounds: two readers, 4 batches, a socket that holds one message. Orders within a step
 * are those of the code; that the fences give them is shown by relacy/sleep_ring.cpp.
 *
 * model small:
 *
 * mutant ARM_LATE: `armed` raised behind the look
 * mutant NO_LOOK: polls without a look
 * mutant TAKE_LATE: messages taken off behind the look
 * mutant POKE_EARLY: the writer looks at `armed` in front of publishing
 * mutant POKE_ONCE: a reader that arms again is not told again
 * mutant ARM_SAME: a reader arms with the value it had
 */
#define BATCHES 4
#define READERS 2
byte published, armed[READERS], messages[READERS];

inline poke(n)
{
	now = armed[n];
	if
#ifdef POKE_ONCE
	:: now != poked[n] && poked[n] == 0 ->
#else
	:: now != poked[n] ->
#endif
		poked[n] = now;
		atomic {
			if
			:: messages[n] == 0 -> messages[n] = 1
			:: else
			fi
		}
	:: else
	fi;
	now = 0
}

active proctype Writer()
{
	byte poked[READERS], now;

	do
	:: published < BATCHES ->
#ifdef POKE_EARLY
		poke(0);
		poke(1);
		published++
#else
		published++;
		poke(0);
		poke(1)
#endif
	:: else -> break
	od
}

active [READERS] proctype Reader()
{
	byte cursor, value, n = _pid - 1;

	do
	:: cursor == BATCHES -> break
	:: cursor < BATCHES && cursor < published -> cursor++
	:: cursor < BATCHES && cursor >= published ->
#ifndef TAKE_LATE
		messages[n] = 0;
#endif
#ifndef ARM_SAME
		value++;
#else
		value = 1;
#endif
#ifndef ARM_LATE
		armed[n] = value;
#endif
		if
#ifndef NO_LOOK
		:: cursor < published
#endif
		:: cursor >= published ->
#ifdef ARM_LATE
			armed[n] = value;
#endif
#ifdef TAKE_LATE
			messages[n] = 0;
#endif
			messages[n] > 0		/* poll() */
		fi
	od
}
