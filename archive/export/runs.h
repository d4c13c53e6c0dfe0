/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor whose rows come in long runs of the same, or count up: kept as runs until the output
 * takes it row by row.
 */
#ifndef ARCHIVE_EXPORT_RUNS_H
#define ARCHIVE_EXPORT_RUNS_H

#include <stdbool.h>

#include "archive/export/file.h"

struct export_runs {
	struct export_file file; /* uint64_t rows, then one row, a run */
	size_t row_bytes;
	bool rising;        /* rows are uint64_t, each one more than that before it */
	uint8_t *row;       /* [row_bytes] the first of the run at work, */
	uint64_t rows, all; /* which has so many; and all runs */
};

/* The file lies where that of @out would. Returns as export_file_create(). */
int export_runs_create(struct export_runs *runs, const char *out, struct r3ring_error *err);
void export_runs_close(struct export_runs *runs);

/* Before anything is put. Returns 0 or -ENOMEM. */
int export_runs_begin(struct export_runs *runs, size_t row_bytes, bool rising);

/* @rows more rows: like @row, or rising from it. Returns as export_file_append(). */
int export_runs_put(struct export_runs *runs, const void *row, uint64_t rows,
		    struct r3ring_error *err);

/* Bytes that the rows are in the output. */
uint64_t export_runs_bytes(const struct export_runs *runs);

/* Appends all rows to @to. Returns as export_file_append(). */
int export_runs_expand(struct export_runs *runs, struct export_file *to, struct r3ring_error *err);

#endif
