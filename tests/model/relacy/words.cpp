// SPDX-License-Identifier: Apache-2.0
//
// Words that say that something else is there: whoever sees the word reads what belongs to
// it, which is plain memory here. All are of one shape, so one of them is chosen for each
// execution.
//
//	ready		ring/segment.c r3ring_segment_create(): the header
//			ring/segment_open.c
//	admitted	ring/gate.c admit(): held_from
//			consumer/attach.c attachment_ready()
//	demoted		ring/gate.c demote(): demoted_from, demoted_to
//			consumer/reader.c note_demotion()
//	closing		producer/open.c: the last entries and the gap behind them
//			capture_daemon/drain_state.c drain_closing()
//	gone		capture_daemon/drain_state.c drain_producer_gone(): all that the
//			producer submitted; drain_producer_state()
//	stopping	capture_daemon/drain_state.c drain_stop(): its deadline
//	began		kernels/body.h kernel_begin_arm(): begin_ns
//			capture_daemon/drain_step.c say_end()
//	rows		kernels/body.h: positions and token ids
//			capture_daemon/drain_copy.c step_copy_rows()
//	announced	producer/announce.c note_announced(): the announcement is in the lane
//			or the spill; producer/step.c submit()
//
// mutant ready_store: stored relaxed
// mutant ready_load: loaded relaxed
// mutant admitted_store: stored relaxed
// mutant admitted_load: loaded relaxed
// mutant demoted_store: stored relaxed
// mutant demoted_load: loaded relaxed
// mutant closing_store: stored relaxed
// mutant closing_load: loaded relaxed
// mutant gone_store: stored relaxed
// mutant gone_load: loaded relaxed
// mutant stopping_store: stored relaxed
// mutant stopping_load: loaded relaxed
// mutant began_store: stored relaxed
// mutant began_load: loaded relaxed
// mutant rows_store: stored relaxed
// mutant rows_load: loaded relaxed
// mutant announced_store: stored relaxed
// mutant announced_load: loaded relaxed
#include "model.hpp"

static const char *const words_named[] = {"ready",    "admitted", "demoted", "closing",  "gone",
					  "stopping", "began",	  "rows",    "announced"};

struct words : rl::test_suite<words, 2> {
	rl::atomic<unsigned> word;
	rl::var<unsigned> belongs;
	std::string name;

	void before()
	{
		word($).store(0, relaxed);
		name = words_named[rl::rand(sizeof(words_named) / sizeof(words_named[0]))];
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			belongs($) = 1;
			word($).store(1, order(release, (name + "_store").c_str()));
		} else if (word($).load(order(acquire, (name + "_load").c_str()))) {
			RL_ASSERT(belongs($) == 1);
		}
	}
};

MODEL_MAIN(words)
