/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/export/export.h"
#include "archive/export/sink.h"

#define COPY_BYTES (1u << 20)

bool export_to_stdout(const char *out)
{
	return !strcmp(out, "-") || !strcmp(out, "/dev/stdout") || !strcmp(out, "/dev/fd/1") ||
	       !strcmp(out, "/proc/self/fd/1");
}

bool export_sink_is(const char *out)
{
	struct stat there;

	return export_to_stdout(out) || (!stat(out, &there) && S_ISFIFO(there.st_mode));
}

int export_sink_open(const char *out)
{
	int fd = export_to_stdout(out) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
				       : open(out, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

const char *export_sink_directory(void)
{
	const char *said = getenv("TMPDIR");

	return said && said[0] ? said : "/var/tmp";
}

int export_sink_write(int sink, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t done = write(sink, at, bytes);

		if (done < 0 && errno != EINTR)
			return -errno;
		at += done < 0 ? 0 : done;
		bytes -= done < 0 ? 0 : (size_t)done;
	}
	return 0;
}

int export_write_at(int file, const void *data, size_t bytes, uint64_t offset)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t done = pwrite(file, at, bytes, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		at += done;
		offset += (uint64_t)done;
		bytes -= (size_t)done;
	}
	return 0;
}

/* Where the kernel does not copy from one to the other. */
static int copy_by_hand(int sink, int file, off_t at, uint64_t bytes)
{
	void *buffer = malloc(COPY_BYTES);
	int rc = buffer ? 0 : -ENOMEM;

	while (!rc && (uint64_t)at < bytes) {
		ssize_t got = pread(file, buffer, COPY_BYTES, at);

		if (got < 0 && errno == EINTR)
			continue;
		rc = got > 0 ? export_sink_write(sink, buffer, (size_t)got) : got ? -errno : -EIO;
		at += got;
	}
	free(buffer);
	return rc;
}

int export_sink_copy(int sink, int file, uint64_t bytes)
{
	off_t at = 0;

	while ((uint64_t)at < bytes) {
		ssize_t done = sendfile(sink, file, &at, bytes - (uint64_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && (errno == EINVAL || errno == ENOSYS))
			return copy_by_hand(sink, file, at, bytes);
		if (done <= 0)
			return done ? -errno : -EIO;
	}
	return 0;
}
