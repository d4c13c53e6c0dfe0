/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two lanes and one order, while daemons die between any two steps and the next goes on
 * where the tails say. An announcement that finds no room is kept by the producer, which
 * hands it on later; nothing overtakes it.
 *
 *	Steps, Sides	channel/lane.c lane_submit(); producer/step.c submit(), and
 *			producer/announce.c put_or_keep(), producer_flush_spill()
 *	init_lane()	channel/lane.c lane_reader_init()
 *	peek()		lane_peek(), number_fits()
 *	Drain		lane_next(), lane_consume(); what is handled is told in the ring first
 *
 * What must hold: no honest lane is called corrupt; entries are told in their order, none
 * is left out; a step comes behind every announcement that was made before it, and an
 * announcement behind every step that it says.
 *
 * Bounds: 2 steps, 2 announcements, one or two deaths.
 *
 * model small: -DSTEPS=1
 * model lanes: -DSTEPS=2
 * model two_deaths: -DSTEPS=1 -DDEATHS=2
 *
 * mutant SETTLED -DSTEPS=2: an entry does not correct what the head said
 * mutant NUMBER_EARLY -DSTEPS=2: the number stored in front of the position
 * mutant READ_ONCE -DSTEPS=2: the number of an empty lane is read when the daemon begins
 * mutant PEEK_ONCE -DSTEPS=2: no second look at the steps once an announcement is seen
 * mutant ORDER_IGNORED -DSTEPS=2: announcements are taken whatever they say
 * mutant AFTER_IGNORED -DSTEPS=2: steps are taken whatever they say
 * mutant KEPT_UNCOUNTED -DSTEPS=2: a step counts what is in the lane, not what is kept
 * mutant TAIL_EARLY -DSTEPS=2: an entry is given back in front of its handling
 */
#define ANNOUNCEMENTS 2
#ifndef DEATHS
#define DEATHS 1
#endif
#define STEP 0
#define SIDE 1

/* the pages: heads, tails and entries of both lanes */
byte number[2], position[2], tail[2], step_after[STEPS + 1], side_after[ANNOUNCEMENTS + 1];
/* the producer's own: what each thread tells the other */
byte steps_done, announced;
/* known to the model alone: announced when a step was made; told in the ring */
byte announced_at[STEPS + 1], told[2];
bool dead;
byte deaths;

inline submit(lane, n)
{
#ifdef NUMBER_EARLY
	number[lane] = n;
	position[lane] = n
#else
	position[lane] = n;
	number[lane] = n
#endif
}

active proctype Steps()
{
	byte n = 1;

	do
	:: atomic { n <= STEPS ->
			announced_at[n] = announced;
#ifdef KEPT_UNCOUNTED
			step_after[n] = position[SIDE]
#else
			step_after[n] = announced
#endif
		}
		submit(STEP, n);
		atomic { steps_done = n; n++ }
	:: else -> break
	od
}

active proctype Sides()
{
	byte n = 1;

	do
	:: atomic { n <= ANNOUNCEMENTS -> side_after[n] = steps_done }
		if
		:: submit(SIDE, n); announced = n
		:: announced = n; submit(SIDE, n)	/* was kept */
		fi;
		n++
	:: else -> break
	od
}

inline init_lane(lane)
{
	at[lane] = tail[lane];
	unsettled[lane] = true;
#ifdef READ_ONCE
	taken[lane] = number[lane];
#endif
	peek(lane)
}

/* Leaves there[lane]. */
inline peek(lane)
{
#ifndef READ_ONCE
	atomic {
		if
		:: unsettled[lane] -> taken[lane] = number[lane]
		:: else
		fi
	}
#endif
	atomic {
		there[lane] = (position[lane] > at[lane]);
#ifndef SETTLED
		if
		:: there[lane] && unsettled[lane] -> taken[lane] = at[lane]
		:: else
		fi;
#endif
		if
		:: there[lane] -> unsettled[lane] = false
		:: else
		fi;
		assert(!there[lane] || at[lane] == taken[lane])	/* else -EBADMSG */
	}
}

inline consume(lane)
{
#ifdef TAIL_EARLY
	tail[lane] = at[lane] + 1;
#endif
	atomic {
		/* Once more, if the daemon before had told it. */
		assert(told[lane] == at[lane] || told[lane] == at[lane] + 1);
		told[lane] = at[lane] + 1;
		assert(lane == SIDE || told[SIDE] >= announced_at[told[STEP]]);
		assert(lane == STEP || told[STEP] >= side_after[told[SIDE]])
	}
	atomic {
		at[lane]++;
		tail[lane] = at[lane];
		taken[lane] = at[lane];
		there[STEP] = false;
		there[SIDE] = false
	}
}

#ifdef ORDER_IGNORED
#define SIDE_NEXT there[SIDE]
#else
#define SIDE_NEXT (there[SIDE] && side_after[at[SIDE] + 1] <= taken[STEP])
#endif
#ifdef AFTER_IGNORED
#define STEP_NEXT there[STEP]
#else
#define STEP_NEXT (there[STEP] && step_after[at[STEP] + 1] <= taken[SIDE])
#endif

#define ALL_TAKEN (tail[STEP] == STEPS && tail[SIDE] == ANNOUNCEMENTS)

proctype Drain()
{
	byte at[2], taken[2];
	bool unsettled[2], there[2];

	{
		init_lane(STEP);
		init_lane(SIDE);
		do
		:: ALL_TAKEN -> break
		:: else ->
			peek(STEP);
			peek(SIDE);
#ifndef PEEK_ONCE
			if
			:: there[SIDE] && !there[STEP] -> peek(STEP)
			:: else
			fi;
#endif
			if
			:: SIDE_NEXT -> consume(SIDE)
			:: !SIDE_NEXT && STEP_NEXT -> consume(STEP)
			:: !SIDE_NEXT && !STEP_NEXT ->
				assert(!there[SIDE]);		/* else -EBADMSG */
				(position[SIDE] > at[SIDE] || (!there[STEP] && position[STEP] > at[STEP]) ||
					(unsettled[SIDE] && number[SIDE] > taken[SIDE]))
			fi
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
	:: atomic { deaths < DEATHS && !ALL_TAKEN -> deaths++; dead = true }
		!dead
	:: ALL_TAKEN -> break
	od
}
