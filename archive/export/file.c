/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "archive/export/behind.h"
#include "archive/export/export.h"
#include "archive/export/file.h"
#include "archive/export/sink.h"

#define BUFFER_BYTES (128u << 10)
#define OUTPUT_MODE 0666 /* less the umask */

static const char *name_of(const struct export_file *file)
{
	return export_to_stdout(file->out) ? "standard output" : file->out;
}

static int complain(const struct export_file *file, const char *what, struct r3ring_error *err)
{
	const int code = -errno;
	struct statvfs space;

	if ((code == -ENOSPC || code == -EDQUOT) && file->dir >= 0 && !fstatvfs(file->dir, &space))
		return r3ring_error_set(err, code,
					"%s: %s: %s; %llu MiB are free there: make room, or name "
					"%s elsewhere",
					name_of(file), what, strerror(-code),
					(unsigned long long)space.f_bavail * space.f_frsize >> 20,
					file->sink ? "a $TMPDIR" : "an output");
	return r3ring_error_set(err, code, "%s: %s: %s", name_of(file), what, strerror(-code));
}

/* ---- making ------------------------------------------------------------- */

static int open_dir(struct export_file *file, struct r3ring_error *err)
{
	char path[PATH_MAX];
	struct stat there;

	if (file->sink) {
		file->dir = open(export_sink_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
		return file->dir < 0 ? complain(file, "$TMPDIR, or /var/tmp", err) : 0;
	}
	if (snprintf(path, sizeof(path), "%s", file->out) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return complain(file, "output", err);
	}
	if (!stat(path, &there) && !S_ISREG(there.st_mode))
		return r3ring_error_set(err, S_ISDIR(there.st_mode) ? -EISDIR : -EINVAL,
					"%s is there and is no file: name a file", file->out);
	file->dir = open(dirname(path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return file->dir < 0 ? complain(file, "directory of the output", err) : 0;
}

/* A name beside the output's that nobody else uses. */
static int open_temporary(struct export_file *file)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "%s", file->sink ? "r3ring-export" : file->out);
		snprintf(file->temporary, sizeof(file->temporary), ".%.200s.%d.%u", basename(path),
			 getpid(), i);
		file->fd = openat(file->dir, file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
				  OUTPUT_MODE);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
	if (file->fd < 0)
		file->temporary[0] = '\0';
	return file->fd;
}

/* With the buffer; what else there is is to be opened. */
static int begin(struct export_file *file, const char *out, struct r3ring_error *err)
{
	*file = EXPORT_FILE_NONE;
	file->out = out;
	file->sink = export_sink_is(out);
	file->room = BUFFER_BYTES;
	file->buffer = malloc(file->room);
	return file->buffer ? 0 : r3ring_error_set(err, -ENOMEM, "no memory");
}

int export_file_create(struct export_file *file, const char *out, struct r3ring_error *err)
{
	int rc = begin(file, out, err);

	if (!rc)
		rc = open_dir(file, err);
	if (rc) {
		export_file_close(file);
		return rc;
	}
	file->fd = openat(file->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, OUTPUT_MODE);
	if (file->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
		open_temporary(file);
	if (file->fd < 0) {
		rc = complain(file, "output", err);
		export_file_close(file);
	}
	return rc;
}

int export_file_stream(struct export_file *file, const char *out, struct r3ring_error *err)
{
	int rc;

	if (!export_sink_is(out))
		return export_file_create(file, out, err);
	rc = begin(file, out, err);
	if (rc)
		return rc;
	file->streams = true;
	file->fd = export_sink_open(out);
	if (file->fd >= 0)
		return 0;
	errno = -file->fd;
	rc = complain(file, "output", err);
	export_file_close(file);
	return rc;
}

void export_file_close(struct export_file *file)
{
	if (file->temporary[0])
		unlinkat(file->dir, file->temporary, 0);
	if (file->behind)
		export_behind_destroy(file->behind);
	else
		free(file->buffer);
	if (file->fd >= 0)
		close(file->fd);
	if (file->dir >= 0)
		close(file->dir);
	*file = EXPORT_FILE_NONE;
}

/* ---- writing ------------------------------------------------------------ */

static int say(const struct export_file *file, int rc, struct r3ring_error *err)
{
	errno = -rc;
	return rc ? complain(file, "write", err) : 0;
}

static int write_all(const struct export_file *file, uint64_t offset, const uint8_t *data,
		     size_t bytes, struct r3ring_error *err)
{
	return say(file,
		   file->streams ? export_sink_write(file->fd, data, bytes)
				 : export_write_at(file->fd, data, bytes, offset),
		   err);
}

static int flush(struct export_file *file, struct r3ring_error *err)
{
	const size_t held = file->held;

	if (file->failed)
		return say(file, file->failed, err);
	file->held = 0;
	if (held && file->behind) {
		export_behind_give(file->behind, held, file->size - held);
		file->failed = export_behind_next(file->behind, &file->buffer);
		return say(file, file->failed, err);
	}
	if (held)
		file->failed = write_all(file, file->size - held, file->buffer, held, err);
	return file->failed;
}

/* All of it is in the file. */
static int settle(struct export_file *file, struct r3ring_error *err)
{
	int rc = flush(file, err);

	return rc || !file->behind ? rc : say(file, export_behind_wait(file->behind), err);
}

void export_file_behind(struct export_file *file)
{
	struct export_behind *behind = export_behind_create(file->fd, file->streams);

	if (!behind)
		return;
	free(file->buffer);
	file->behind = behind;
	file->room = EXPORT_BEHIND_BYTES;
	export_behind_next(behind, &file->buffer);
}

void *export_file_room(struct export_file *file, size_t bytes)
{
	struct r3ring_error later;

	if (bytes > file->room || (file->held + bytes > file->room && flush(file, &later)))
		return NULL;
	return file->buffer + file->held;
}

void export_file_took(struct export_file *file, size_t bytes)
{
	file->held += bytes;
	file->size += bytes;
}

int export_file_append(struct export_file *file, const void *data, size_t bytes,
		       struct r3ring_error *err)
{
	const uint8_t *at = data;
	int rc = 0;

	if (!file->behind && bytes >= file->room) {
		rc = flush(file, err);
		if (!rc)
			rc = write_all(file, file->size, data, bytes, err);
		file->size += bytes;
		return rc;
	}
	while (!rc && bytes) {
		const size_t left = file->room - file->held;
		const size_t now = bytes < left ? bytes : left;

		memcpy(file->buffer + file->held, at, now);
		export_file_took(file, now);
		at += now;
		bytes -= now;
		if (bytes)
			rc = flush(file, err);
	}
	return rc;
}

int export_file_write(struct export_file *file, uint64_t offset, const void *data, size_t bytes,
		      struct r3ring_error *err)
{
	int rc = settle(file, err);

	return rc ? rc : write_all(file, offset, data, bytes, err);
}

int export_file_read(struct export_file *file, uint64_t offset, void *data, size_t bytes,
		     struct r3ring_error *err)
{
	uint8_t *to = data;
	int rc = settle(file, err);

	while (!rc && bytes) {
		ssize_t got = pread(file->fd, to, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : EIO;
			return complain(file, "read back", err);
		}
		to += got;
		offset += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return rc;
}

int export_file_seek(struct export_file *file, uint64_t at, struct r3ring_error *err)
{
	int rc = settle(file, err);

	file->size = at;
	return rc;
}

/* Where the kernel does not copy between these files, by way of the buffer. */
static int copy_by_hand(struct export_file *file, const struct export_file *from, uint64_t at,
			struct r3ring_error *err)
{
	while (at < from->size) {
		ssize_t got = pread(from->fd, file->buffer, file->room, (off_t)at);
		int rc;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : EIO;
			return complain(file, "read back", err);
		}
		rc = write_all(file, file->size, file->buffer, (size_t)got, err);
		if (rc)
			return rc;
		file->size += (uint64_t)got;
		at += (uint64_t)got;
	}
	return 0;
}

int export_file_copy(struct export_file *file, struct export_file *from, uint64_t at,
		     struct r3ring_error *err)
{
	int rc = settle(file, err);

	if (!rc)
		rc = settle(from, err);
	while (!rc && at < from->size) {
		off_t source = (off_t)at, target = (off_t)file->size;
		ssize_t done =
			copy_file_range(from->fd, &source, file->fd, &target, from->size - at, 0);

		if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
			return complain(file, "write", err);
		if (done <= 0)
			return copy_by_hand(file, from, at, err);
		at += (uint64_t)done;
		file->size += (uint64_t)done;
	}
	return rc;
}

/* ---- publishing --------------------------------------------------------- */

/* A nameless file gets a name that is free. */
static int link_as(const struct export_file *file, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	return linkat(AT_FDCWD, path, file->dir, name, AT_SYMLINK_FOLLOW);
}

/* rename(2) replaces what is there, linkat(2) does not. */
static int give_name(struct export_file *file, const char *name)
{
	if (!file->temporary[0]) {
		if (!link_as(file, name))
			return 0;
		if (errno != EEXIST)
			return -1;
		snprintf(file->temporary, sizeof(file->temporary), ".%.200s.%d", name, getpid());
		if (link_as(file, file->temporary)) {
			file->temporary[0] = '\0';
			return -1;
		}
	}
	if (renameat(file->dir, file->temporary, file->dir, name))
		return -1;
	file->temporary[0] = '\0';
	return 0;
}

/* So that the name is on the disk too. */
static int sync_dir(const struct export_file *file, struct r3ring_error *err)
{
	int fd = openat(file->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) ? complain(file, "sync of its directory", err) : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int pass_on(const struct export_file *file, struct r3ring_error *err)
{
	int sink = export_sink_open(file->out);

	errno = sink < 0 ? -sink : -export_sink_copy(sink, file->fd, file->size);
	if (sink >= 0 && close(sink) && !errno)
		errno = EIO;
	return errno ? complain(file, "write", err) : 0;
}

int export_file_publish(struct export_file *file, struct r3ring_error *err)
{
	char path[PATH_MAX];
	int rc = settle(file, err);

	if (rc || file->streams)
		return rc;
	if (file->sink)
		return pass_on(file, err);
	if (fsync(file->fd))
		return complain(file, "sync", err);
	snprintf(path, sizeof(path), "%s", file->out);
	if (give_name(file, basename(path)))
		return complain(file, "name", err);
	return sync_dir(file, err);
}
