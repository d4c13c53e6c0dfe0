/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an archive ends that is gone on with: reads its newest segment, decides what of it
 * is to be cut, and only then cuts.
 */
#ifndef ARCHIVE_RESUME_H
#define ARCHIVE_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "archive/channel_state.h"
#include "archive/store.h"

struct resume_options {
	const char *dir;
	int dir_fd;
	uint32_t layer_first, layer_end; /* as the archive must have them */
};

struct resume {
	struct store_start start;
	struct channel_states states;
	struct archive_resumed resumed; /* resumed_ns is the caller's */
	bool found;                     /* there was an archive */
	bool closed;                    /* in good order */
	uint64_t missing;               /* a segment that should be there; 0: none */
};

/*
 * Returns 0, -EBADMSG (damaged where it had been synced, or its end is missing: nothing is
 * changed), -EPROTO (a
 * later format, other layers), -ENOMEM, or an errno of the file system. On failure there
 * is nothing to release.
 */
int archive_resume(struct resume *resume, const struct resume_options *options,
		   struct r3ring_error *err);

/* What is left of it: files unless taken over, states. */
void archive_resume_release(struct resume *resume);

#endif
