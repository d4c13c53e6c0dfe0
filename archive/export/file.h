/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of an output: without a name until they are whole, so that nothing is left of one
 * that was not finished, even by a kill. Where the file system cannot do that, under a
 * temporary name. An output that is no file (sink.h) is passed on when it is whole; or,
 * where it is made from front to back, while it is made.
 */
#ifndef ARCHIVE_EXPORT_FILE_H
#define ARCHIVE_EXPORT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>

struct export_file {
	const char *out;              /* the output's path; borrowed */
	bool sink;                    /* that is no file */
	bool streams;                 /* what is written goes there at once */
	int fd, dir;                  /* -1: none */
	uint64_t size;                /* with what is still in the buffer */
	size_t held;                  /* in the buffer, */
	size_t room;                  /* which takes so much */
	uint8_t *buffer;              /* its own, or of `behind` */
	struct export_behind *behind; /* NULL: it writes itself */
	int failed;                   /* -errno of a write before: nothing is whole any more */
	char temporary[NAME_MAX + 1]; /* "": has no name */
};

#define EXPORT_FILE_NONE ((struct export_file){.fd = -1, .dir = -1})

/*
 * Makes a file in the directory of @out, which must not be a directory or device; for a sink,
 * where there is room for what is temporary.
 * Returns 0 or an errno of stat(2), open(2) or malloc(3), with the reason in @err.
 */
int export_file_create(struct export_file *file, const char *out, struct r3ring_error *err);

/* The same, but what is appended goes to a sink at once: nothing else may be done with it. */
int export_file_stream(struct export_file *file, const char *out, struct r3ring_error *err);

/* From now on a thread writes what is appended, where there is a processor for it. For what is
 * large. */
void export_file_behind(struct export_file *file);

/*
 * Room for @bytes that are appended next, to be filled in place, then export_file_took();
 * NULL where there is none: export_file_append() takes them, and says why it cannot.
 */
void *export_file_room(struct export_file *file, size_t bytes);
void export_file_took(struct export_file *file, size_t bytes);

/* All of these return 0, -ENOSPC, -EDQUOT, -EIO, ... */
int export_file_append(struct export_file *file, const void *data, size_t bytes,
		       struct r3ring_error *err);
int export_file_write(struct export_file *file, uint64_t offset, const void *data, size_t bytes,
		      struct r3ring_error *err); /* within its size */
/* What is appended next goes to @at, within its size. */
int export_file_seek(struct export_file *file, uint64_t at, struct r3ring_error *err);
int export_file_read(struct export_file *file, uint64_t offset, void *data, size_t bytes,
		     struct r3ring_error *err); /* within its size */
/* Appends what @from has from @at on. */
int export_file_copy(struct export_file *file, struct export_file *from, uint64_t at,
		     struct r3ring_error *err);

/* Syncs it and gives it the output's name, in place of what had that; or passes it on. */
int export_file_publish(struct export_file *file, struct r3ring_error *err);

/* Removes it where it was not published. */
void export_file_close(struct export_file *file);

#endif
