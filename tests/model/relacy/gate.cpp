// SPDX-License-Identifier: Apache-2.0
//
// A lossless reader's cursor gives room back. The payload is plain memory: what a
// copy overwrites must have been read before, or the execution fails.
//
//	thread 0	the writer: ring/gate.c follow() loads the cursor in front of a copy
//			into its space
//	thread 1	the reader: consumer/reader.c releases its cursor behind the last use
//			of a view
//
// Two slots, five records.
//
// mutant cursor_store: the cursor released relaxed
// mutant cursor_load: loaded relaxed
// mutant cursor_early: released in front of the last use
// mutant gate: overwritten without a look at the cursor
#include "model.hpp"

struct gate : rl::test_suite<gate, 2> {
	static const unsigned slots = 2, records = 5;
	rl::var<unsigned> payload[slots];
	rl::atomic<unsigned> seq, cursor;

	void before()
	{
		seq($).store(0, relaxed);
		cursor($).store(1, relaxed);
	}

	void write()
	{
		rl::linear_backoff backoff;

		for (unsigned s = 1; s <= records; s++) {
			while (!without("gate") &&
			       s >= cursor($).load(order(acquire, "cursor_load")) + slots)
				backoff.yield($);
			payload[s % slots]($) = s;
			seq($).store(s, release);
		}
	}

	void read()
	{
		rl::linear_backoff backoff;

		for (unsigned s = 1; s <= records; s++) {
			while (seq($).load(acquire) < s)
				backoff.yield($);
			if (without("cursor_early"))
				cursor($).store(s + 1, release);
			RL_ASSERT(payload[s % slots]($) == s);
			cursor($).store(s + 1, order(release, "cursor_store"));
		}
	}

	void thread(unsigned index)
	{
		index == 0 ? write() : read();
	}
};

MODEL_MAIN(gate)
