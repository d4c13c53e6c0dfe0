/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon was told: command line and configuration file. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <r3ring/error.h>

#include "capture_daemon/patterns.h"

struct options {
	char runtime_dir[PATH_MAX];
	char config[PATH_MAX]; /* "" when there is none */
	char group[64];        /* "" when there is none */
	uint64_t ring_size;    /* bytes of a segment; 0: by the schema */
	uint64_t buffer_size;  /* largest capture buffer accepted from a producer */
	uint64_t max_channels; /* these three per user */
	uint64_t max_memory;
	uint64_t max_readers;
	uint64_t lossless_limit;  /* arena bytes; 0: 3/4 of the ring */
	uint64_t stall_limit;     /* milliseconds */
	uint64_t lossless_policy; /* enum lossless_policy */
	char lossless_drop
		[PATTERNS_TEXT]; /* patterns of channels that drop, whatever that says; "": none */
	uint64_t release_gpu;    /* 1: no context is kept on a GPU without a buffer */
	uint64_t allow_mps;      /* 1: imports buffers of a GPU under MPS */
	uint64_t log_level;      /* enum r3ring_log_level */
};

/* What a channel does when a lossless reader has had its time. */
enum lossless_policy {
	LOSSLESS_DEMOTE = 0, /* waits for the reader no longer */
	LOSSLESS_DROP = 1,   /* drops new steps until there is room */
};

enum options_result {
	OPTIONS_RUN = 0,
	OPTIONS_HELP = 1,
	OPTIONS_VERSION = 2,
};

/*
 * Reads the command line and, where it names one, the configuration file; the
 * command line wins.
 *
 * @options: receives the result; untouched on failure.
 *
 * Returns enum options_result, or -EINVAL with a message that names the option,
 * or the file and the line.
 */
int options_parse(struct options *options, int argc, char *const argv[], struct r3ring_error *err);

/*
 * Names the settings whose values differ, parted by commas, as far as @capacity goes.
 *
 * Returns how many there are; @text is "" where none does.
 */
size_t options_differences(const struct options *a, const struct options *b, char *text,
			   size_t capacity);

/* Text of --help. */
extern const char options_help[];

#endif
