/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that a registered reader shares with the daemon: how far it has read,
 * whether it sleeps, and what the daemon grants it. This is an ABI.
 *
 * The daemon makes it, as a memfd of R3RING_READER_PAGE_BYTES sealed against
 * shrinking, growing and further seals, and sends it with the segment; a page of
 * the daemon's own making has no surprises in size, kind of memory or seals. Both
 * sides may store anywhere in it, so that each believes only its own lines: the
 * daemon keeps what it granted in private memory and stores it here to be read,
 * and a reader that spoils the daemon's line deceives nobody but itself.
 */
#ifndef R3RING_READER_PAGE_H
#define R3RING_READER_PAGE_H

#include <stdint.h>

#include <r3ring/abi.h>

#define R3RING_READER_PAGE_BYTES 4096u
#define R3RING_READER_LABEL_BYTES 16u /* of its text, the NUL included */

enum r3ring_reader_state {
	R3RING_READER_ADMITTING = 0, /* the writer has not seen it yet */
	R3RING_READER_ADMITTED = 1,
	R3RING_READER_DEMOTED = 2, /* was lossless; the writer waits for it no longer */
};

struct r3ring_reader_page {
	/* The reader's, changed with every record. */
	uint64_t cursor; /* next sequence that it still needs; all before it is done with */
	uint64_t got;    /* for people, as in struct r3ring_cursor_stats */
	uint64_t lost;
	uint64_t skipped;
	uint8_t pad0[R3RING_LINE - 32];

	/* The reader's, changed when it is about to sleep. */
	uint32_t waiting; /* 1: it sleeps on the writer's `wake`, or is about to */
	uint32_t armed;   /* raised to ask for one message on its socket, for poll loops */
	/* What it reads for, for people: letters, digits, ':', '.', '_', '-', and NULs behind
	 * them. Stored once, before it reads; zeroes: it does not say. */
	uint64_t label[R3RING_READER_LABEL_BYTES / 8];
	uint8_t pad1[R3RING_LINE - 24];

	/* The daemon's. */
	uint32_t state;        /* enum r3ring_reader_state; stored after what goes with it */
	uint32_t lossless;     /* 1: the writer waits for it */
	uint64_t held_from;    /* ADMITTED and lossless: oldest record that is kept for it */
	uint64_t demoted_from; /* DEMOTED: records it had not read by then, first */
	uint64_t demoted_to;   /* and last: from here on they may be overwritten */
	uint64_t limit_bytes;  /* arena bytes that it may leave unread */
	uint64_t stall_ns;     /* how long the writer waits for it */
	uint64_t known_to;     /* the writer's `writer_epoch` and 1; 0: not told. Never changed */
	uint8_t pad2[R3RING_LINE - 56];
};

R3RING_STATIC_ASSERT(sizeof(struct r3ring_reader_page) == 3 * R3RING_LINE, "reader page layout");

#endif
