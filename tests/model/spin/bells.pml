/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents and bells between a producer, its device and the drain threads of daemons that
 * die between any two steps. What the device does is one queue; a step has two layers,
 * whose ids are a word each in an extent that is used again as soon as it is given back.
 *
 *	Producer	producer/step.c announce(), submit(), arm(), finish(); producer/extents.c
 *			extents_take(), take_back()
 *	Device		kernels/body.h: begin, captures, the end, in the stream's order
 *	Drain		capture_daemon/drain_step.c drain_step(), say_step(), step_wait(),
 *			say_end(), note_taken(), release_extent(); drain_copy.c
 *			step_copy_ready(); channel/lane.c lane_consume(). Another one begins
 *			with what the ring and the pages hold: orphans.c, remains.c
 *
 * What must hold: ids that are published are the step's own; each step is told once, and
 * whole when its device has ended it, else as dropped; every extent comes back.
 *
 * Bounds: two extents, two slots, two layers, 4 steps, one death.
 *
 * model small: -DSTEPS=3
 * model bells: -DSTEPS=5
 * model deaths: -DSTEPS=4 -DDEATHS=1
 *
 * mutant BELL_ANY -DSTEPS=4: a bell of a former step is taken for this one's
 * mutant END_LOOKED_LATE -DSTEPS=4: the end is looked at behind the bells
 * mutant END_EARLY -DSTEPS=4: the device stores the end in front of the last bell
 * mutant BELL_EARLY -DSTEPS=4: a bell is rung in front of the ids
 * mutant NO_ROOM_CHECK -DSTEPS=4: an extent is taken that is not back yet
 * mutant RELEASE_EARLY -DSTEPS=4: given back in front of the copy
 * mutant NOT_DISARMED -DSTEPS=4: what runs between two steps goes into the former's extent
 * mutant TAIL_FIRST -DSTEPS=4 -DDEATHS=1: the entry is given back in front of its extent
 * mutant RELATIVE -DSTEPS=4 -DDEATHS=1: another daemon counts an extent once more
 * mutant TOLD_FORGOTTEN -DSTEPS=4 -DDEATHS=1: it tells again what the ring says is told
 * mutant SAID_FORGOTTEN -DSTEPS=4 -DDEATHS=1: it publishes layers again
 */
#define LAYERS 2
#define EXTENTS 2
#ifndef DEATHS
#define DEATHS 0
#endif

/* the lane: each entry is one step; which extent it has, 0: dropped */
byte submitted, extent_of[STEPS + 1], taken_by[STEPS + 1];
/* the pages: bells and ends of the slots, and the daemon's words */
byte bell[EXTENTS * LAYERS], end_step[EXTENTS];
byte released, tail;
/* the buffer: ids of the extents */
byte ids[EXTENTS * LAYERS];
/* the ring: the step announced last, its layers, the step told last */
byte said_step, told_step;
bool said[LAYERS];
bool dead;
byte deaths;

/* the stream: begin, two captures and the end of a step, or of none */
mtype = { BEGIN, CAPTURE, END };
chan stream = [10] of { mtype, byte, byte };

#define PLACE(extent, layer) (((extent) - 1) * LAYERS + (layer))

active proctype Producer()
{
	byte step = 1, taken, returned;

	do
	:: step <= STEPS ->
		returned = released;
		assert(returned <= taken);
		atomic {
			if
#ifdef NO_ROOM_CHECK
			:: true ->
#else
			:: taken - returned < EXTENTS ->
#endif
				extent_of[step] = taken % EXTENTS + 1;
				taken++
			:: taken - returned == EXTENTS -> extent_of[step] = 0
			fi;
			taken_by[step] = taken;
			submitted = step
		}
		atomic {
			stream!BEGIN(step, extent_of[step]);
			stream!CAPTURE(step, 0);
			stream!CAPTURE(step, 1);
			stream!END(step, 0);
			/* A forward that nobody announced. */
			stream!CAPTURE(0, 0)
		}
		step++
	:: else -> break
	od;
	(tail == STEPS);
	assert(released == taken)
}

active proctype Device()
{
	mtype kernel;
	byte step, layer, armed, extent;

end_idle:
	do
	:: atomic { stream?kernel(step, layer) ->
		if
		:: kernel == BEGIN -> armed = step; extent = layer; layer = 0
		:: else
		fi
	   }
		if
		:: kernel == CAPTURE && extent != 0 ->
#ifdef BELL_EARLY
			bell[PLACE(extent, layer)] = armed;
#endif
			/* Of nobody's step, if it is the forward in between. */
			ids[PLACE(extent, layer)] = step;
#if !defined(BELL_EARLY) && !defined(END_EARLY)
			bell[PLACE(extent, layer)] = armed
#elif defined(END_EARLY)
			if
			:: layer + 1 < LAYERS -> bell[PLACE(extent, layer)] = armed
			:: else
			fi
#endif
		:: kernel == END && extent != 0 ->
			end_step[extent - 1] = armed;
#ifdef END_EARLY
			bell[PLACE(extent, 1)] = armed;
#endif
#ifndef NOT_DISARMED
			extent = 0
#endif
		:: else
		fi;
		atomic { kernel = 0; step = 0; layer = 0 }
	od
}

#ifdef BELL_ANY
#define RANG(layer) (bell[PLACE(extent, layer)] != 0)
#else
#define RANG(layer) (bell[PLACE(extent, layer)] == step)
#endif
#ifdef END_LOOKED_LATE
#define LOOK_FIRST false
#else
#define LOOK_FIRST (end_step[extent - 1] == step)
#endif

inline copy_ready(layer)
{
	if
	:: !done[layer] && RANG(layer) ->
		assert(ids[PLACE(extent, layer)] == step);
		atomic { assert(!said[layer]); said[layer] = true; done[layer] = true }
	:: else
	fi
}

inline work_off()
{
	do
	:: true ->
		ended = LOOK_FIRST;
		copy_ready(0);
		copy_ready(1);
#ifdef END_LOOKED_LATE
		ended = (end_step[extent - 1] == step);
#endif
		if
		:: ended -> break
		:: !ended ->
			/* Until there is something to see. */
			(end_step[extent - 1] == step || (!done[0] && RANG(0)) || (!done[1] && RANG(1)))
		fi
	od
}

#ifdef TOLD_FORGOTTEN
#define TOLD(step) false
#else
#define TOLD(step) (told_step >= (step))
#endif

proctype Drain()
{
	byte step, extent;
	bool ended, done[LAYERS];

	{
		do
		:: tail < submitted ->
			atomic { step = tail + 1; extent = extent_of[step] }
#ifdef RELEASE_EARLY
			if
			:: extent != 0 -> released = taken_by[step]
			:: else
			fi;
#endif
			if
			:: TOLD(step)
			:: said_step < step ->
				atomic { said_step = step; said[0] = false; said[1] = false }
				goto work
			:: said_step == step && !TOLD(step) ->
#ifndef SAID_FORGOTTEN
				atomic { done[0] = said[0]; done[1] = said[1] }
#endif
work:
				if
				:: extent != 0 ->
					work_off();
					assert(said[0] && said[1])	/* else missing, though it ended */
				:: else
				fi;
				atomic { assert(told_step < step); told_step = step }
			fi;
#ifdef TAIL_FIRST
			tail = step;
#endif
			if
#ifdef RELATIVE
			:: extent != 0 -> released = released + 1
#else
			:: extent != 0 -> released = taken_by[step]
#endif
			:: else
			fi;
#ifndef TAIL_FIRST
			tail = step;
#endif
			atomic { step = 0; extent = 0; ended = false; done[0] = false; done[1] = false }
		:: tail == STEPS -> break
		od
	} unless { dead };
	atomic {
		if
		:: dead -> dead = false; run Drain()
		:: else
		fi
	}
}

init
{
	run Drain();
	do
	:: atomic { deaths < DEATHS && tail < STEPS -> deaths++; dead = true }
		!dead
	:: tail == STEPS -> break
	od
}
