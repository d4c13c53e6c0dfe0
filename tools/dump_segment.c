/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of a segment as it lies in shared memory: nobody is asked, nobody is told. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/ring.h>

#include "channel/leftover.h"
#include "channel/socket.h"
#include "ring/cursor.h"
#include "tools/dump_single.h"

#define SHM_DIR "/dev/shm"
#define MS_NS 1000000u

struct opened {
	struct r3ring_segment *segment;
	struct r3ring_cursor *cursor;
};

static void segment_close(void *handle)
{
	struct opened *opened = handle;

	r3ring_cursor_close(opened->cursor);
	r3ring_segment_close(opened->segment);
	free(opened);
}

static int segment_read(void *handle, struct r3ring_view *view, void *buffer, size_t capacity)
{
	struct opened *opened = handle;

	return r3ring_cursor_read(opened->cursor, view, buffer, capacity);
}

static int segment_wait(void *handle, int timeout_ms)
{
	struct opened *opened = handle;

	cursor_doubt(opened->cursor);
	return r3ring_cursor_wait(opened->cursor, (uint64_t)timeout_ms * MS_NS);
}

static size_t segment_max_record(void *handle)
{
	struct opened *opened = handle;

	return r3ring_segment_max_record(opened->segment);
}

static const char *segment_error(void *handle)
{
	(void)handle;
	return "";
}

static bool segment_get_stats(void *handle, uint32_t index, struct r3ring_reader_stats *stats)
{
	struct opened *opened = handle;

	(void)index;
	*stats = (struct r3ring_reader_stats){
		.generation = r3ring_segment_get_header(opened->segment)->generation};
	r3ring_cursor_get_stats(opened->cursor, &stats->now);
	return true;
}

static bool segment_tail_lies(void *handle, uint32_t index)
{
	const struct opened *opened = handle;

	(void)index;
	return tail_lies(opened->segment);
}

/* A daemon closes the ring of an engine that has ended when the next one comes, and lists it as
 * ended before. */
static bool had_ended(const struct r3ring_segment *segment)
{
	char runtime_dir[PATH_MAX];

	return socket_default_dir(runtime_dir, sizeof(runtime_dir)) == 0 &&
	       leftover_has_ended(runtime_dir, r3ring_segment_name(segment));
}

static bool segment_left_open(void *handle)
{
	const struct opened *opened = handle;

	/* Pairs with the release of `closed` in r3ring_writer_finish(). Asked behind the writer:
	 * one that lives may close it, and end. */
	return !r3ring_segment_writer_lives(opened->segment) &&
	       !r3ring_load_acquire_u32(&opened->segment->lines->closed) &&
	       !had_ended(opened->segment);
}

static const struct dump_source_ops segment_ops = {
	.close = segment_close,
	.read = segment_read,
	.wait = segment_wait,
	.max_record = segment_max_record,
	.error = segment_error,
	.channels = dump_single_channels,
	.current = dump_single_current,
	.channel = dump_single_channel,
	.get_stats = segment_get_stats,
	.tail_lies = segment_tail_lies,
	.left_open = segment_left_open,
};

/* As shm_open() takes it: of a path what follows the directory of shared memory. */
static int name_segment(const char *given, char name[NAME_MAX + 2], struct r3ring_error *err)
{
	if (strncmp(given, SHM_DIR "/", sizeof(SHM_DIR)) == 0)
		given += sizeof(SHM_DIR);
	else if (given[0] == '/')
		given++;
	if (given[0] && !strchr(given, '/') && strlen(given) <= NAME_MAX) {
		snprintf(name, NAME_MAX + 2, "/%s", given);
		return 0;
	}
	return r3ring_error_set(err, -EINVAL,
				"'%s' is no segment's name, such as r3ring.1000.demo.0.1 "
				"(ls " SHM_DIR ")",
				given);
}

static int open_both(struct opened *opened, const struct dump_source_options *as,
		     struct r3ring_error *err)
{
	char name[NAME_MAX + 2];
	int code = name_segment(as->name, name, err);

	if (!code)
		code = r3ring_segment_open(&opened->segment, name, err);
	if (code)
		return code;
	code = r3ring_cursor_open(&opened->cursor, opened->segment, R3RING_LOSSY, as->from,
				  as->seq);
	if (code == -ERANGE)
		return r3ring_error_set(err, code,
					"%s: --from %llu is beyond its newest record, %llu",
					as->name, (unsigned long long)as->seq,
					(unsigned long long)r3ring_segment_tail(opened->segment));
	return code ? r3ring_error_set(err, code, "%s: %s", as->name, strerror(-code)) : 0;
}

int dump_segment_open(struct dump_source *source, const struct dump_source_options *as,
		      struct r3ring_error *err)
{
	struct opened *opened = calloc(1, sizeof(*opened));
	int code;

	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "%s: no memory to read it", as->name);
	code = open_both(opened, as, err);
	if (code)
		segment_close(opened);
	else
		*source = (struct dump_source){&segment_ops, opened};
	return code;
}
