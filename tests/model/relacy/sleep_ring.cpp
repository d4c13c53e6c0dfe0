// SPDX-License-Identifier: Apache-2.0
//
// Readers of a ring that wait, whatever the memory order: two batches are published, and
// a reader waits once when it has read what it saw. Who then sleeps, or polls, with
// something new there and nobody about to wake it, has lost.
//
//	thread 0	publishes; ring/gate_watch.c gate_wake() and poke(), or, without a
//			gate, ring/writer.c r3ring_writer_wake()
//	thread 1	registered: consumer/wait.c reader_sleep(), ring/cursor.c
//			r3ring_cursor_wait(); not registered: the latter alone; poll loop:
//			consumer/poll.c r3ring_reader_arm(), then poll()
//
// A futex wait is one look at the word by the kernel; a message lies in the socket from
// the moment that it is sent.
//
// mutant wake_fence: no fence in gate_wake() behind what was published
// mutant sleep_fence: no fence in reader_sleep() behind `waiting`
// mutant arm_fence: no fence in r3ring_reader_arm() behind `armed`
// mutant look_again: sleeps without another look
// mutant arm_look: polls without another look
// mutant drain_late: messages taken off the socket behind the other look
// mutant wake_word: woken and the word not raised
// mutant wake_add: the word raised relaxed
// mutant wake_load: loaded relaxed
#include "model.hpp"

enum reader { registered, unregistered, poller, readers };

struct sleeping_reader : rl::test_suite<sleeping_reader, 2> {
	static const unsigned batches = 2;
	rl::atomic<unsigned> published, waiting, armed, word, messages;
	unsigned poked, seen;	     // the writer's and the reader's own
	bool sleeps, woken, polls;   // the kernel's; set and read as one step each
	reader kind;

	void before()
	{
		published($).store(0, relaxed);
		waiting($).store(0, relaxed);
		armed($).store(0, relaxed);
		word($).store(0, relaxed);
		messages($).store(0, relaxed);
		poked = seen = 0;
		sleeps = woken = polls = false;
		kind = (reader)rl::rand(readers);
	}

	void raise_and_wake()
	{
		if (!without("wake_word"))
			word($).fetch_add(1, order(acq_rel, "wake_add"));
		if (sleeps)
			woken = true;
	}

	void wake()
	{
		unsigned asked;

		if (kind == unregistered)
			return raise_and_wake();
		fence(seq_cst, "wake_fence");
		asked = armed($).load(relaxed);
		if (asked != poked) {
			poked = asked;
			messages($).fetch_add(1, acq_rel);
		}
		if (waiting($).load(relaxed))
			raise_and_wake();
	}

	bool look()
	{
		unsigned now = published($).load(acquire);
		bool more = now > seen;

		seen = now;
		return more;
	}

	void cursor_wait()
	{
		unsigned value = word($).load(order(acquire, "wake_load"));

		if ((without("look_again") || !look()) &&
		    word($).fetch_add(0, seq_cst) == value)
			sleeps = true;
	}

	void sleep()
	{
		if (kind == registered) {
			waiting($).store(1, relaxed);
			fence(seq_cst, "sleep_fence");
		}
		cursor_wait();
	}

	void arm(unsigned number)
	{
		bool more;

		if (!without("drain_late"))
			messages($).exchange(0, acq_rel);
		armed($).store(number, relaxed);
		fence(seq_cst, "arm_fence");
		more = !without("arm_look") && look();
		if (without("drain_late"))
			messages($).exchange(0, acq_rel);
		polls = !more;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			for (unsigned i = 1; i <= batches; i++) {
				published($).store(i, release);
				wake();
			}
			return;
		}
		look();
		if (kind != poller)
			return sleep();
		arm(1);
		// Found something, and comes back for more.
		if (!polls)
			arm(2);
	}

	void after()
	{
		bool more = published($).load(relaxed) > seen;

		RL_ASSERT(!sleeps || woken || !more);
		RL_ASSERT(!polls || messages($).load(relaxed) || !more);
	}
};

MODEL_MAIN(sleeping_reader)
