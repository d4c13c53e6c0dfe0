/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/runs.h"

#define AT_ONCE (16u << 10) /* bytes */

int export_runs_create(struct export_runs *runs, const char *out, struct r3ring_error *err)
{
	*runs = (struct export_runs){0};
	return export_file_create(&runs->file, out, err);
}

void export_runs_close(struct export_runs *runs)
{
	export_file_close(&runs->file);
	free(runs->row);
	runs->row = NULL;
}

int export_runs_begin(struct export_runs *runs, size_t row_bytes, bool rising)
{
	runs->row_bytes = row_bytes;
	runs->rising = rising;
	runs->row = malloc(row_bytes);
	return runs->row ? 0 : -ENOMEM;
}

static bool goes_on(const struct export_runs *runs, const void *row)
{
	uint64_t first, next;

	if (!runs->rows)
		return false;
	if (!runs->rising)
		return !memcmp(runs->row, row, runs->row_bytes);
	memcpy(&first, runs->row, sizeof(first));
	memcpy(&next, row, sizeof(next));
	return next == first + runs->rows;
}

static int end_run(struct export_runs *runs, struct r3ring_error *err)
{
	const uint64_t rows = runs->rows;
	int rc = 0;

	runs->rows = 0;
	if (rows)
		rc = export_file_append(&runs->file, &rows, sizeof(rows), err);
	return rc || !rows ? rc : export_file_append(&runs->file, runs->row, runs->row_bytes, err);
}

int export_runs_put(struct export_runs *runs, const void *row, uint64_t rows,
		    struct r3ring_error *err)
{
	int rc = 0;

	if (!goes_on(runs, row)) {
		rc = end_run(runs, err);
		memcpy(runs->row, row, runs->row_bytes);
	}
	runs->rows += rows;
	runs->all += rows;
	return rc;
}

uint64_t export_runs_bytes(const struct export_runs *runs)
{
	return runs->all * runs->row_bytes;
}

/* ---- row by row --------------------------------------------------------- */

/* As many rows as there is room for, from the @done-th of the run on. */
static uint64_t fill(const struct export_runs *runs, uint8_t *to, uint64_t done, uint64_t rows)
{
	const uint64_t most = AT_ONCE / runs->row_bytes ? AT_ONCE / runs->row_bytes : 1;
	uint64_t first;

	rows = rows < most ? rows : most;
	if (!runs->rising) {
		for (uint64_t i = 0; i < rows; i++)
			memcpy(to + i * runs->row_bytes, runs->row, runs->row_bytes);
		return rows;
	}
	memcpy(&first, runs->row, sizeof(first));
	for (uint64_t i = 0; i < rows; i++) {
		const uint64_t value = first + done + i;

		memcpy(to + i * sizeof(value), &value, sizeof(value));
	}
	return rows;
}

static int expand_run(const struct export_runs *runs, uint64_t rows, uint8_t *room,
		      struct export_file *to, struct r3ring_error *err)
{
	int rc = 0;

	for (uint64_t done = 0; !rc && done < rows;) {
		const uint64_t now = fill(runs, room, done, rows - done);

		rc = export_file_append(to, room, now * runs->row_bytes, err);
		done += now;
	}
	return rc;
}

int export_runs_expand(struct export_runs *runs, struct export_file *to, struct r3ring_error *err)
{
	uint8_t *room = malloc(AT_ONCE + runs->row_bytes);
	uint64_t at = 0;
	int rc = room ? end_run(runs, err) : r3ring_error_set(err, -ENOMEM, "no memory");

	while (!rc && at < runs->file.size) {
		uint64_t rows = 0;

		rc = export_file_read(&runs->file, at, &rows, sizeof(rows), err);
		if (!rc)
			rc = export_file_read(&runs->file, at + sizeof(rows), runs->row,
					      runs->row_bytes, err);
		if (!rc)
			rc = expand_run(runs, rows, room, to, err);
		at += sizeof(rows) + runs->row_bytes;
	}
	free(room);
	return rc;
}
