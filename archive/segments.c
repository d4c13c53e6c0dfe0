/* SPDX-License-Identifier: Apache-2.0 */
/* An archive's directory. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/listing.h"
#include "archive/segments.h"

#define LOCK_TRIES 5u
#define LOCK_RETRY_MS 10

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

int segment_files_list(struct segment_files *list, int dir_fd)
{
	struct archive_listing listing;
	int r = archive_listing_read(&listing, dir_fd);

	*list = (struct segment_files){0};
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < listing.count; i++)
		r = segment_files_add(list, listing.segments[i].number, listing.segments[i].bytes);
	archive_listing_free(&listing);
	if (r < 0)
		segment_files_release(list);
	return r;
}

void segment_files_release(struct segment_files *list)
{
	free(list->files);
	*list = (struct segment_files){0};
}

static int remove_file(int dir_fd, const struct segment_file *file)
{
	char name[ARCHIVE_NAME_MAX];

	return unlinkat(dir_fd, archive_segment_name(name, file->number), 0) < 0 ? -errno : 0;
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

/* A reader that looks whether somebody writes has the lock for a moment. */
static int take_lock(int fd)
{
	int r = flock(fd, LOCK_EX | LOCK_NB);

	for (unsigned int i = 0; r && errno == EWOULDBLOCK && i < LOCK_TRIES; i++) {
		poll(NULL, 0, LOCK_RETRY_MS);
		r = flock(fd, LOCK_EX | LOCK_NB);
	}
	return r ? -errno : 0;
}

static int refuse_lock(const char *dir, int code, struct r3ring_error *err)
{
	if (code == -EWOULDBLOCK)
		return r3ring_error_set(err, -EBUSY,
					"%s: another recorder writes this archive: end it, or "
					"record into another directory",
					dir);
	return r3ring_error_set(err, code, "%s/" ARCHIVE_LOCK ": %s", dir, strerror(-code));
}

/*
 * The file, and the directory itself, since a file can be removed and made again while its
 * lock is held. Some file systems (NFS) lock nothing that is not open for writing: there the
 * file alone counts.
 */
static int lock(int dir_fd, const char *dir, struct r3ring_error *err)
{
	int fd = openat(dir_fd, ARCHIVE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return refuse_lock(dir, -errno, err);
	r = take_lock(fd);
	if (r == 0 && take_lock(dir_fd) == -EWOULDBLOCK)
		r = -EWOULDBLOCK;
	if (r == 0)
		return fd;
	close(fd);
	return refuse_lock(dir, r, err);
}

const char *archive_dir_path(const char *dir, int dir_fd, char path[PATH_MAX])
{
	struct stat held, named;
	char link[32];
	ssize_t length;

	if (fstat(dir_fd, &held) || !held.st_nlink)
		return NULL;
	if (stat(dir, &named) == 0 && named.st_dev == held.st_dev && named.st_ino == held.st_ino)
		return dir;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	length = readlink(link, path, PATH_MAX - 1);
	if (length <= 0)
		return dir;
	path[length] = '\0';
	return path;
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
