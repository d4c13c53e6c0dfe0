/* SPDX-License-Identifier: Apache-2.0 */
/* A gate, an honest reader and a liar, played by a script. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "ring/gate.h"
#include "ring/internal.h"
#include "tests/support/gate_script.h"
#include "tests/support/scratch_segment.h"

#define DEPTH 16u
#define ARENA_BYTES 4096u
#define RECORD_MAX (ARENA_BYTES / 8)
#define HONEST_STALL_NS UINT64_MAX
#define LIAR_STALL_NS 1000u
#define STALL_MOST UINT32_MAX /* of any liar that a script registers */

struct play {
	const uint8_t *at, *end; /* of the script */
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	struct gate *gate;
	struct r3ring_cursor *cursor; /* the honest reader's */
	union {
		struct r3ring_reader_page page;
		uint8_t bytes[R3RING_READER_PAGE_BYTES];
	} honest, liar;
	int liar_number;
	const char *wrong;
};

/* The next number of the script, 0 behind its end. */
static uint64_t take(struct play *play, size_t bytes)
{
	uint64_t value = 0;
	size_t left = (size_t)(play->end - play->at);

	if (bytes > left)
		bytes = left;
	memcpy(&value, play->at, bytes);
	play->at += bytes;
	return value;
}

static void require(struct play *play, bool holds, const char *what)
{
	if (!holds && !play->wrong)
		play->wrong = what;
}

/* ---- the honest reader --------------------------------------------------- */

/* Returns whether there was a record. */
static bool read_one(struct play *play)
{
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;
	int rc = r3ring_cursor_next(play->cursor, &view);

	require(play, rc >= 0, "the honest reader has lost a record");
	if (rc != 1)
		return false;
	require(play, r3ring_cursor_check(play->cursor) == 0, "a record was overwritten in use");
	r3ring_cursor_get_stats(play->cursor, &stats);
	/* Pairs with the acquire in the gate's follow(). */
	r3ring_store_release_u64(&play->honest.page.cursor, stats.cursor);
	return true;
}

static void catch_up(struct play *play)
{
	while (!play->wrong && read_one(play))
		;
}

/* ---- the writer ---------------------------------------------------------- */

static void demote(struct play *play, uint64_t waited_ns)
{
	const struct gate_front front = writer_front(play->writer);

	gate_demote(play->gate, &front, waited_ns, false);
	require(play, play->honest.page.state != R3RING_READER_DEMOTED,
		"the honest reader was demoted");
}

/* The gate is shut though the honest reader has read all: the liar has its time. */
static void put(struct play *play, const struct r3ring_record_spec *spec, uint64_t waited_ns)
{
	static const uint8_t payload[RECORD_MAX];
	int rc = r3ring_writer_put(play->writer, spec, payload);

	if (rc == -EAGAIN) {
		catch_up(play);
		demote(play, waited_ns);
		rc = r3ring_writer_put(play->writer, spec, payload);
	}
	if (rc == -EAGAIN) {
		demote(play, STALL_MOST);
		rc = r3ring_writer_put(play->writer, spec, payload);
	}
	require(play, rc == 0, "the liar holds the writer up");
}

static void op_put(struct play *play)
{
	struct r3ring_record_spec spec = {.type = 1};

	spec.len = (uint32_t)take(play, 2) % (RECORD_MAX + 1);
	put(play, &spec, take(play, 4));
}

static void op_reserve(struct play *play)
{
	struct r3ring_slot slots[DEPTH];
	struct r3ring_record_spec spec = {.type = 2};
	uint32_t asked = (uint32_t)take(play, 1) % DEPTH, made = 0;

	spec.len = (uint32_t)take(play, 2) % (RECORD_MAX + 1);
	while (made < asked && r3ring_writer_reserve(play->writer, &spec, &slots[made]) == 0)
		made++;
	for (uint32_t i = 0; i < made; i++)
		require(play, r3ring_writer_commit(play->writer, &slots[i]) == 0,
			"what is reserved is not published");
}

/* ---- the liar ------------------------------------------------------------ */

static void op_spoil(struct play *play)
{
	uint64_t offset = take(play, 2) % (sizeof(play->liar) - sizeof(uint64_t));
	uint64_t value = take(play, 8);

	memcpy(play->liar.bytes + offset, &value, sizeof(value));
}

static void op_register(struct play *play)
{
	struct gate_terms terms = {0};

	terms.lossless = take(play, 1) & 1;
	terms.limit_bytes = take(play, 8);
	terms.stall_ns = take(play, 4);
	if (play->liar_number >= 0)
		gate_remove(play->gate, play->liar_number);
	play->liar_number = gate_add(play->gate, &play->liar.page, &terms);
	require(play, play->liar_number >= 0, "a place that was free is not");
}

/* ---- looking in ---------------------------------------------------------- */

static void op_list(struct play *play)
{
	struct gate_member_report reports[GATE_MEMBERS_MAX];
	unsigned int count = gate_list(play->gate, reports);
	uint64_t tail = r3ring_segment_tail(play->segment);

	require(play, count >= 1 && count <= 2, "members that nobody added");
	for (unsigned int i = 0; i < count; i++) {
		require(play, reports[i].cursor <= tail + 1, "a cursor beyond the newest record");
		require(play, reports[i].lag_records == tail + 1 - reports[i].cursor,
			"a lag that is not its cursor's");
		require(play, reports[i].lag_bytes <= ARENA_BYTES * 2,
			"more bytes behind than the ring has");
	}
}

static void op_room(struct play *play)
{
	const struct gate_front front = writer_front(play->writer);
	uint64_t records = take(play, 2), bytes = take(play, 4);

	gate_has_room(play->gate, &front, records, bytes);
}

/* ---- the play ------------------------------------------------------------ */

static void step(struct play *play, enum gate_script_op op)
{
	switch (op) {
	case GATE_SPOIL:
		op_spoil(play);
		break;
	case GATE_PUT:
		op_put(play);
		break;
	case GATE_READ:
		read_one(play);
		break;
	case GATE_RESERVE:
		op_reserve(play);
		break;
	case GATE_WAKE:
		r3ring_writer_wake(play->writer);
		break;
	case GATE_LIST:
		op_list(play);
		break;
	case GATE_REGISTER:
		op_register(play);
		break;
	case GATE_ROOM:
		op_room(play);
		break;
	default:
		gate_set_reserve(play->gate, take(play, 1) & 1);
		break;
	}
}

/* Both are known to the writer before its first record. */
static void begin(struct play *play)
{
	const struct gate_terms honest = {.lossless = true, .stall_ns = HONEST_STALL_NS};
	const struct gate_terms liar = {.lossless = true, .stall_ns = LIAR_STALL_NS};
	struct gate_front front;

	scratch_segment_clear(play->segment);
	if (r3ring_writer_open(&play->writer, play->segment) ||
	    r3ring_cursor_open(&play->cursor, play->segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0))
		abort();
	play->gate = gate_create(play->segment, false);
	writer_set_gate(play->writer, play->gate);
	play->honest.page.cursor = 1;
	gate_add(play->gate, &play->honest.page, &honest);
	play->liar_number = gate_add(play->gate, &play->liar.page, &liar);
	front = writer_front(play->writer);
	gate_admit(play->gate, &front);
}

static void end(struct play *play)
{
	catch_up(play);
	r3ring_cursor_close(play->cursor);
	r3ring_writer_close(play->writer);
	gate_destroy(play->gate);
}

const char *gate_script_play(const uint8_t *script, size_t bytes)
{
	static struct r3ring_segment *segment;
	struct play play = {.at = script, .end = script + bytes};

	if (!segment)
		segment = scratch_segment_make(DEPTH, ARENA_BYTES);
	play.segment = segment;
	begin(&play);
	while (play.at < play.end && !play.wrong)
		step(&play, (enum gate_script_op)(take(&play, 1) % GATE_OPS));
	end(&play);
	return play.wrong;
}
