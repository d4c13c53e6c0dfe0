/* SPDX-License-Identifier: Apache-2.0 */
/* Where a dump reads from: one channel, or all ranks of an instance in turns. */
#ifndef TOOLS_DUMP_SOURCE_H
#define TOOLS_DUMP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/instance.h>
#include <r3ring/reader.h>

/* One of the two. Zeroed: closed. */
struct dump_source {
	struct r3ring_reader *reader;
	struct r3ring_instance *instance;
};

struct dump_source_options {
	const char *name; /* "INSTANCE/RANK[.draft]", or an instance's name alone */
	enum r3ring_cursor_start from;
	uint64_t seq;
	bool lossless;
	bool stay; /* with the generations and channels that are there */
};

/* Whether a name is that of an instance. */
bool dump_names_instance(const char *name);

/* Calls as those of the reader and the instance. */
int dump_source_open(struct dump_source *source, const struct dump_source_options *options,
		     struct r3ring_error *err);
void dump_source_close(struct dump_source *source);
int dump_source_read(struct dump_source *source, struct r3ring_view *view, void *buffer,
		     size_t capacity);
int dump_source_wait(struct dump_source *source, int timeout_ms);
size_t dump_source_max_record(const struct dump_source *source);
const char *dump_source_error(const struct dump_source *source);

/* How many channels there are, and of which read() spoke last. */
uint32_t dump_source_channels(const struct dump_source *source);
uint32_t dump_source_current(const struct dump_source *source);

/* Name of a channel of an instance; NULL of one channel alone. */
const char *dump_source_channel(const struct dump_source *source, uint32_t index);

/* False for a channel that could not be attached to. */
bool dump_source_get_stats(const struct dump_source *source, uint32_t index,
			   struct r3ring_reader_stats *stats);

#endif
