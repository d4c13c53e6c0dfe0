/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader: records of one channel, from any process, across generations.
 *
 *	open -> { next, use, check } ... wait ... -> close
 *
 * A reader never slows the model or the daemon. What it cannot read in time it
 * is told of, exactly. It follows the channel from one generation to the next.
 */
#ifndef R3RING_READER_H
#define R3RING_READER_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_reader;

struct r3ring_reader_options {
	size_t size;             /* sizeof(struct r3ring_reader_options) */
	const char *runtime_dir; /* NULL: $R3RING_RUNTIME_DIR and the default places */
	const char *channel;     /* "INSTANCE/RANK" or "INSTANCE/RANK.draft" */
	uint64_t generation;     /* 0: the newest */
	enum r3ring_cursor_mode mode;
	enum r3ring_cursor_start from;
	uint64_t seq;          /* for R3RING_FROM_SEQ */
	uint32_t stay;         /* 1: end with this generation instead of following to the next */
	uint32_t unregistered; /* 1: no page of its own; then it polls instead of being woken */
	uint64_t limit_bytes;  /* R3RING_LOSSLESS: arena bytes that it may leave unread; 0 or
				* more than the daemon allows: what that allows */
	uint32_t stall_ms;     /* R3RING_LOSSLESS: how long the channel waits; likewise */
	const char *label;     /* what it reads for, which status, top and the page show beside its
				* process: up to 15 letters, digits, ':', '.', '_', '-'; NULL: it
				* does not say. Only of a registered reader */
};

/*
 * Attaches to a channel through its daemon.
 *
 * A R3RING_LOSSLESS reader is waited for: while it has no more unread than its limit,
 * nothing is overwritten. The channel waits for one that stands still for stall_ms
 * and then, by the daemon's policy, demotes it (r3ring_reader_stats says so; what it
 * then loses it is told as any other) or drops new steps. It begins at the oldest
 * record that its limit covers (R3RING_FROM_OLDEST), or as others do; from a sequence
 * in front of that it may lose what is not yet kept for it.
 *
 * @reader:  receives the handle; untouched on failure.
 * @options: copied.
 * @err:     receives the reason in words; may be NULL.
 *
 * Returns 0, -EINVAL (@reader or @options is NULL, or an option, named), -ECONNREFUSED
 * (no daemon, or one that does not accept; the message names the places tried),
 * -ENAMETOOLONG (the runtime directory), -ENOENT (the daemon has no such channel or
 * generation), -EACCES, -EPROTO, -ERANGE (seq), -ETIMEDOUT (the daemon did not answer, or
 * did not admit the reader, within 5 s), -EPIPE (it hung up, which it does when it ends or
 * dies in that moment: open again), -EBADMSG (its answer is malformed or does not fit
 * the segment), -ENOSPC (lossless: the channel has 64 registered readers), -EMFILE (it
 * has no descriptors left), -EOPNOTSUPP (lossless: an older daemon), -ENOMEM, another
 * code of the daemon's with its words, the errno of making or sending over the socket,
 * or as r3ring_segment_open_fd().
 *
 * Pairs with r3ring_reader_close(), where NULL is fine. The handle given to the other
 * calls, and where they write, must not be NULL. One thread a reader.
 */
R3RING_API int r3ring_reader_open(struct r3ring_reader **reader,
				  const struct r3ring_reader_options *options,
				  struct r3ring_error *err);
R3RING_API void r3ring_reader_close(struct r3ring_reader *reader);

/*
 * Gives the next record in place; believe what was read from view->data once
 * r3ring_reader_check() returned 0.
 *
 * Returns 1 (a record), 0 (nothing new), -EOVERFLOW (records were lost, see
 * r3ring_reader_get_stats(); call again), -EPIPE (the channel has ended and no
 * next generation is there yet; call again later to follow), -EBADMSG (corrupt
 * content; the record counts as lost), -ENOMEM (for the next generation), or another
 * errno of beginning that, with words; call again. Never blocks.
 *
 * A LAYER counts once its step's STEP_END has come that does not list the layer as
 * missing (record.h).
 *
 * At the end of a generation the reader moves on to the one that the daemon
 * says is next, once all was read: view->generation tells them apart. The first
 * record of the new generation is its SCHEMA; what it has already overwritten
 * counts as lost.
 *
 * A generation that ended, and was removed, before this reader came to it is passed
 * over. That is told with -EOVERFLOW in front of the next one's first record, and how
 * many there were in stats.missed; how many records they had nobody knows any more
 * (their steps are those between what was read before and after, where the same engine
 * went on), so they count in no other number.
 */
R3RING_API int r3ring_reader_next(struct r3ring_reader *reader, struct r3ring_view *view);

/* As r3ring_cursor_check(). Returns 0, -EOVERFLOW, or -EINVAL (no view is open). */
R3RING_API int r3ring_reader_check(struct r3ring_reader *reader);

/* As r3ring_cursor_read(). Returns as r3ring_reader_next(), or -EMSGSIZE (view->len is more
 * than @capacity; the same record comes again). */
R3RING_API int r3ring_reader_read(struct r3ring_reader *reader, struct r3ring_view *view,
				  void *buffer, size_t capacity);

/*
 * Waits until a record is there, for at most @timeout_ms (0: looks once; -1:
 * without end). Not between next and check.
 * Returns 1 (something to read or to be told), 0 (timeout; so also for an end
 * that next has told of, until there is a next generation), -EOWNERDEAD (the
 * writer gave no sign of life for 3 s, its daemon does not know the channel or
 * does not answer, and nothing is left to read; told at once the first time and
 * then at the timeout, so wait again to see its successor).
 */
R3RING_API int r3ring_reader_wait(struct r3ring_reader *reader, int timeout_ms);

/*
 * For poll and epoll loops: a descriptor that becomes readable when records come, and
 * when the reader has something to do to come to the next generation or to another
 * daemon, once r3ring_reader_arm() was called; the same through all generations, the
 * reader's, to be polled level-triggered and nothing else. The loop is arm, poll, next
 * until it returns neither 1 nor -EOVERFLOW nor -EBADMSG; it needs no timeout. About once
 * a second, and more often while a daemon or generation is waited for (at most once a
 * millisecond), it is readable though next then has nothing: arm and poll again. That a
 * writer is dead is told by r3ring_reader_wait() alone, with a timeout of 0.
 * Returns the descriptor, -EOPNOTSUPP (not registered when first asked for), or the
 * errno of making it.
 */
R3RING_API int r3ring_reader_fd(struct r3ring_reader *reader);

/*
 * To be called before each poll of r3ring_reader_fd(); not between next and check.
 * Goes on following as r3ring_reader_next() does; never blocks.
 * Returns 1 (there is something to read or to be told: do not poll), 0 (poll), -EOPNOTSUPP
 * (r3ring_reader_fd() has given none).
 */
R3RING_API int r3ring_reader_arm(struct r3ring_reader *reader);

/* Largest payload of the present generation, for r3ring_reader_read(). */
R3RING_API size_t r3ring_reader_max_record(const struct r3ring_reader *reader);

struct r3ring_reader_stats {
	struct r3ring_cursor_stats now; /* of the present generation */
	uint64_t generation;
	uint8_t uuid[16];
	uint64_t generations; /* how many were read, this one included */
	uint64_t got_before;  /* sums over the generations before */
	uint64_t lost_before;
	uint64_t skipped_before;
	uint64_t corrupt;      /* records refused with -EBADMSG */
	uint32_t registered;   /* 1: it has a page, and is woken */
	uint32_t demoted;      /* 1: was lossless in this generation and is no longer */
	uint64_t demoted_from; /* what it had not read when the writer gave up waiting, */
	uint64_t demoted_to;   /* first and last sequence: lost is what it is told of */
	uint64_t missed;       /* generations, by their numbers, between those that were read; at
				* most so many, where other directories' rings had numbers */
	uint64_t unkept;       /* lossless: records lost, in all generations, because nobody kept
				* them for it: it came back later than the stall limit (behind a
				* daemon's death, or to a new generation), or began in front of
				* what was kept when it was opened (R3RING_FROM_FIRST,
				* R3RING_FROM_SEQ). Without demotion no other is lost. */
	uint64_t untaken;      /* numbers right in front of the present generation that none of
				* this channel had: nothing is missing there */
};

R3RING_API void r3ring_reader_get_stats(const struct r3ring_reader *reader,
					struct r3ring_reader_stats *stats);

/* Name of the present segment, and the last message in words ("" when none). */
R3RING_API const char *r3ring_reader_segment(const struct r3ring_reader *reader);
R3RING_API const char *r3ring_reader_error(const struct r3ring_reader *reader);

/* ---- which request a span belongs to ---------------------------------- */

struct r3ring_requests;

/*
 * A table from request handles to text ids, fed with a channel's records.
 * Attributes nothing until it has seen the beginning of the generation (SCHEMA
 * as record 1) or a whole keyframe, read without a gap; after a gap only what it
 * knows for certain: handles are unique within a generation, so known ones stay
 * valid, until a whole keyframe that leaves none out (R3RING_DESC_ABRIDGED) does
 * not name them. Of those that one leaves out nothing is known to who comes
 * late. A record of another generation (view->generation) resets it.
 *
 * r3ring_requests_create() returns NULL when memory is out. Pairs with destroy;
 * NULL is fine. One thread.
 */
R3RING_API struct r3ring_requests *r3ring_requests_create(void);
R3RING_API void r3ring_requests_destroy(struct r3ring_requests *requests);

/*
 * Takes note of a record that was read and checked (all types may be given).
 * Returns 0, -ENOMEM (the request stays unattributed), or -ENOBUFS (more than
 * 2^20 requests since the last keyframe: the oldest is forgotten, ended ones
 * first, and its rows become unattributed).
 */
R3RING_API int r3ring_requests_feed(struct r3ring_requests *requests,
				    const struct r3ring_view *view,
				    const struct r3ring_record *record);

/* Tells of a gap in the records (-EOVERFLOW or -EBADMSG of the reader). */
R3RING_API void r3ring_requests_gap(struct r3ring_requests *requests);

/*
 * Text id of a handle, or NULL when it must not be attributed. A request that
 * ended keeps its name until the next keyframe. Valid until the next feed.
 */
R3RING_API const char *r3ring_requests_id(const struct r3ring_requests *requests, uint64_t handle);

/* Whether a request of that text id was said to run and not to have ended since, be that certain or
 * not. */
R3RING_API bool r3ring_requests_runs(const struct r3ring_requests *requests, const char *id);

/* Whether a keyframe or the generation's beginning was seen. */
R3RING_API bool r3ring_requests_ready(const struct r3ring_requests *requests);

#ifdef __cplusplus
}
#endif

#endif
