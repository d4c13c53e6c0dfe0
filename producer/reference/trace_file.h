/* SPDX-License-Identifier: Apache-2.0 */
/* The raw file of a recording: ids, checked against what its header says. */
#ifndef PRODUCER_REFERENCE_TRACE_FILE_H
#define PRODUCER_REFERENCE_TRACE_FILE_H

#include <stdio.h>

#include "producer/reference/trace.h"

#define TRACE_DIGEST_TEXT 65 /* SHA-256 in hexadecimal, with its NUL */

struct trace_file {
	const char *path;
	const char *header; /* the path of that */
	const char *digest; /* as it says; "": it says none */
};

/* As fopen() for reading, but a directory is none: NULL and errno EISDIR. */
FILE *trace_file_open(const char *path);

/*
 * Reads @trace->ids; its sizes must be there. Returns 0 or as trace_read().
 * Source: sha2(3bsd) of libmd.
 */
int trace_file_read(struct trace *trace, const struct trace_file *from, struct r3ring_error *err);

#endif
