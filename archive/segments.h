/* SPDX-License-Identifier: Apache-2.0 */
/* The segments that a recorder has in an archive's directory, and its lock on that. */
#ifndef ARCHIVE_SEGMENTS_H
#define ARCHIVE_SEGMENTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "archive/format.h"

struct segment_file {
	uint64_t number;
	uint64_t bytes;
};

/* Of a directory, by number. Zeroed: none. */
struct segment_files {
	struct segment_file *files;
	size_t count, capacity;
	uint64_t bytes; /* of all */
};

/* What is there. Returns 0 or -errno; on failure there is nothing to release. */
int segment_files_list(struct segment_files *list, int dir_fd);
void segment_files_release(struct segment_files *list);

/* Notes one behind the last. Returns 0 or -ENOMEM. */
int segment_files_add(struct segment_files *list, uint64_t number, uint64_t bytes);

/* Removes the last, or the first, file and its note. Return 0 or -errno. */
int segment_files_drop_last(struct segment_files *list, int dir_fd);
int segment_files_drop_first(struct segment_files *list, int dir_fd);

/*
 * Where an open directory is now: @dir while that names it, else what it was renamed to, in
 * @path. NULL: it is no longer anywhere.
 */
const char *archive_dir_path(const char *dir, int dir_fd, char path[PATH_MAX]);

/*
 * Opens an archive's directory for a recorder, which makes it where it is not there, and
 * locks it.
 * Returns 0, -EBUSY, or the errno of mkdir, open or flock.
 */
int archive_dir_open(const char *dir, int *dir_fd, int *lock_fd, struct r3ring_error *err);

#endif
