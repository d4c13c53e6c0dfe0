// SPDX-License-Identifier: Apache-2.0
//
// Two lanes and the one order of what goes through them. Entries are plain
// memory: an access that nothing orders behind the other side's is a failure.
//
//	submit()	channel/lane.c has_room(), lane_reserve(), lane_submit(); `after`
//			is taken as in producer/announce.c
//	peek()		channel/lane.c lane_peek()
//	consume()	channel/lane.c lane_consume()
//	next()		channel/lane.c lane_next()
//
// Lanes of two entries; three steps and two announcements.
//
// mutant position_store: a lane's position stored relaxed
// mutant position_load: loaded relaxed by the daemon
// mutant tail_store: the tail stored relaxed
// mutant tail_load: loaded relaxed by the producer
// mutant number_store: the number for the other thread stored relaxed
// mutant number_load: loaded relaxed
// mutant peek_again: no second look at the steps once an announcement is seen
// mutant room_check: entries written without looking for room
#include "model.hpp"

struct lane {
	rl::atomic<unsigned> position, number, tail;
	rl::var<unsigned> entry_number[2], entry_after[2];
	unsigned submitted, seen_tail; // the producer's own
	unsigned taken;                // the daemon's own
};

struct lanes : rl::test_suite<lanes, 3> {
	static const unsigned steps = 3, announcements = 2;
	lane step, side;

	static void begin(lane &l)
	{
		l.position($).store(0, relaxed);
		l.number($).store(0, relaxed);
		l.tail($).store(0, relaxed);
		l.submitted = l.seen_tail = l.taken = 0;
	}

	void before()
	{
		begin(step);
		begin(side);
	}

	static bool has_room(lane &l)
	{
		if (l.submitted - l.seen_tail < 2 || without("room_check"))
			return true;
		l.seen_tail = l.tail($).load(order(acquire, "tail_load"));
		return l.submitted - l.seen_tail < 2;
	}

	void submit(lane &l, lane &other)
	{
		rl::linear_backoff backoff;
		unsigned slot;

		while (!has_room(l))
			backoff.yield($);
		slot = l.submitted % 2;
		l.entry_number[slot]($) = l.submitted + 1;
		l.entry_after[slot]($) = other.number($).load(order(acquire, "number_load"));
		l.submitted++;
		l.position($).store(l.submitted, order(release, "position_store"));
		l.number($).store(l.submitted, order(release, "number_store"));
	}

	static bool peek(lane &l, unsigned *after)
	{
		if (l.position($).load(order(acquire, "position_load")) == l.taken)
			return false;
		RL_ASSERT(l.entry_number[l.taken % 2]($) == l.taken + 1);
		*after = l.entry_after[l.taken % 2]($);
		return true;
	}

	static void consume(lane &l)
	{
		l.taken++;
		l.tail($).store(l.taken, order(release, "tail_store"));
	}

	// Returns whether one was taken.
	bool next()
	{
		unsigned step_after, side_after;
		bool has_step = peek(step, &step_after);
		bool has_side = peek(side, &side_after);

		if (has_side && !has_step && !without("peek_again"))
			has_step = peek(step, &step_after);
		if (has_side && side_after <= step.taken)
			return consume(side), true;
		if (has_step && step_after <= side.taken)
			return consume(step), true;
		RL_ASSERT(!has_side); // else -EBADMSG: the order is impossible
		return false;
	}

	void thread(unsigned index)
	{
		rl::linear_backoff backoff;

		if (index == 0)
			for (unsigned i = 0; i < steps; i++)
				submit(step, side);
		else if (index == 1)
			for (unsigned i = 0; i < announcements; i++)
				submit(side, step);
		else
			while (step.taken < steps || side.taken < announcements)
				if (!next())
					backoff.yield($);
	}
};

MODEL_MAIN(lanes)
