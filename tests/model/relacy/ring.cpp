// SPDX-License-Identifier: Apache-2.0
//
// The memory order of publishing and reading: a writer that laps its reader.
// Words of the payload and fields of the descriptor are relaxed atomics, as what
// a reader copies while it may be overwritten; each word is the sequence of the
// record that it belongs to.
//
//	put()		ring/writer.c r3ring_writer_put(): announce(), memcpy(),
//			desc_store_fields(), publish(), mark_next()
//	look()		ring/descriptor.h desc_load()
//	kept()		ring/internal.h desc_payload_kept()
//	lose()		ring/cursor.c overrun(), newest_boundary(), flagged_record(); the
//			search for a keyframe looks likewise
//	read()		ring/cursor.c r3ring_cursor_next(), nothing_new(); r3ring_cursor_check()
//			behind the reading of the payload
//	thread 0	in the end ring/writer.c r3ring_writer_finish()
//
// Records of two words, two or four slots, an arena of four or eight words: the
// arena comes round before the slots do, with them, or after them. The intent goes
// ahead by steps of two words.
//
// mutant announce_fence: no fence behind intent and marker
// mutant seq_store: desc.seq stored relaxed
// mutant seq_load: desc.seq loaded relaxed
// mutant copy_fence: no fence in desc_load() in front of the second look
// mutant check_fence: no fence in r3ring_cursor_check()
// mutant overrun_fence: no fence in overrun() in front of the tail
// mutant marker: the next slot is not marked
// mutant intent: not stored
// mutant intent_check: not looked at
// mutant second_look: the descriptor's sequence not looked at again
// mutant tail_store: tail_seq stored relaxed
// mutant tail_load: tail_seq loaded relaxed
// mutant boundary_tail: a boundary beyond the tail is believed
// mutant closed_store: `closed` stored relaxed
// mutant closed_load: loaded relaxed
// mutant closed_look: looked at behind the slot: what comes in between is never read
#include "model.hpp"

struct ring : rl::test_suite<ring, 2> {
	static const unsigned records = 7, words = 2;
	rl::atomic<unsigned> seq[4], fields[4][2], arena[8], intent, tail, closed, boundary;
	unsigned depth, arena_words;
	unsigned announced; // the writer's copy of intent
	bool latest;

	void before()
	{
		depth = rl::rand(2) ? 2 : 4;
		arena_words = rl::rand(2) ? 4 : 8;
		announced = 0;
		latest = rl::rand(2);
		intent($).store(0, relaxed);
		tail($).store(0, relaxed);
		closed($).store(0, relaxed);
		boundary($).store(0, relaxed);
		for (unsigned i = 0; i < 4; i++) {
			seq[i]($).store(0, relaxed);
			fields[i][0]($).store(0, relaxed);
			fields[i][1]($).store(0, relaxed);
		}
		for (unsigned i = 0; i < 8; i++)
			arena[i]($).store(0, relaxed);
	}

	static unsigned begin_of(unsigned s)
	{
		return (s - 1) * words;
	}

	void announce(unsigned end)
	{
		if (end > announced) {
			announced = (end + 1) / 2 * 2;
			if (!without("intent"))
				intent($).store(announced, relaxed);
		}
		fence(release, "announce_fence");
	}

	void put(unsigned s)
	{
		announce(begin_of(s) + words);
		for (unsigned i = 0; i < words; i++)
			arena[(begin_of(s) + i) % arena_words]($).store(s, relaxed);
		fields[s % depth][0]($).store(s, relaxed);
		fields[s % depth][1]($).store(s, relaxed);
		seq[s % depth]($).store(s, order(release, "seq_store"));
		if (s % 2)
			boundary($).store(s, relaxed);
		tail($).store(s, order(release, "tail_store"));
		if (!without("marker"))
			seq[(s + 1) % depth]($).store(s, relaxed);
	}

	enum state { intact, not_yet, overrun };

	state look(unsigned s)
	{
		unsigned found = seq[s % depth]($).load(order(acquire, "seq_load"));
		unsigned first, second;

		if (found != s)
			return found < s ? not_yet : overrun;
		first = fields[s % depth][0]($).load(relaxed);
		second = fields[s % depth][1]($).load(relaxed);
		fence(acquire, "copy_fence");
		found = seq[s % depth]($).load(relaxed);
		if (found != s && !without("second_look")) {
			RL_ASSERT(found > s); // else DESC_CORRUPT
			return overrun;
		}
		RL_ASSERT(first == s && second == s); // else the checksum is wrong
		return intact;
	}

	bool kept(unsigned s)
	{
		return without("intent_check") || intent($).load(relaxed) <= begin_of(s) + arena_words;
	}

	bool view_intact(unsigned s)
	{
		fence(acquire, "check_fence");
		return kept(s);
	}

	// Relaxed: what lies up to the tail is there without it, and nothing else is used.
	unsigned newest_boundary(unsigned newest)
	{
		unsigned s = boundary($).load(relaxed);
		state found;

		if (!s || (s > newest && !without("boundary_tail")))
			return newest + 1;
		found = look(s);
		RL_ASSERT(found != not_yet);
		return found == intact && kept(s) ? s : newest + 1;
	}

	unsigned lose(unsigned s)
	{
		unsigned newest, found;

		fence(acquire, "overrun_fence");
		newest = tail($).load(order(acquire, "tail_load"));
		RL_ASSERT(newest >= s); // else an overrun is taken for corruption
		found = latest ? newest_boundary(newest) : s + 1;
		return found > s ? found : s + 1;
	}

	bool slot_empty(unsigned s)
	{
		return seq[s % depth]($).load(acquire) < s;
	}

	// Returns whether the end is reached.
	bool nothing_new(unsigned s)
	{
		bool ended = !without("closed_look") && closed($).load(order(acquire, "closed_load"));
		bool empty;

		if (tail($).load(order(acquire, "tail_load")) >= s)
			RL_ASSERT(!slot_empty(s)); // else lost as corrupt
		empty = slot_empty(s);
		if (without("closed_look"))
			ended = closed($).load(acquire);
		RL_ASSERT(!ended || !empty || s == records + 1); // else never read
		return ended && empty;
	}

	// Returns where the cursor goes on; behind all records: it has read the end.
	unsigned read(unsigned s)
	{
		unsigned payload[words];

		switch (look(s)) {
		case not_yet:
			return nothing_new(s) ? records + 2 : s;
		case overrun:
			return lose(s);
		case intact:
			break;
		}
		if (!view_intact(s))
			return lose(s);
		for (unsigned i = 0; i < words; i++)
			payload[i] = arena[(begin_of(s) + i) % arena_words]($).load(relaxed);
		if (view_intact(s))
			RL_ASSERT(payload[0] == s && payload[1] == s); // no torn record is accepted
		return s + 1;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			for (unsigned s = 1; s <= records; s++)
				put(s);
			closed($).store(1, order(release, "closed_store"));
			return;
		}
		for (unsigned looks = 0, s = 1; looks < 12 && s <= records + 1; looks++)
			s = read(s);
	}
};

MODEL_MAIN(ring)
