/* SPDX-License-Identifier: Apache-2.0 */
/* The index's rows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index_columns.h"
#include "archive/index_sql.h"

#define UUID_BYTES 16

/* ---- the archive ------------------------------------------------------- */

int index_store_get_uuid(struct index_store *store, uint8_t uuid[16], struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store, "SELECT uuid FROM archive", &statement, err);

	if (code)
		return code;
	memset(uuid, 0, UUID_BYTES);
	code = index_sql_step(store, statement, err);
	if (code == 1 && sqlite3_column_bytes(statement, 0) == UUID_BYTES)
		memcpy(uuid, sqlite3_column_blob(statement, 0), UUID_BYTES);
	sqlite3_finalize(statement);
	return code < 0 ? code : 0;
}

int index_store_set_uuid(struct index_store *store, const uint8_t uuid[16],
			 struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store, "INSERT INTO archive VALUES (?)", &statement, err);

	if (code)
		return code;
	sqlite3_bind_blob(statement, 1, uuid, UUID_BYTES, SQLITE_STATIC);
	return index_sql_finish(store, statement, err);
}

/* ---- segments ---------------------------------------------------------- */

int index_store_get_segment(struct index_store *store, uint64_t number,
			    struct index_segment *segment, struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store,
				     "SELECT bytes, state, records, first_ns, last_ns"
				     " FROM segments WHERE number = ?",
				     &statement, err);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
	code = index_sql_step(store, statement, err);
	if (code == 1)
		*segment = (struct index_segment){
			.number = number,
			.bytes = (uint64_t)sqlite3_column_int64(statement, 0),
			.state = (uint32_t)sqlite3_column_int(statement, 1),
			.records = (uint64_t)sqlite3_column_int64(statement, 2),
			.first_ns = (uint64_t)sqlite3_column_int64(statement, 3),
			.last_ns = (uint64_t)sqlite3_column_int64(statement, 4),
		};
	sqlite3_finalize(statement);
	return code;
}

int index_store_newest_closed(struct index_store *store, uint64_t *number, struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store, "SELECT max(number) FROM segments WHERE state = ?",
				     &statement, err);

	if (code)
		return code;
	sqlite3_bind_int(statement, 1, INDEX_SEGMENT_CLOSED);
	code = index_sql_step(store, statement, err);
	*number = code == 1 ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
	sqlite3_finalize(statement);
	return code < 0 ? code : 0;
}

int index_store_count(struct index_store *store, uint64_t first, uint64_t last, uint64_t *count,
		      struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store,
				     "SELECT count(*) FROM segments WHERE number BETWEEN ? AND ?",
				     &statement, err);

	*count = 0;
	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)first);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)last);
	code = index_sql_step(store, statement, err);
	if (code == 1)
		*count = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return code < 0 ? code : 0;
}

int index_store_get_open(struct index_store *store, uint64_t number, struct index_open **open,
			 uint32_t *count, struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	struct index_open *list = NULL;
	size_t bytes = 0;
	int code = index_sql_prepare(store, "SELECT open FROM segments WHERE number = ?",
				     &statement, err);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
	code = index_sql_step(store, statement, err);
	if (code == 1) {
		bytes = (size_t)sqlite3_column_bytes(statement, 0) / sizeof(*list) * sizeof(*list);
		list = malloc(bytes ? bytes : 1);
		if (!list)
			code = -ENOMEM;
		else if (bytes)
			memcpy(list, sqlite3_column_blob(statement, 0), bytes);
	}
	sqlite3_finalize(statement);
	if (code < 0)
		return code;
	*open = list;
	*count = (uint32_t)(bytes / sizeof(*list));
	return 0;
}

static int delete_outside(struct index_store *store, const char *sql, uint64_t first, uint64_t end,
			  struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store, sql, &statement, err);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)first);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)end);
	return index_sql_finish(store, statement, err);
}

int index_store_keep(struct index_store *store, uint64_t first, uint64_t end,
		     struct r3ring_error *err)
{
	int code = delete_outside(store, "DELETE FROM parts WHERE segment < ? OR segment >= ?",
				  first, end, err);

	if (!code)
		code = delete_outside(store, "DELETE FROM segments WHERE number < ? OR number >= ?",
				      first, end, err);
	if (!code)
		code = index_sql_run(store,
				     "DELETE FROM requests WHERE request NOT IN"
				     " (SELECT request FROM parts)",
				     err);
	return code;
}

static int put_segment(struct index_store *store, const struct index_segment *segment,
		       const struct index_tally *tally, struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	struct index_open *open;
	uint32_t count;
	int code = index_sql_prepare(store, "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)",
				     &statement, err);

	if (code)
		return code;
	code = index_tally_get_open(tally, &open, &count);
	if (code) {
		sqlite3_finalize(statement);
		return r3ring_error_set(err, code, "no memory for the index");
	}
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)segment->number);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)segment->bytes);
	sqlite3_bind_int64(statement, 3, segment->state);
	sqlite3_bind_int64(statement, 4, (sqlite3_int64)segment->records);
	sqlite3_bind_int64(statement, 5, (sqlite3_int64)segment->first_ns);
	sqlite3_bind_int64(statement, 6, (sqlite3_int64)segment->last_ns);
	sqlite3_bind_blob64(statement, 7, open, count * sizeof(*open), free);
	return index_sql_finish(store, statement, err);
}

/* ---- parts ------------------------------------------------------------- */

struct part_statements {
	sqlite3_stmt *request, *part;
};

static const char put_request[] =
	"INSERT INTO requests (id, session, turn, sample) VALUES (?, ?, ?, ?)"
	" ON CONFLICT (id) DO UPDATE SET session = excluded.session, turn = excluded.turn,"
	" sample = excluded.sample RETURNING request";

static int bind_request(struct index_store *store, sqlite3_stmt *statement,
			const struct index_texts *texts, sqlite3_int64 *request,
			struct r3ring_error *err)
{
	int code;

	sqlite3_reset(statement);
	sqlite3_bind_text(statement, 1, texts->id, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, texts->session, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 3, texts->turn, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 4, texts->sample, -1, SQLITE_STATIC);
	code = index_sql_step(store, statement, err);
	if (code != 1)
		return code;
	*request = sqlite3_column_int64(statement, 0);
	code = index_sql_step(store, statement, err);
	return code < 0 ? code : 0;
}

static int put_part(struct index_store *store, const struct part_statements *statements,
		    uint64_t segment, const struct index_part *part, struct r3ring_error *err)
{
	sqlite3_stmt *to = statements->part;
	sqlite3_int64 request = 0;
	int code = bind_request(store, statements->request, &part->texts, &request, err);

	if (code)
		return code;
	sqlite3_reset(to);
	sqlite3_bind_int64(to, 1, (sqlite3_int64)segment);
	sqlite3_bind_blob(to, 2, part->key.uuid, UUID_BYTES, SQLITE_STATIC);
	sqlite3_bind_int64(to, 3, (sqlite3_int64)part->key.handle);
	sqlite3_bind_int64(to, 4, request);
	sqlite3_bind_text(to, 5, part->channel, -1, SQLITE_STATIC);
	for (uint32_t i = 0; i < INDEX_COLUMNS; i++) {
		uint64_t value = index_column_value(part, &index_columns[i]);

		if (value == index_columns[i].none)
			sqlite3_bind_null(to, 6 + (int)i);
		else
			sqlite3_bind_int64(to, 6 + (int)i, (sqlite3_int64)value);
	}
	return index_sql_step(store, to, err);
}

static int prepare_part(struct index_store *store, sqlite3_stmt **statement,
			struct r3ring_error *err)
{
	char sql[1024];
	size_t len = (size_t)snprintf(sql, sizeof(sql),
				      "INSERT INTO parts (segment, ring, handle, request, channel");

	for (uint32_t i = 0; i < INDEX_COLUMNS; i++)
		len += (size_t)snprintf(sql + len, sizeof(sql) - len, ", %s",
					index_columns[i].name);
	len += (size_t)snprintf(sql + len, sizeof(sql) - len, ") VALUES (?, ?, ?, ?, ?");
	for (uint32_t i = 0; i < INDEX_COLUMNS; i++)
		len += (size_t)snprintf(sql + len, sizeof(sql) - len, ", ?");
	snprintf(sql + len, sizeof(sql) - len, ")");
	return index_sql_prepare(store, sql, statement, err);
}

int index_store_put(struct index_store *store, const struct index_segment *segment,
		    const struct index_tally *tally, struct r3ring_error *err)
{
	struct part_statements statements = {0};
	const struct index_part *part;
	int code = put_segment(store, segment, tally, err);

	if (!code)
		code = index_sql_prepare(store, put_request, &statements.request, err);
	if (!code)
		code = prepare_part(store, &statements.part, err);
	for (part = index_tally_parts(tally); !code && part; part = part->hh.next) {
		if (index_part_tells(part))
			code = put_part(store, &statements, segment->number, part, err);
	}
	sqlite3_finalize(statements.request);
	sqlite3_finalize(statements.part);
	return code;
}
