/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a request that are missing and become zeros, for a trainer that takes few of them:
 * whole ones, 64 of a request or 1 % if that is more, but not all; none in some layers only.
 */
#ifndef ARCHIVE_EXPORT_HOLES_H
#define ARCHIVE_EXPORT_HOLES_H

#include "archive/export/format.h"

struct export_holes {
	uint32_t whole, partial; /* rows */
	uint32_t first_partial;  /* position of the first of these */
};

/* Counts those of a chunk. */
void export_holes_count(struct export_holes *holes, const struct export_plan *plan,
			const struct export_chunk *chunk);

/* Whether the format's trainer takes the request. Returns 0 or -ENODATA. */
int export_holes_check(const struct export_holes *holes, const struct export_plan *plan,
		       const struct export_request *request, struct r3ring_error *err);

#endif
