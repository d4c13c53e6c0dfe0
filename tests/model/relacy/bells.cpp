// SPDX-License-Identifier: Apache-2.0
//
// Ids from the kernels to the drain thread, and the extent back to the producer. What is
// in the extent is plain memory: an access that nothing orders behind the other side's
// is a failure. One extent and one slot, used by two steps in turn; two layers with one
// bell interval: the launch that completes layer 1 rings for both.
//
//	thread 0	producer/extents.c take_back(); kernels/body.h on the step's stream:
//			kernel_begin_clear(), its launches, kernel_capture_ring(), the end
//	thread 1	a launch on another stream, which waits for begin and is waited for by
//			the end, as events have it
//	thread 2	capture_daemon/drain_step.c step_wait(), drain_copy.c step_bell() and
//			the copy, release_extent()
//
// mutant counter_add: rows counted relaxed
// mutant counter_load: a layer's count loaded relaxed before its bell is rung
// mutant bell_store: a bell rung relaxed
// mutant bell_load: looked at relaxed
// mutant bell_equal: any step's bell taken for this one's
// mutant end_store: the end stored relaxed
// mutant end_load: looked at relaxed
// mutant end_look: looked at behind the bells: what rings in between is missed
// mutant released_store: the extent given back relaxed
// mutant released_load: loaded relaxed
// mutant release_early: given back in front of the copy
#include "model.hpp"

struct bells : rl::test_suite<bells, 3> {
	static const unsigned steps = 2;
	rl::var<unsigned> id_one, id_other, id_last; // two rows of layer 0, one of layer 1
	rl::atomic<unsigned> count[2], bell[2], bell_rows[2], end, released;
	rl::atomic<unsigned> begun, captured; // what events and the lane order

	void before()
	{
		for (int i = 0; i < 2; i++) {
			count[i]($).store(0, relaxed);
			bell[i]($).store(0, relaxed);
			bell_rows[i]($).store(0, relaxed);
		}
		end($).store(0, relaxed);
		released($).store(0, relaxed);
		begun($).store(0, relaxed);
		captured($).store(0, relaxed);
	}

	static unsigned rows_of(unsigned layer)
	{
		return layer == 0 ? 2 : 1;
	}

	static void await(rl::atomic<unsigned> &word, unsigned value, rl::memory_order order)
	{
		rl::linear_backoff backoff;

		while (word($).load(order) < value)
			backoff.yield($);
	}

	void add_row(unsigned layer)
	{
		count[layer]($).fetch_add(1, order(acq_rel, "counter_add"));
	}

	// Rings where all rows are there; at the end in any case.
	void report(unsigned layer, unsigned step, bool last)
	{
		unsigned rows = count[layer]($).load(order(acquire, "counter_load"));

		if (rows != rows_of(layer) && !last)
			return;
		bell_rows[layer]($).store(rows, relaxed);
		bell[layer]($).store(step, order(release, "bell_store"));
	}

	void stream()
	{
		for (unsigned step = 1; step <= steps; step++) {
			await(released, step - 1, order(acquire, "released_load"));
			count[0]($).store(0, relaxed);
			count[1]($).store(0, relaxed);
			begun($).store(step, release);
			id_one($) = step;
			add_row(0);
			id_last($) = step;
			add_row(1);
			report(0, step, false);
			report(1, step, false);
			await(captured, step, acquire);
			report(0, step, true);
			report(1, step, true);
			end($).store(step, order(release, "end_store"));
		}
	}

	void other_stream()
	{
		for (unsigned step = 1; step <= steps; step++) {
			await(begun, step, acquire);
			id_other($) = step;
			add_row(0);
			captured($).store(step, release);
		}
	}

	bool rang(unsigned layer, unsigned step)
	{
		unsigned at = bell[layer]($).load(order(acquire, "bell_load"));

		return (without("bell_equal") ? at != 0 : at == step) &&
		       bell_rows[layer]($).load(relaxed) == rows_of(layer);
	}

	void copy(unsigned layer, unsigned step)
	{
		if (layer == 0)
			RL_ASSERT(id_one($) == step && id_other($) == step);
		else
			RL_ASSERT(id_last($) == step);
	}

	bool look_at_end(unsigned step)
	{
		return end($).load(order(acquire, "end_load")) == step;
	}

	void work_off(unsigned step)
	{
		rl::linear_backoff backoff;
		bool copied[2] = {false, false};

		for (;;) {
			bool ended = !without("end_look") && look_at_end(step);

			for (unsigned layer = 0; layer < 2; layer++) {
				if (copied[layer] || !rang(layer, step))
					continue;
				copy(layer, step);
				copied[layer] = true;
			}
			if (without("end_look"))
				ended = look_at_end(step);
			if (ended)
				break;
			backoff.yield($);
		}
		RL_ASSERT(copied[0] && copied[1]); // else said to be missing
	}

	void thread(unsigned index)
	{
		if (index == 0)
			stream();
		else if (index == 1)
			other_stream();
		else
			for (unsigned step = 1; step <= steps; step++) {
				await(begun, step, acquire);
				if (without("release_early"))
					released($).store(step, release);
				work_off(step);
				released($).store(step, order(release, "released_store"));
			}
	}
};

MODEL_MAIN(bells)
