/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of an instance: the records of all its ranks, merged into one
 * stream. Ranks that appear later are joined, and each is followed from one
 * generation to the next.
 *
 *	open -> { next, use, check } ... wait ... -> close
 *
 * Only records are merged, not their meaning: which rows of two ranks belong
 * together is not its business.
 */
#ifndef R3RING_INSTANCE_H
#define R3RING_INSTANCE_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_instance;

/* Which models' channels are read. A draft model's routes are not its target's. */
enum r3ring_instance_models {
	R3RING_TARGET_CHANNELS = 0,
	R3RING_DRAFT_CHANNELS = 1,
	R3RING_ALL_CHANNELS = 2,
};

/*
 * Where a channel was left off, for a reader that goes on there: behind record @seq of a
 * generation, while the daemon has it. Where it has not, the channel is read from the
 * newest generation's first record on; r3ring_instance_get_stats() names the generation.
 */
struct r3ring_instance_start {
	const char *channel; /* "INSTANCE/RANK[.draft]" */
	uint64_t generation;
	uint8_t uuid[16]; /* of its segment */
	uint64_t seq;
};

struct r3ring_instance_options {
	size_t size;             /* sizeof(struct r3ring_instance_options) */
	const char *runtime_dir; /* NULL: $R3RING_RUNTIME_DIR and the default places */
	const char *instance;    /* its name, without a rank */
	enum r3ring_instance_models models;
	enum r3ring_cursor_mode mode;
	enum r3ring_cursor_start from; /* any but R3RING_FROM_SEQ; of ranks that are there */
	uint32_t stay;        /* 1: end with these channels' generations, and join no others */
	uint64_t limit_bytes; /* R3RING_LOSSLESS: as in struct r3ring_reader_options */
	uint32_t stall_ms;    /* likewise */
	uint32_t start_count; /* of `starts` */
	const struct r3ring_instance_start *starts; /* channels for which `from` does not count */
	const char *const *only; /* channels that are read, up to NULL; NULL: all of `models` */
	const char *label;       /* as in struct r3ring_reader_options */
};

/*
 * Attaches to all channels of an instance through its daemon. A channel that
 * appears later is read from its first record (or its start, if it has one), whatever
 * @options->from says; what was overwritten before this reader found it counts as lost, and
 * is told.
 *
 * @instance: receives the handle; untouched on failure.
 * @options:  copied, but for `starts`, `only` and `label`, which must live as long as the handle.
 * @err:      receives the reason in words; may be NULL.
 *
 * Returns 0, -EINVAL (@instance or @options is NULL, or an option, named), -ENOENT (the
 * daemon has no channel of the instance), -EBADMSG (also of a daemon too old to be asked
 * for channels), -ENOMEM, or as r3ring_reader_open() of any of them; so -EPIPE where the
 * daemon ends or dies in that moment: open again.
 *
 * Pairs with r3ring_instance_close(), where NULL is fine. The handle given to the other
 * calls, and where they write, must not be NULL. One thread an instance. Each channel counts
 * as a reader to the daemon's limits.
 */
R3RING_API int r3ring_instance_open(struct r3ring_instance **instance,
				    const struct r3ring_instance_options *options,
				    struct r3ring_error *err);
R3RING_API void r3ring_instance_close(struct r3ring_instance *instance);

/*
 * Gives the next record in place, as r3ring_reader_next() does;
 * r3ring_instance_current() says of which channel. Records of one channel come in
 * its order. Channels that have records take turns, one record each, so none
 * waits for more than one record of every other.
 *
 * Returns 1 (a record), 0 (nothing new in any channel), -EPIPE (all channels have
 * ended; call again later to follow), -EOVERFLOW, -EBADMSG, -ENOMEM or another code (as
 * r3ring_reader_next(), of the current channel; the others are not affected), or
 * the error with which a channel that appeared could not be attached to, once each
 * (it is tried again).
 *
 * Asks the daemon for new channels twice a second, without waiting for the answer;
 * attaching to one takes a round trip to the daemon (at most 5 s). Else never
 * blocks.
 */
R3RING_API int r3ring_instance_next(struct r3ring_instance *instance, struct r3ring_view *view);

/* As r3ring_reader_check(), of the view that was given last. Returns 0, -EOVERFLOW, or
 * -EINVAL (none is open). */
R3RING_API int r3ring_instance_check(struct r3ring_instance *instance);

/* As r3ring_reader_read(); after -EMSGSIZE the same record comes again. */
R3RING_API int r3ring_instance_read(struct r3ring_instance *instance, struct r3ring_view *view,
				    void *buffer, size_t capacity);

/*
 * Waits until a record is there in any channel, for at most @timeout_ms (0: looks
 * once; -1: without end). Not between next and check.
 * Returns 1 (call next; it may still return 0, when all there was to tell is that
 * one of several channels ended), 0 (timeout), -EOWNERDEAD (timeout, and no
 * channel's writer gave a sign of life: see r3ring_reader_wait()).
 */
R3RING_API int r3ring_instance_wait(struct r3ring_instance *instance, int timeout_ms);

/* ---- its channels ------------------------------------------------------ */

/*
 * Channels have an index from 0 on that stays: by rank, draft models behind
 * targets, those that were there at the opening; then in the order of their
 * appearance.
 */
R3RING_API uint32_t r3ring_instance_channels(const struct r3ring_instance *instance);

/* The channel of which next, read or their error spoke last. */
R3RING_API uint32_t r3ring_instance_current(const struct r3ring_instance *instance);

/* Name of the segment that a channel is read from; NULL when there is none. Valid until the next
 * call that reads or waits. */
R3RING_API const char *r3ring_instance_segment(const struct r3ring_instance *instance,
					       uint32_t index);

/* "INSTANCE/RANK[.draft]"; NULL when there is no such index. Valid until close. */
R3RING_API const char *r3ring_instance_channel(const struct r3ring_instance *instance,
					       uint32_t index);

/* Largest payload of the present generations, for r3ring_instance_read(). */
R3RING_API size_t r3ring_instance_max_record(const struct r3ring_instance *instance);

/*
 * Accounts of one channel. Returns 0, -EINVAL (no such index), or -ENOTCONN (it
 * could not be attached to).
 */
R3RING_API int r3ring_instance_get_stats(const struct r3ring_instance *instance, uint32_t index,
					 struct r3ring_reader_stats *stats);

/* Sums over all channels and their generations; records. */
struct r3ring_instance_sums {
	uint32_t channels;
	uint32_t reserved;
	uint64_t got;
	uint64_t lost;
	uint64_t skipped;
	uint64_t corrupt;
};

R3RING_API void r3ring_instance_get_sums(const struct r3ring_instance *instance,
					 struct r3ring_instance_sums *sums);

/* The last message in words, with the channel's name in front ("" when none). */
R3RING_API const char *r3ring_instance_error(const struct r3ring_instance *instance);

#ifdef __cplusplus
}
#endif

#endif
