/* SPDX-License-Identifier: Apache-2.0 */
/* The writer from inside: what the thread that gives entries keeps. */
#ifndef ARCHIVE_WRITER_INTERNAL_H
#define ARCHIVE_WRITER_INTERNAL_H

#include "archive/channel_state.h"
#include "archive/pack.h"
#include "archive/store.h"
#include "archive/writer.h"

struct archive_writer {
	struct archive_writer_options options; /* `dir` is its own */
	int dir_fd, lock_fd;
	struct blocks blocks;
	struct packers packers;
	struct store store;
	struct channel_states states;
	struct archive_resumption resumption;

	struct block *block; /* being filled, NULL: none */
	uint64_t since_ns;   /* its first entry */
	bool segment_over;   /* the next block begins another */
	bool resuming;       /* RESUMED is still to be said */
	bool repeating;
	uint64_t records, left_out;
	bool finished;
};

/* One entry; `bytes` and payload as in the head. */
struct entry_spec {
	struct archive_entry head;
	const void *payload;
};

/*
 * A block with room for an entry of @payload bytes: the present one or the next, or NULL
 * and *@code. Begins a segment where it is time.
 * @state: as in format.h; such entries and others are in blocks of their own, so that damage of
 *         what is large does not hide what follows.
 */
struct block *writer_block(struct archive_writer *writer, uint64_t payload, bool state, int *code);

/* Bytes of an entry with a payload of so many. */
uint64_t writer_entry_span(uint64_t payload);

/* Where its next entry goes. */
uint8_t *writer_place(const struct block *block);

/* Appends one. Returns as the calls of writer.h. */
int writer_append(struct archive_writer *writer, const struct entry_spec *spec);

/* Hands the present block on. */
void writer_hand_on(struct archive_writer *writer, bool last);

/* Says everything again that a segment must say. Returns as writer_append(). */
int writer_repeat(struct archive_writer *writer);

/* How many bytes that takes at most, in blocks, for the next recorder. */
uint64_t writer_repeat_bytes(const struct archive_writer *writer);

#endif
