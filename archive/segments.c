/* SPDX-License-Identifier: Apache-2.0 */
/* An archive's directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/segments.h"

#define DIGITS 8 /* at least */

const char *segment_name(char name[SEGMENT_NAME], uint64_t number)
{
	snprintf(name, SEGMENT_NAME, "%0*" PRIu64 ARCHIVE_SUFFIX, DIGITS, number);
	return name;
}

/* Only as it would be written. */
bool segment_name_parse(const char *name, uint64_t *number)
{
	char written[SEGMENT_NAME];
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(name, &end, 10);
	if (errno || !value || end == name || strcmp(end, ARCHIVE_SUFFIX) != 0 ||
	    strcmp(segment_name(written, value), name) != 0)
		return false;
	*number = value;
	return true;
}

int segment_files_add(struct segment_files *list, uint64_t number, uint64_t bytes)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		struct segment_file *files = reallocarray(list->files, capacity, sizeof(*files));

		if (!files)
			return -ENOMEM;
		list->files = files;
		list->capacity = capacity;
	}
	list->files[list->count++] = (struct segment_file){number, bytes};
	list->bytes += bytes;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct segment_file *one = a, *other = b;

	return one->number < other->number ? -1 : one->number > other->number;
}

static int add_if_segment(struct segment_files *list, int dir_fd, const char *name)
{
	struct stat status;
	uint64_t number;

	if (!segment_name_parse(name, &number))
		return 0;
	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISREG(status.st_mode) ? segment_files_add(list, number, (uint64_t)status.st_size)
				       : 0;
}

int segment_files_list(struct segment_files *list, int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	*list = (struct segment_files){0};
	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir)))
		r = add_if_segment(list, dir_fd, entry->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	if (r < 0) {
		segment_files_release(list);
		return r;
	}
	qsort(list->files, list->count, sizeof(*list->files), by_number);
	return 0;
}

void segment_files_release(struct segment_files *list)
{
	free(list->files);
	*list = (struct segment_files){0};
}

static int remove_file(int dir_fd, const struct segment_file *file)
{
	char name[SEGMENT_NAME];

	return unlinkat(dir_fd, segment_name(name, file->number), 0) < 0 ? -errno : 0;
}

int segment_files_drop_last(struct segment_files *list, int dir_fd)
{
	const struct segment_file *file = &list->files[list->count - 1];
	int r = remove_file(dir_fd, file);

	if (r == 0) {
		list->bytes -= file->bytes;
		list->count--;
	}
	return r;
}

int segment_files_drop_first(struct segment_files *list, int dir_fd)
{
	int r = remove_file(dir_fd, &list->files[0]);

	if (r == 0) {
		list->bytes -= list->files[0].bytes;
		list->count--;
		memmove(list->files, list->files + 1, list->count * sizeof(*list->files));
	}
	return r;
}

/* ---- the directory ------------------------------------------------------ */

static int lock(int dir_fd, const char *dir, struct r3ring_error *err)
{
	int fd = openat(dir_fd, ARCHIVE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return r3ring_error_set(err, -errno, "%s/" ARCHIVE_LOCK ": %s", dir,
					strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(fd);
	if (r == -EBUSY)
		return r3ring_error_set(err, r,
					"%s: another recorder writes this archive: end it, or "
					"record into another directory",
					dir);
	return r3ring_error_set(err, r, "%s/" ARCHIVE_LOCK ": %s", dir, strerror(-r));
}

int archive_dir_open(const char *dir, int *dir_fd, int *lock_fd, struct r3ring_error *err)
{
	int fd, locked;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return r3ring_error_set(err, -errno, "%s cannot be made: %s", dir, strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return r3ring_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	locked = lock(fd, dir, err);
	if (locked < 0) {
		close(fd);
		return locked;
	}
	*dir_fd = fd;
	*lock_fd = locked;
	return 0;
}
