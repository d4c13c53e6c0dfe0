/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching: asking the daemon for a channel's segment, in one go or without
 * ever waiting.
 */
#ifndef CONSUMER_ATTACH_H
#define CONSUMER_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>
#include <r3ring/reader_page.h>
#include <r3ring/ring.h>

/*
 * A segment that the daemon handed out; `segment` NULL when there is none, and
 * then nothing else of it counts. The connection stays open as long: by it the
 * daemon knows who reads.
 */
struct attachment {
	struct r3ring_segment *segment;
	struct r3ring_reader_page *page; /* NULL: not registered */
	int connection;
	int segment_fd; /* of a lossless reader, which shows itself by it; else -1 */
	uint64_t generation;
	uint64_t epoch; /* of the writer that knows of a registered reader */
	uint8_t uuid[16];
	char name[128];
};

/* A question to the daemon that awaits its answer; -1: none. */
struct attach_request {
	int fd;
};

/* What is asked for, and of whom. Strings stay the caller's. */
struct attach_target {
	const char *runtime_dir; /* NULL: the default places */
	struct r3ring_channel_name channel;
	uint64_t generation; /* 0: the newest */
	bool registers;
	bool lossless; /* then it must be registered */
	uint64_t limit_bytes;
	uint32_t stall_ms;
	char label[R3RING_READER_LABEL_BYTES]; /* empty: none */
};

/*
 * Sends the question. Does not wait.
 * Returns 0 (then attach_finish() or attach_cancel()), -ECONNREFUSED, -EACCES,
 * -ENAMETOOLONG, or the errno of sending.
 */
int attach_begin(struct attach_request *request, const struct attach_target *target,
		 struct r3ring_error *err);

/*
 * Takes the answer and maps the segment.
 *
 * @attachment: filled on success, untouched otherwise.
 * @timeout_ms: 0: only looks.
 *
 * Returns 0, -ETIMEDOUT (the question still stands), or, the question being
 * over: -ENOENT and what else the daemon refuses with, -EBADMSG (its answer does
 * not fit the segment), -EPROTO, -EOPNOTSUPP (@target wants a lossless reader, the
 * daemon registers none), or as r3ring_segment_open_fd().
 */
int attach_finish(struct attach_request *request, const struct attach_target *target,
		  struct attachment *attachment, int timeout_ms, struct r3ring_error *err);

/* Whether the writer knows of the reader, where it has to: until then records may be
 * overwritten. */
bool attachment_ready(const struct attachment *attachment, const struct attach_target *target);

/* Whether the daemon hung up: one that is not ready by now will never be. */
bool attachment_abandoned(const struct attachment *attachment);

/*
 * Shows the writer's successor that a lossless reader lives that is registered under
 * @epoch of the writer, until the attachment is released (ring/presence.h).
 * Returns 0 or a negative errno.
 */
int attachment_show(const struct attachment *attachment, uint64_t epoch);

/* Gives the question up; fine when there is none. */
void attach_cancel(struct attach_request *request);

/* Unmaps and hangs up; fine when there is none. */
void attachment_release(struct attachment *attachment);

#endif
