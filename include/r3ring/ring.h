/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: one writer, any number of readers in any process, every reader
 * sees every record or is told exactly how many it lost. Knows nothing of what
 * the records mean.
 *
 * A segment is the shared memory object, a writer fills it, a cursor reads it.
 * The layout is in abi.h, the protocol and its proof in docs/ARCHITECTURE.md.
 */
#ifndef R3RING_RING_H
#define R3RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/abi.h>
#include <r3ring/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- segment ---------------------------------------------------------- */

struct r3ring_segment;

struct r3ring_segment_options {
	size_t size;          /* sizeof(struct r3ring_segment_options) */
	const char *name;     /* shm_open name, begins with '/' */
	const char *label;    /* at most R3RING_LABEL_MAX bytes, stored in the header */
	uint64_t arena_bytes; /* power of two, 4 KiB to 64 GiB */
	uint32_t depth;       /* descriptors, power of two, 16 to 2^24 */
	uint32_t mode;        /* 0640 when 0; set whatever the umask */
	uint64_t generation;  /* stored in the header */
	uint8_t uuid[16];     /* stored in the header */
	uint64_t first_seq;   /* sequence of the first record; 1 when 0 */

	/* Asked again and again while memory is allocated, with the bytes that are there:
	 * false ends it. NULL: not asked. */
	bool (*carry_on)(void *ctx, uint64_t bytes);
	void *ctx;

	uint32_t untaken; /* stored in the header */
};

/*
 * Makes a segment, allocates all of its memory, and holds the writer's lock
 * (flock on the object) until it is closed.
 *
 * @segment: receives the handle; untouched on failure.
 * @options: see above.
 * @err:     receives the reason in words; may be NULL.
 *
 * Returns 0, -EINVAL (an option, named), -EEXIST (the name is taken), -ENOSPC
 * (the message names the bytes needed, the bytes free and the remedy), -ECANCELED
 * (@options->carry_on said so), or the errno of shm_open, fchmod, posix_fallocate or mmap. The name is removed again
 * when a later part fails.
 *
 * One thread; pairs with r3ring_segment_close(). The name stays until
 * r3ring_segment_unlink().
 * Source: posix_fallocate(3) (a full tmpfs is an error here, not SIGBUS later).
 */
R3RING_API int r3ring_segment_create(struct r3ring_segment **segment,
				     const struct r3ring_segment_options *options,
				     struct r3ring_error *err);

/*
 * Takes over a segment whose writer is dead: opens it for writing, takes its
 * lock, and checks its header as an opening reader would. r3ring_writer_open()
 * on it then continues behind the last published record and never goes back.
 *
 * Returns 0, -EBUSY (its writer lives: the lock is held), or as
 * r3ring_segment_open().
 */
R3RING_API int r3ring_segment_adopt(struct r3ring_segment **segment, const char *name,
				    struct r3ring_error *err);

/*
 * Maps a segment read-only by its name.
 *
 * @segment: receives the handle; untouched on failure.
 * @name:    shm_open name.
 * @err:     receives the reason in words; may be NULL.
 *
 * Returns 0, -ENOENT (no such name), -EACCES (may not be read, belongs neither
 * to this user nor to root nor to a group of the caller, or is writable by
 * others), -EAGAIN (its writer has not finished making it), -EPROTO (other ABI,
 * endianness or an unknown incompatible feature), -EBADMSG (header does not fit
 * the object), or the errno of open or mmap.
 *
 * One thread; pairs with r3ring_segment_close().
 */
R3RING_API int r3ring_segment_open(struct r3ring_segment **segment, const char *name,
				   struct r3ring_error *err);

/*
 * The same for a descriptor that was received from the writer's process; no
 * ownership check, since who sent it was checked already. @fd is not taken
 * over and may be closed at once.
 *
 * Returns as r3ring_segment_open().
 */
R3RING_API int r3ring_segment_open_fd(struct r3ring_segment **segment, int fd,
				      struct r3ring_error *err);

/*
 * Unmaps the segment and frees the handle; NULL is fine. No cursor or writer of
 * it may be in use any more. The name stays.
 */
R3RING_API void r3ring_segment_close(struct r3ring_segment *segment);

/*
 * Removes the segment's name; who has it mapped keeps it.
 * Returns 0 or the errno of shm_unlink.
 */
R3RING_API int r3ring_segment_unlink(const struct r3ring_segment *segment);

/*
 * Opens a new read-only descriptor of a segment made by this process, to be
 * sent to a reader. Returns the descriptor (close-on-exec, owned by the caller)
 * or a negative errno.
 */
R3RING_API int r3ring_segment_reader_fd(const struct r3ring_segment *segment);

/*
 * Whether the process lives that made or adopted the segment last, by the PID and
 * start time in its header; false on another boot or in another PID namespace.
 */
R3RING_API bool r3ring_segment_writer_lives(const struct r3ring_segment *segment);

/* The header as checked when the segment was made or opened; never NULL. It
 * is a private copy: nobody can change it any more. Valid until close. */
R3RING_API const struct r3ring_segment_header *r3ring_segment_get_header(
	const struct r3ring_segment *segment);

/* The name it was made or opened with; "" when opened by descriptor. */
R3RING_API const char *r3ring_segment_name(const struct r3ring_segment *segment);

/*
 * Largest payload that fits (arena / 8).
 * A pure function of the segment's sizes.
 */
R3RING_API size_t r3ring_segment_max_record(const struct r3ring_segment *segment);

/* Where the arena is mapped here, and its bytes, for a device that copies into it. */
R3RING_API void *r3ring_segment_arena(const struct r3ring_segment *segment, size_t *bytes);

/* ---- writer ----------------------------------------------------------- */

struct r3ring_writer;

/* What the caller says about a record when it reserves it. */
struct r3ring_record_spec {
	uint64_t step;  /* 0 for none */
	uint64_t units; /* added to the running total of units (see r3ring_cursor_stats) */
	uint32_t len;   /* payload bytes, 0 to r3ring_segment_max_record() */
	uint16_t type;
	uint16_t flags; /* enum r3ring_desc_flags without R3RING_DESC_INLINE */
};

/* A record that is being written. */
struct r3ring_slot {
	uint64_t seq;
	void *data; /* where the payload goes: @len bytes, 64-byte aligned unless inline */
	uint32_t len;
};

/*
 * Starts writing into a segment that this process made or adopted. One writer a
 * segment. In an adopted one it walks from the tail over every descriptor that
 * holds its own sequence, goes on behind the last of them, and raises
 * writer_epoch and wake.
 * Returns 0, -EINVAL (segment was opened read-only), -EPIPE (its writer had
 * finished: nothing may follow), -EBADMSG (the words it left cannot be true),
 * -ENOMEM.
 * Pairs with r3ring_writer_close(), which must come before r3ring_segment_close().
 */
R3RING_API int r3ring_writer_open(struct r3ring_writer **writer, struct r3ring_segment *segment);
R3RING_API void r3ring_writer_close(struct r3ring_writer *writer);

/*
 * Takes the next sequence and room for its payload, which the caller then
 * fills, itself or by a device copy. The oldest records are overwritten as
 * needed: from this call on no reader accepts them.
 *
 * @writer: one thread at a time.
 * @spec:   the record's description; checked.
 * @slot:   receives where to write; untouched on failure.
 *
 * Several records may be reserved before the first is committed (at most
 * depth / 2 records and half the arena); they are committed in the order of
 * their reservation.
 *
 * Returns 0, -EMSGSIZE (longer than r3ring_segment_max_record(): can never
 * fit), -ENOBUFS (too much is reserved and not yet committed), -EAGAIN (it would
 * overwrite what a lossless reader within its limits still needs: commit what is
 * reserved and try again later; only where lossless readers are served, as in the
 * daemon), -EINVAL (flags), -EPIPE (after r3ring_writer_finish()), -EOVERFLOW (2^62
 * sequences are used up). No system call.
 */
R3RING_API int r3ring_writer_reserve(struct r3ring_writer *writer,
				     const struct r3ring_record_spec *spec,
				     struct r3ring_slot *slot);

/*
 * Publishes the oldest reserved record; its payload must be complete (a device
 * copy into it finished). Readers see it at once, sleeping readers after
 * r3ring_writer_wake().
 *
 * Returns 0, or -EINVAL when @slot is not the oldest one reserved.
 * Wait-free, no system call. Its release pairs with the acquire in
 * r3ring_cursor_next().
 */
R3RING_API int r3ring_writer_commit(struct r3ring_writer *writer, const struct r3ring_slot *slot);

/*
 * Reserve, copy and commit in one, for a payload that is at hand.
 * Returns as r3ring_writer_reserve(); -EBUSY while reservations are open.
 */
R3RING_API int r3ring_writer_put(struct r3ring_writer *writer,
				 const struct r3ring_record_spec *spec, const void *payload);

/* Wakes readers that sleep; after a batch, not after each record. Where readers are
 * registered, as in the daemon, without a system call unless one of them sleeps. */
R3RING_API void r3ring_writer_wake(struct r3ring_writer *writer);

/*
 * Names @seq (a published record flagged R3RING_DESC_KEYFRAME) as the newest
 * keyframe, once all records of that keyframe are published.
 */
R3RING_API void r3ring_writer_set_keyframe(struct r3ring_writer *writer, uint64_t seq);

/* Stores the heartbeat (CLOCK_MONOTONIC, ns). */
R3RING_API void r3ring_writer_heartbeat(struct r3ring_writer *writer, uint64_t now_ns);

/* Says that nothing will follow; readers that have read all get -EPIPE. */
R3RING_API void r3ring_writer_finish(struct r3ring_writer *writer);

/* Sequence that the next reservation gets; and the arena position behind the
 * last reservation (for deciding when a keyframe is due). */
R3RING_API uint64_t r3ring_writer_next_seq(const struct r3ring_writer *writer);
R3RING_API uint64_t r3ring_writer_position(const struct r3ring_writer *writer);

/* Payload bytes published since the segment was made, by all its writers. */
R3RING_API uint64_t r3ring_writer_bytes(const struct r3ring_writer *writer);

/* ---- cursor (reading) ------------------------------------------------- */

struct r3ring_cursor;

enum r3ring_cursor_mode {
	R3RING_LOSSY = 0,  /* read all; when lapped, resume as old as is safe */
	R3RING_LATEST = 1, /* after a gap or r3ring_cursor_skip(), resume at the newest boundary */
	R3RING_LOSSLESS = 2, /* the writer waits for it, within limits; r3ring_reader_open() only */
};

enum r3ring_cursor_start {
	R3RING_FROM_OLDEST = 0,   /* oldest record that can still be read */
	R3RING_FROM_LATEST = 1,   /* the next record to be published */
	R3RING_FROM_SEQ = 2,      /* a sequence of the caller's */
	R3RING_FROM_KEYFRAME = 3, /* newest keyframe; oldest where there is none */
	R3RING_FROM_FIRST = 4,    /* the ring's first record: what was overwritten counts as lost */
};

/* A record in place. Everything but `data` is a private copy. */
struct r3ring_view {
	uint64_t seq;
	uint64_t step;
	uint64_t units;      /* running total up to and including this record */
	uint64_t generation; /* of the segment: sequences and handles begin anew in each */
	const void *data;    /* payload in the ring: may change under the reader, see check */
	uint32_t len;
	uint16_t type;
	uint16_t flags;
};

/*
 * Exact accounts: got + lost + skipped == cursor - start after every call. A
 * record counts as got once its check has passed.
 *
 * When a R3RING_LATEST cursor is overrun, what had been overwritten by then is
 * lost and what it could still have read up to the boundary is skipped. What
 * r3ring_cursor_skip() passes over is skipped, overwritten or not: the reader
 * did not want it.
 *
 * Units leave out what nobody can know: those of records refused with -EBADMSG,
 * and of the first gap of a cursor that began, by R3RING_FROM_SEQ, at a record
 * that was overwritten already.
 */
struct r3ring_cursor_stats {
	uint64_t start;            /* first sequence this cursor could have read */
	uint64_t cursor;           /* sequence of the next record to read */
	uint64_t got;              /* records read and found intact */
	uint64_t lost;             /* records overwritten before they were read */
	uint64_t skipped;          /* records passed over by the reader's own choice */
	uint64_t lost_units;       /* the caller's units in lost records */
	uint64_t skipped_units;    /* likewise */
	uint64_t gap_from, gap_to; /* newest gap, first and last sequence; 0, 0 when none */
};

/*
 * Starts reading a segment.
 *
 * @cursor:  receives the handle; untouched on failure.
 * @segment: stays the caller's; must outlive the cursor.
 * @mode, @from: see the enums.
 * @seq:     first sequence to read for R3RING_FROM_SEQ, else ignored. Below the
 *           ring's first it means the first. One that was overwritten already
 *           counts as lost, as any overrun, in the first r3ring_cursor_next(); one
 *           beyond the next to be published is -ERANGE.
 *
 * Returns 0, -EINVAL, -ERANGE, -ENOMEM. One thread a cursor; any number of
 * cursors. Pairs with r3ring_cursor_close().
 */
R3RING_API int r3ring_cursor_open(struct r3ring_cursor **cursor,
				  const struct r3ring_segment *segment,
				  enum r3ring_cursor_mode mode, enum r3ring_cursor_start from,
				  uint64_t seq);
R3RING_API void r3ring_cursor_close(struct r3ring_cursor *cursor);

/*
 * Gives the record at the cursor without copying it and without moving on.
 *
 * @view: receives the record; its payload is only to be believed once
 *        r3ring_cursor_check() has said so. Untouched unless 1 is returned.
 *
 * An unchecked view of the call before is checked first.
 *
 * Returns 1 (a record), 0 (nothing new), -EOVERFLOW (records were lost: stats
 * name the gap; the cursor stands behind it, call again), -EPIPE (all was read
 * and the writer has finished, or it claims more than a ring can hold), -EBADMSG (the
 * ring's content is corrupt; the record counts as lost, or all up to the newest that the slots
 * show. Where nothing was lost, as stats say, its newest sequence cannot be: the segment is
 * damaged, which is told once; call again).
 * Wait-free but for retries that are bounded by the writer's laps; the 0 behind a
 * run of records takes some microseconds, in which the writer gets ahead. No system
 * call. Its acquire pairs with the release in r3ring_writer_commit().
 */
R3RING_API int r3ring_cursor_next(struct r3ring_cursor *cursor, struct r3ring_view *view);

/*
 * Whether the payload of the view from the last r3ring_cursor_next() was intact
 * until now; moves the cursor on. Call it after the payload was used or copied,
 * and act on what was read only when it returns 0.
 *
 * Returns 0 (intact, counted as got), -EOVERFLOW (overwritten meanwhile, counted
 * as lost; forget what was read), -EINVAL (no view is open).
 */
R3RING_API int r3ring_cursor_check(struct r3ring_cursor *cursor);

/*
 * Next, copy and check in one.
 *
 * @buffer:   receives the payload; view->data then points there.
 * @capacity: its bytes.
 *
 * Returns as r3ring_cursor_next(); -EMSGSIZE when @capacity is less than the
 * payload (view->len says what is needed; the cursor has not moved).
 */
R3RING_API int r3ring_cursor_read(struct r3ring_cursor *cursor, struct r3ring_view *view,
				  void *buffer, size_t capacity);

/*
 * Sleeps until there is something for r3ring_cursor_next() to tell, at most
 * @timeout_ns. The caller looks at the heartbeat between two waits.
 *
 * Returns 1 (call next), 0 (timeout or a signal came). No wake-up is lost: its
 * acquire of the wake word pairs with the addition in r3ring_writer_wake().
 */
R3RING_API int r3ring_cursor_wait(const struct r3ring_cursor *cursor, uint64_t timeout_ns);

/*
 * Goes to the newest boundary (or to behind the newest record when there is
 * none after the cursor); what is passed over counts as skipped.
 */
R3RING_API void r3ring_cursor_skip(struct r3ring_cursor *cursor);

R3RING_API void r3ring_cursor_get_stats(const struct r3ring_cursor *cursor,
					struct r3ring_cursor_stats *stats);

/*
 * Newest published sequence (by the slots, where the writer's word for it cannot be), and the oldest that can be read now: its descriptor
 * and payload are there, and the running total in front of it is known. One more
 * than the newest when there is none.
 */
R3RING_API uint64_t r3ring_segment_tail(const struct r3ring_segment *segment);
R3RING_API uint64_t r3ring_segment_oldest(const struct r3ring_segment *segment);

/* CLOCK_MONOTONIC nanoseconds of the writer's last sign of life. */
R3RING_API uint64_t r3ring_segment_heartbeat(const struct r3ring_segment *segment);

/* Changes when another writer goes on in the segment. */
R3RING_API uint64_t r3ring_segment_epoch(const struct r3ring_segment *segment);

#ifdef __cplusplus
}
#endif

#endif
