// SPDX-License-Identifier: Apache-2.0
//
// The two copies of what was begun: the producer may be killed between any two
// stores, and the daemon reads meanwhile.
//
//	thread 0	channel/pages.c pages_note_begun()
//	thread 1	channel/pages.c pages_read_begun(), read_copy()
//	after()		the same read, once the producer is dead
//
// mutant rows_store: rows stored relaxed
// mutant step_store: step stored relaxed
// mutant step_load: steps loaded relaxed
// mutant rows_load: rows loaded relaxed
// mutant look_again: the older copy is not looked at again
// mutant two_copies: one copy only
#include "model.hpp"

struct begun : rl::test_suite<begun, 2> {
	struct copy {
		rl::atomic<unsigned> step, rows;
	} copies[2];
	unsigned stores_done;

	static const unsigned steps = 5;

	static unsigned rows_up_to(unsigned step)
	{
		return step * 7;
	}

	void before()
	{
		for (int i = 0; i < 2; i++) {
			copies[i].step($).store(0, relaxed);
			copies[i].rows($).store(0, relaxed);
		}
		stores_done = 0;
	}

	void note()
	{
		unsigned killed_after = rl::rand(2 * steps + 1);

		for (unsigned step = 1; step <= steps; step++) {
			copy &at = copies[without("two_copies") ? 0 : step & 1];

			if (stores_done == killed_after)
				return;
			at.rows($).store(rows_up_to(step), order(release, "rows_store"));
			stores_done++;
			if (stores_done == killed_after)
				return;
			at.step($).store(step, order(release, "step_store"));
			stores_done++;
		}
	}

	bool read_copy(unsigned *step, unsigned *rows)
	{
		unsigned even = copies[0].step($).load(order(acquire, "step_load"));
		unsigned odd = copies[1].step($).load(order(acquire, "step_load"));
		copy &newer = even >= odd ? copies[0] : copies[1];
		copy &older = even >= odd ? copies[1] : copies[0];

		if (without("two_copies"))
			return *step = even, *rows = copies[0].rows($).load(acquire), true;
		*step = even >= odd ? even : odd;
		*rows = newer.rows($).load(order(acquire, "rows_load"));
		return without("look_again") || older.step($).load(relaxed) <= *step;
	}

	void thread(unsigned index)
	{
		unsigned step, rows;

		if (index == 0)
			note();
		else if (read_copy(&step, &rows))
			RL_ASSERT(rows == rows_up_to(step));
	}

	void after()
	{
		unsigned step, rows;

		RL_ASSERT(read_copy(&step, &rows));
		RL_ASSERT(step == stores_done / 2 && rows == rows_up_to(step));
	}
};

MODEL_MAIN(begun)
