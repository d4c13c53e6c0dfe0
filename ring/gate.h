/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: pages of registered readers, and how far the writer may go without
 * overwriting what a lossless one still needs. Knows only pages; what to do when
 * it is shut is its caller's policy.
 *
 * Pages are hostile input. A cursor is read once and believed between what it was
 * before and behind the newest record; a reader that tells lies is given less, or
 * is waited for no longer than any other.
 *
 * Two threads: the writer's (gate_admits, gate_wake, gate_admit, gate_demote), and
 * one that adds, removes and lists members. The writer takes the lock only where it
 * has to look at pages.
 */
#ifndef RING_GATE_H
#define RING_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reader_page.h>
#include <r3ring/ring.h>

#define GATE_MEMBERS_MAX 64

struct gate;

/* What a reader is granted. */
struct gate_terms {
	bool lossless;
	uint64_t limit_bytes;      /* of the arena; 0: the most. Brought into [1/4, 3/4] of it */
	uint64_t stall_ns;         /* after so long without progress gate_demote() takes it */
	void (*poke)(void *owner); /* asked for by `armed`; must not block. May be NULL */
	void *owner;
};

/* Where the writer stands. */
struct gate_front {
	uint64_t commit_seq; /* one behind the newest published record */
	uint64_t next_seq;   /* of the next reservation */
	uint64_t position;   /* behind the last reservation */
};

/* One member, as `status` shows it. */
struct gate_member_report {
	void *owner;
	bool lossless; /* still */
	bool demoted;
	uint64_t cursor; /* as believed */
	uint64_t lag_records;
	uint64_t lag_bytes;
	uint64_t got, lost, skipped; /* as it says */
	uint64_t demoted_from, demoted_to;
};

/*
 * Makes a gate for @segment, which must outlive it.
 * @reserve: the writer may go beyond what lossless readers are granted, up to 7/8
 *           of the ring; for a caller that looks at gate_has_room() first and drops.
 * Returns NULL when memory is out.
 */
struct gate *gate_create(const struct r3ring_segment *segment, bool reserve);
void gate_destroy(struct gate *gate);

/*
 * Adds a page, mapped at least until gate_remove(). The writer admits it when it
 * next comes by, which is when records begin to be kept for it.
 * Returns its number, or -ENOSPC when there are GATE_MEMBERS_MAX already.
 */
int gate_add(struct gate *gate, struct r3ring_reader_page *page, const struct gate_terms *terms);

/* The writer waits for it no longer and does not touch its page any more. */
void gate_remove(struct gate *gate, int number);

/* Fills @reports; returns how many. */
unsigned int gate_list(struct gate *gate, struct gate_member_report reports[GATE_MEMBERS_MAX]);

/* How often the writer has made the system call that wakes readers. Any thread. */
uint64_t gate_wakes(const struct gate *gate);

/* ---- the writer's thread ------------------------------------------------ */

/*
 * Says in the ring that the newest 7/8 of it are kept, as much as any reader can have left
 * unread, or what a dead writer kept already: from there on readers are admitted until
 * gate_let_go(), by this writer or another. Nothing holds this one back by that alone.
 */
void gate_keep(struct gate *gate, const struct gate_front *front, enum r3ring_keeps whom);

/* For whom a writer of this ring, this one or a dead one, keeps records. */
enum r3ring_keeps gate_keeps(const struct gate *gate);

/*
 * Overwrites nothing of what is kept, until gate_let_go(): for lossless readers that have
 * yet to come; a sixteenth of the ring is free to be written. Returns a number, or -ENOSPC.
 */
int gate_hold(struct gate *gate, const struct gate_front *front);
void gate_let_go(struct gate *gate, int number);

/* Whether a lossless reader has more unread than the next writer would keep for it. */
bool gate_is_behind(struct gate *gate, const struct gate_front *front);

/* Whether there are pages that the writer has not seen. */
bool gate_has_new(const struct gate *gate);

/* Takes note of pages that were added. One load when none was. */
void gate_admit(struct gate *gate, const struct gate_front *front);

/*
 * Whether the writer may go on to sequence @seq_end and arena position @pos_end
 * (both exclusive). Two loads while the last answer still covers it.
 */
bool gate_admits(struct gate *gate, const struct gate_front *front, uint64_t seq_end,
		 uint64_t pos_end);

/* Whether what lossless readers are granted has room for so much more; never
 * asks for more than an empty ring has. */
bool gate_has_room(struct gate *gate, const struct gate_front *front, uint64_t records,
		   uint64_t bytes);

/*
 * The gate has been shut for @waited_ns more. Demotes those in the way that have not
 * freed an eighth of their limit for their stall time, all in the way when @all.
 * Returns how many.
 */
unsigned int gate_demote(struct gate *gate, const struct gate_front *front, uint64_t waited_ns,
			 bool all);

/* Whether the writer may go into the reserve (see gate_create()) from now on. */
void gate_set_reserve(struct gate *gate, bool reserve);

/*
 * After a batch: wakes whoever sleeps. One system call if anybody does (on @wake,
 * which is raised first), else none; one poke for each that has armed anew.
 */
void gate_wake(struct gate *gate, uint32_t *wake);

/* ---- the writer's hooks (writer.c) -------------------------------------- */

/* From now on r3ring_writer_reserve() and _put() return -EAGAIN while @gate is shut,
 * and r3ring_writer_wake() asks it. It must outlive the writer. */
void writer_set_gate(struct r3ring_writer *writer, struct gate *gate);
struct gate_front writer_front(const struct r3ring_writer *writer);

#endif
