/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/index_segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index_sql.h"

#define REINDEX "; make it anew with r3ring verify --reindex"

struct index_segment index_segment_of(const struct archive_progress *progress, bool damaged)
{
	struct index_segment segment = {
		.number = progress->number,
		.bytes = progress->bytes,
		.records = progress->records,
		.first_ns = progress->first_ns,
		.last_ns = progress->last_ns,
	};

	if (damaged)
		segment.state = INDEX_SEGMENT_DAMAGED;
	else if (progress->closed || progress->whole)
		segment.state = INDEX_SEGMENT_CLOSED;
	return segment;
}

/* ---- a segment's row --------------------------------------------------- */

static int differs(const struct index_segment *segment, const char *what, uint64_t stored,
		   uint64_t value, struct r3ring_error *err)
{
	r3ring_error_set(err, 0,
			 "index.sqlite: segment %" PRIu64 ": the index has %s %" PRIu64
			 ", the segment %" PRIu64 REINDEX,
			 segment->number, what, stored, value);
	return 1;
}

static int compare_row(struct index_store *store, const struct index_segment *segment,
		       struct r3ring_error *err)
{
	struct index_segment stored;
	int code = index_store_get_segment(store, segment->number, &stored, err);

	if (code != 1)
		return code;
	if (stored.bytes != segment->bytes)
		return differs(segment, "bytes", stored.bytes, segment->bytes, err);
	if (stored.state != segment->state)
		return differs(segment, "state", stored.state, segment->state, err);
	if (stored.records != segment->records)
		return differs(segment, "records", stored.records, segment->records, err);
	if (stored.first_ns != segment->first_ns)
		return differs(segment, "first_ns", stored.first_ns, segment->first_ns, err);
	if (stored.last_ns != segment->last_ns)
		return differs(segment, "last_ns", stored.last_ns, segment->last_ns, err);
	return 0;
}

/* ---- what is open at its end ------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct index_open));
}

/* In whatever order. */
static bool same_open(struct index_open *a, uint32_t a_count, struct index_open *b,
		      uint32_t b_count)
{
	if (a_count != b_count)
		return false;
	if (!a_count)
		return true;
	qsort(a, a_count, sizeof(*a), by_bytes);
	qsort(b, b_count, sizeof(*b), by_bytes);
	return memcmp(a, b, a_count * sizeof(*a)) == 0;
}

static int open_differs(uint64_t number, uint32_t stored, uint32_t count, struct r3ring_error *err)
{
	r3ring_error_set(err, 0,
			 "index.sqlite: segment %" PRIu64 ": the index has %u entries of what is "
			 "open at its end, not the segment's %u" REINDEX,
			 number, stored, count);
	return 1;
}

static int compare_open(struct index_store *store, uint64_t number, const struct index_tally *tally,
			struct r3ring_error *err)
{
	struct index_open *stored = NULL, *open = NULL;
	uint32_t stored_count, count;
	int code = index_store_get_open(store, number, &stored, &stored_count, err);

	if (!code)
		code = index_tally_get_open(tally, &open, &count);
	if (!code && !same_open(stored, stored_count, open, count))
		code = open_differs(number, stored_count, count, err);
	free(stored);
	free(open);
	return code;
}

int index_segment_adopt(struct index_store *store, uint64_t number, struct index_tally *tally,
			struct r3ring_error *err)
{
	struct index_open *stored = NULL, *open = NULL;
	uint32_t stored_count = 0, count = 0;
	int code = index_store_get_open(store, number, &stored, &stored_count, err);

	if (!code)
		code = index_tally_get_open(tally, &open, &count);
	if (!code)
		code = index_tally_adopt_open(tally, stored, stored_count);
	if (code == 1)
		code = open_differs(number, stored_count, count, err);
	free(stored);
	free(open);
	return code;
}

int index_segment_compare(struct index_store *store, const struct index_segment *segment,
			  const struct index_tally *tally, struct r3ring_error *err)
{
	int code = compare_row(store, segment, err);

	return code || !tally ? code : compare_open(store, segment->number, tally, err);
}

/* ---- what belongs to nothing ------------------------------------------- */

/* @sql: gives a number; it has one parameter or none. */
static int expect_none(struct index_store *store, const char *sql, uint64_t parameter,
		       const char *what, struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	uint64_t count = 0;
	int code = index_sql_prepare(store, sql, &statement, err);

	if (code)
		return code;
	if (sqlite3_bind_parameter_count(statement))
		sqlite3_bind_int64(statement, 1, (sqlite3_int64)parameter);
	code = index_sql_step(store, statement, err);
	if (code == 1)
		count = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (code < 0 || !count)
		return code < 0 ? code : 0;
	r3ring_error_set(err, 0, "index.sqlite: it has %" PRIu64 " %s" REINDEX, count, what);
	return 1;
}

int index_segment_compare_rest(struct index_store *store, uint64_t first, struct r3ring_error *err)
{
	int code = expect_none(store, "SELECT count(*) FROM segments WHERE number < ?", first,
			       "segments that are not there, in front of the first", err);

	if (!code)
		code = expect_none(store,
				   "SELECT count(*) FROM parts WHERE segment NOT IN"
				   " (SELECT number FROM segments)",
				   0, "parts of segments that it does not know", err);
	if (!code)
		code = expect_none(store,
				   "SELECT count(*) FROM requests WHERE request NOT IN"
				   " (SELECT request FROM parts)",
				   0, "requests that it has nothing of", err);
	return code;
}
