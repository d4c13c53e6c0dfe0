/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/close.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "archive/listing.h"
#include "archive/segment.h"
#include "archive/writer.h"

/* Reads the newest segment to its last whole block: whether it says that it is the end. */
static int look_at_newest(struct archive_segment *segment, int dir_fd, uint64_t number,
			  struct r3ring_error *err)
{
	int code = archive_segment_open(segment, dir_fd, number, err);

	while (!code && archive_segment_next(segment, NULL) == 1)
		;
	return code;
}

/* What a writer must be opened with to go on. */
static int find_end(const char *dir, struct archive_segment *segment, struct r3ring_error *err)
{
	struct archive_listing listing = {0};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code;

	if (fd < 0)
		return r3ring_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	code = archive_listing_read(&listing, fd);
	if (code)
		r3ring_error_set(err, code, "%s: %s", dir, strerror(-code));
	else if (!listing.count)
		code = r3ring_error_set(err, -ENOENT, "%s: no archive is there", dir);
	for (uint32_t i = listing.count; !code && i--;) {
		code = look_at_newest(segment, fd, listing.segments[i].number, err);
		/* One that was only just made may have no head; the one before has it. */
		if (code != -ENODATA || !i)
			break;
		code = 0;
	}
	archive_listing_free(&listing);
	close(fd);
	return code;
}

int archive_close(const char *dir, uint64_t *cut, struct r3ring_error *err)
{
	struct archive_segment segment = {.fd = -1};
	struct archive_writer_options options = {.dir = dir};
	struct archive_writer *writer;
	int code = find_end(dir, &segment, err);
	bool closed = segment.closed && !segment.more;

	*cut = 0;
	options.level = (int)segment.head.level;
	options.layer_first = segment.head.layer_first;
	options.layer_end = segment.head.layer_end;
	archive_segment_free(&segment);
	if (code || closed)
		return code;
	code = archive_writer_open(&writer, &options, err);
	if (code)
		return code;
	*cut = archive_writer_resumption(writer)->record.cut_bytes;
	code = archive_writer_close(writer, err);
	return code ? code : 1;
}
