/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer and its gate with two lossless readers: an honest one, and one whose page
 * somebody writes. Played by a script of bytes; what must hold whatever the page says is
 * looked at with every step.
 */
#ifndef TESTS_SUPPORT_GATE_SCRIPT_H
#define TESTS_SUPPORT_GATE_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a script: an operation, then what it takes. */
enum gate_script_op {
	GATE_SPOIL,    /* u16 offset, u64: stored in the page */
	GATE_PUT,      /* u16 length, u32 nanoseconds waited when the gate is shut */
	GATE_READ,     /* the honest reader reads a record */
	GATE_RESERVE,  /* u8 records, u16 length: reserved, then published */
	GATE_WAKE,     /* whoever says that it sleeps */
	GATE_LIST,     /* what `status` would say */
	GATE_REGISTER, /* u8 lossless, u64 limit, u32 stall: the liar comes anew */
	GATE_ROOM,     /* u16 records, u32 bytes: asked for in one go */
	GATE_BEYOND,   /* u8: whether the writer may go into the reserve */
	GATE_OPS,
};

/*
 * Plays a script, which ends anywhere. Returns what did not hold, NULL when all did:
 * the honest reader loses nothing and is not demoted; the writer gets on once the liar
 * has had its time; what is reported lies within the ring.
 */
const char *gate_script_play(const uint8_t *script, size_t bytes);

#endif
