/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs that are no files: standard output, and FIFOs. What is written to them cannot be
 * taken back.
 */
#ifndef ARCHIVE_EXPORT_SINK_H
#define ARCHIVE_EXPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is a FIFO, or export_to_stdout(). */
bool export_sink_is(const char *out);

/* A descriptor of its own; waits for a FIFO's reader. Returns it or -errno. */
int export_sink_open(const char *out);

/* The directory for what has to be whole before it is passed on: $TMPDIR, else /var/tmp. */
const char *export_sink_directory(void);

/* Write all of it, to a sink or at @offset of a file; or all of a file of @bytes. Return 0 or
 * -errno. */
int export_sink_write(int sink, const void *data, size_t bytes);
int export_write_at(int file, const void *data, size_t bytes, uint64_t offset);
int export_sink_copy(int sink, int file, uint64_t bytes);

#endif
