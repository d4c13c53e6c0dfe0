// SPDX-License-Identifier: Apache-2.0
//
// No wake-up is lost, whatever the memory order: two producers publish and wake,
// the drain thread sleeps. A futex wait is one look at the word by the kernel;
// who then sleeps with work there, and nobody about to raise the word, has lost.
//
//	thread 0, 1	channel/lane.c lane_submit(), channel/pages.c pages_wake()
//	thread 2	channel/pages.c pages_sleep(), with drain_idle() of
//			capture_daemon/drain_thread.c
//
// ring/gate.c gate_wake() and consumer/wait.c reader_sleep() have the same fences at
// the same places.
//
// mutant wake_fence: no fence in pages_wake() behind what was published
// mutant sleep_fence: no fence in pages_sleep() behind `sleeping`
// mutant look_again: sleeps without the second look
// mutant wake_word: woken without the word raised: a wait that begins later sleeps
#include "model.hpp"

struct sleeping_drain : rl::test_suite<sleeping_drain, 3> {
	rl::atomic<unsigned> published[2], sleeping, word;
	bool sleeps, woken; // the kernel's; set and read as one step each
	unsigned seen[2];

	void before()
	{
		published[0]($).store(0, relaxed);
		published[1]($).store(0, relaxed);
		sleeping($).store(0, relaxed);
		word($).store(0, relaxed);
		sleeps = woken = false;
		seen[0] = seen[1] = 0;
	}

	void wake(unsigned index)
	{
		published[index]($).store(1, release);
		fence(seq_cst, "wake_fence");
		if (!sleeping($).load(relaxed) || !sleeping($).exchange(0, acq_rel))
			return;
		if (!without("wake_word"))
			word($).fetch_add(1, acq_rel);
		// FUTEX_WAKE: between the raised word and here a wait may have begun.
		if (sleeps)
			woken = true;
	}

	bool idle()
	{
		for (unsigned i = 0; i < 2; i++)
			seen[i] = published[i]($).load(relaxed);
		return !seen[0] && !seen[1];
	}

	void sleep()
	{
		unsigned value = word($).load(relaxed);

		sleeping($).store(1, relaxed);
		fence(seq_cst, "sleep_fence");
		// FUTEX_WAIT: the kernel compares with a read-modify-write's freshness.
		if ((without("look_again") || idle()) && word($).fetch_add(0, seq_cst) == value)
			sleeps = true;
	}

	void thread(unsigned index)
	{
		if (index < 2)
			wake(index);
		else
			sleep();
	}

	void after()
	{
		// Both published something, and nobody wakes any more.
		RL_ASSERT(!sleeps || woken);
	}
};

MODEL_MAIN(sleeping_drain)
