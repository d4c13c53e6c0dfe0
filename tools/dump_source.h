/* SPDX-License-Identifier: Apache-2.0 */
/* Where a dump reads from: one channel, all ranks of an instance in turns, or the ring of
 * one generation by its name, without a daemon. */
#ifndef TOOLS_DUMP_SOURCE_H
#define TOOLS_DUMP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reader.h>

/* What each kind can do; calls as those of the reader and the instance. @handle: its own. */
struct dump_source_ops {
	bool goes_on; /* behind the end of a ring, in the next generation's */
	void (*close)(void *handle);
	int (*read)(void *handle, struct r3ring_view *view, void *buffer, size_t capacity);
	int (*wait)(void *handle, int timeout_ms);
	size_t (*max_record)(void *handle);
	const char *(*error)(void *handle);
	/* How many channels there are, and of which read() spoke last. */
	uint32_t (*channels)(void *handle);
	uint32_t (*current)(void *handle);
	/* Name of a channel of an instance; NULL of one channel alone. */
	const char *(*channel)(void *handle, uint32_t index);
	/* False for a channel that could not be attached to. */
	bool (*get_stats)(void *handle, uint32_t index, struct r3ring_reader_stats *stats);
	/* Whether the channel's ring says of a sequence that it is its newest which cannot be. */
	bool (*tail_lies)(void *handle, uint32_t index);
	/* Of a ring by itself: it is not closed, and nobody writes it any more. NULL elsewhere. */
	bool (*left_open)(void *handle);
};

/* Zeroed: closed. */
struct dump_source {
	const struct dump_source_ops *ops;
	void *handle;
};

struct dump_source_options {
	const char *name; /* "INSTANCE/RANK[.draft]", or an instance's name alone */
	bool segment;     /* it is a segment's name, with or without what goes before it */
	enum r3ring_cursor_start from;
	uint64_t seq;
	bool lossless;
	bool stay; /* with the generations and channels that are there */
};

/* Whether a name is that of an instance. */
bool dump_names_instance(const char *name);

/* Returns 0 or a negative errno with a message. */
int dump_source_open(struct dump_source *source, const struct dump_source_options *options,
		     struct r3ring_error *err);
void dump_source_close(struct dump_source *source);

/* Of the kinds, each in a file of its own: */
int dump_channel_open(struct dump_source *source, const struct dump_source_options *options,
		      struct r3ring_error *err);
int dump_instance_open(struct dump_source *source, const struct dump_source_options *options,
		       struct r3ring_error *err);
int dump_segment_open(struct dump_source *source, const struct dump_source_options *options,
		      struct r3ring_error *err);

#endif
