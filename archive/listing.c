/* SPDX-License-Identifier: Apache-2.0 */
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

#include "archive/format.h"
#include "archive/listing.h"

#define GROWTH 64u

const char *archive_segment_name(char name[ARCHIVE_NAME_MAX], uint64_t number)
{
	snprintf(name, ARCHIVE_NAME_MAX, "%08" PRIu64 ARCHIVE_SUFFIX, number);
	return name;
}

uint64_t archive_segment_number(const char *name)
{
	char right[ARCHIVE_NAME_MAX];
	uint64_t number;

	if (name[0] < '0' || name[0] > '9')
		return 0;
	errno = 0;
	number = strtoull(name, NULL, 10);
	if (errno)
		return 0;
	/* Only one way to write it is right, so that a number has one file. */
	return strcmp(name, archive_segment_name(right, number)) ? 0 : number;
}

static int add(struct archive_listing *listing, int dir_fd, const char *name)
{
	struct archive_listed found = {.number = archive_segment_number(name)};
	struct stat file;

	/* A file that goes meanwhile was rotated out. */
	if (!found.number || fstatat(dir_fd, name, &file, 0))
		return 0;
	found.bytes = (uint64_t)file.st_size;
	if (listing->count % GROWTH == 0) {
		struct archive_listed *grown = reallocarray(
			listing->segments, listing->count + (size_t)GROWTH, sizeof(found));

		if (!grown)
			return -ENOMEM;
		listing->segments = grown;
	}
	listing->segments[listing->count++] = found;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct archive_listed *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int add_all(struct archive_listing *listing, DIR *dir)
{
	const struct dirent *entry;
	int code = 0;

	for (errno = 0; !code && (entry = readdir(dir)); errno = 0)
		code = add(listing, dirfd(dir), entry->d_name);
	return code ? code : -errno;
}

int archive_listing_read(struct archive_listing *listing, int dir_fd)
{
	struct archive_listing found = {0};
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int code;

	if (!dir) {
		code = -errno;
		if (fd >= 0)
			close(fd);
		return code;
	}
	code = add_all(&found, dir);
	closedir(dir);
	if (code) {
		archive_listing_free(&found);
		return code;
	}
	if (found.count)
		qsort(found.segments, found.count, sizeof(*found.segments), by_number);
	*listing = found;
	return 0;
}

void archive_listing_free(struct archive_listing *listing)
{
	free(listing->segments);
	*listing = (struct archive_listing){0};
}

uint32_t archive_listing_from(const struct archive_listing *listing, uint64_t number)
{
	uint32_t at = 0;

	while (at < listing->count && listing->segments[at].number < number)
		at++;
	return at;
}

static bool is_held(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool held;

	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

bool archive_is_being_written(int dir_fd)
{
	return is_held(dir_fd, ARCHIVE_LOCK) || is_held(dir_fd, ".");
}
