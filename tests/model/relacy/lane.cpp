// SPDX-License-Identifier: Apache-2.0
//
// Two lanes and the one order of what goes through them. Entries are plain
// memory: an access that nothing orders behind the other side's is a failure.
//
//	submit()	channel/lane.c has_room(), lane_reserve(), lane_submit(); `after`
//			is taken as in producer/announce.c
//	peek()		channel/lane.c lane_peek(), number_fits()
//	restart()	another daemon: channel/lane.c lane_reader_init()
//	consume()	channel/lane.c lane_consume()
//	next()		channel/lane.c lane_next()
//
// Lanes of two entries; three steps and two announcements, of which some are kept by the
// producer first, so that steps that come behind them are in the lane before.
//
// mutant position_store: a lane's position stored relaxed
// mutant position_load: loaded relaxed by the daemon
// mutant tail_store: the tail stored relaxed
// mutant tail_load: loaded relaxed by the producer
// mutant number_store: the number for the other thread stored relaxed
// mutant number_load: loaded relaxed
// mutant head_store: the number in a lane's head stored relaxed
// mutant head_load: loaded relaxed by a daemon that begins
// mutant head_early: stored in front of the position
// mutant peek_again: no second look at the steps once an announcement is seen
// mutant room_check: entries written without looking for room
#include "model.hpp"

struct lane {
	rl::atomic<unsigned> position, head_number, number, tail;
	rl::var<unsigned> entry_number[2], entry_after[2];
	unsigned submitted, seen_tail; // the producer's own
	unsigned at, taken;            // the daemon's own
	bool unsettled;
};

struct lanes : rl::test_suite<lanes, 3> {
	static const unsigned steps = 3, announcements = 2;
	lane step, side;

	static void begin(lane &l)
	{
		l.position($).store(0, relaxed);
		l.number($).store(0, relaxed);
		l.head_number($).store(0, relaxed);
		l.tail($).store(0, relaxed);
		l.submitted = l.seen_tail = l.at = l.taken = 0;
		l.unsettled = true;
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

	void count(lane &l, unsigned number)
	{
		l.number($).store(number, order(release, "number_store"));
	}

	// An announcement that is kept counts before it is in the lane.
	void submit(lane &l, lane &other, bool kept)
	{
		rl::linear_backoff backoff;
		unsigned slot = l.submitted % 2, number = l.submitted + 1;
		unsigned after = other.number($).load(order(acquire, "number_load"));

		if (kept)
			count(l, number);
		while (!has_room(l))
			backoff.yield($);
		l.entry_number[slot]($) = number;
		l.entry_after[slot]($) = after;
		l.submitted = number;
		if (without("head_early"))
			l.head_number($).store(number, release);
		l.position($).store(number, order(release, "position_store"));
		if (!without("head_early"))
			l.head_number($).store(number, order(release, "head_store"));
		if (!kept)
			count(l, number);
	}

	static bool peek(lane &l, unsigned *after)
	{
		if (l.unsettled)
			l.taken = l.head_number($).load(order(acquire, "head_load"));
		if (l.position($).load(order(acquire, "position_load")) == l.at)
			return false;
		if (l.unsettled)
			l.taken = l.entry_number[l.at % 2]($) - 1;
		l.unsettled = false;
		RL_ASSERT(l.entry_number[l.at % 2]($) == l.taken + 1);
		*after = l.entry_after[l.at % 2]($);
		return true;
	}

	static void restart(lane &l)
	{
		l.at = l.tail($).load(relaxed);
		l.unsettled = true;
	}

	static void consume(lane &l)
	{
		l.at++;
		l.taken = l.at;
		l.tail($).store(l.at, order(release, "tail_store"));
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
		if (has_step && step_after <= side.taken) {
			RL_ASSERT(step_after <= side.at); // else it comes before what it follows
			return consume(step), true;
		}
		RL_ASSERT(!has_side); // else -EBADMSG: the order is impossible
		return false;
	}

	void thread(unsigned index)
	{
		rl::linear_backoff backoff;

		if (index == 0)
			for (unsigned i = 0; i < steps; i++)
				submit(step, side, false);
		else if (index == 1)
			for (unsigned i = 0; i < announcements; i++)
				submit(side, step, rl::rand(2));
		else
			while (step.at < steps || side.at < announcements) {
				if (rl::rand(4) == 0) {
					restart(step);
					restart(side);
				}
				if (!next())
					backoff.yield($);
			}
	}
};

MODEL_MAIN(lanes)
