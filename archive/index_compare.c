/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the index says of a segment what the segment does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/index_columns.h"
#include "archive/index_sql.h"

#define FIRST_COLUMN 6 /* of index_columns, in the query */

struct comparison {
	struct index_store *store;
	uint64_t number;
	bool standalone;
	sqlite3_stmt *part;
	struct r3ring_error *err;
};

static int differs(const struct comparison *c, const struct index_part *part, const char *what)
{
	r3ring_error_set(c->err, 0,
			 "index.sqlite: segment %" PRIu64
			 ", request \"%.80s\" of %s: the index has "
			 "another %s than the segment; make it anew with r3ring verify --reindex",
			 c->number, part->texts.id, part->channel, what);
	return 1;
}

static bool same_text(sqlite3_stmt *row, int column, const char *text)
{
	const char *stored = (const char *)sqlite3_column_text(row, column);

	return stored && strcmp(stored, text) == 0;
}

static bool same_number(sqlite3_stmt *row, int column, uint64_t value, uint64_t none)
{
	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return value == none;
	return value != none && (uint64_t)sqlite3_column_int64(row, column) == value;
}

/* The texts are of the newest part of the request. */
static int compare_texts(const struct comparison *c, const struct index_part *part)
{
	if (!same_text(c->part, 0, part->texts.id))
		return differs(c, part, "id");
	if (!same_text(c->part, 1, part->channel))
		return differs(c, part, "channel");
	if (!sqlite3_column_int(c->part, 2))
		return 0;
	if (!same_text(c->part, 3, part->texts.session))
		return differs(c, part, "session");
	if (!same_text(c->part, 4, part->texts.turn))
		return differs(c, part, "turn");
	if (!same_text(c->part, 5, part->texts.sample))
		return differs(c, part, "sample");
	return 0;
}

static int compare_row(const struct comparison *c, const struct index_part *part)
{
	int code = compare_texts(c, part);

	if (code)
		return code;
	for (uint32_t i = 0; i < INDEX_COLUMNS; i++) {
		const struct index_column *column = &index_columns[i];

		if (column->carried && c->standalone)
			continue;
		if (!same_number(c->part, FIRST_COLUMN + (int)i, index_column_value(part, column),
				 column->none))
			return differs(c, part, column->name);
	}
	return 0;
}

static int compare_part(const struct comparison *c, const struct index_part *part)
{
	int code;

	sqlite3_reset(c->part);
	sqlite3_bind_int64(c->part, 1, (sqlite3_int64)c->number);
	sqlite3_bind_blob(c->part, 2, part->key.uuid, sizeof(part->key.uuid), SQLITE_STATIC);
	sqlite3_bind_int64(c->part, 3, (sqlite3_int64)part->key.handle);
	code = index_sql_step(c->store, c->part, c->err);
	if (code < 0)
		return code;
	if (code == 1)
		return compare_row(c, part);
	r3ring_error_set(c->err, 0,
			 "index.sqlite: segment %" PRIu64 " has request \"%.80s\" of %s, of which "
			 "the index does not know; make it anew with r3ring verify --reindex",
			 c->number, part->texts.id, part->channel);
	return 1;
}

static int prepare(struct comparison *c)
{
	char sql[1024];
	size_t len = (size_t)snprintf(sql, sizeof(sql),
				      "SELECT id, channel, 1 = (SELECT count(*) FROM parts AS p"
				      " WHERE p.request = parts.request"
				      " AND p.segment >= parts.segment), session, turn, sample");

	for (uint32_t i = 0; i < INDEX_COLUMNS; i++)
		len += (size_t)snprintf(sql + len, sizeof(sql) - len, ", %s",
					index_columns[i].name);
	snprintf(sql + len, sizeof(sql) - len,
		 " FROM parts JOIN requests USING (request)"
		 " WHERE segment = ? AND ring = ? AND handle = ?");
	return index_sql_prepare(c->store, sql, &c->part, c->err);
}

/* All that the segment has is in the index: has that more? */
static int compare_count(const struct comparison *c, uint64_t parts)
{
	sqlite3_stmt *statement;
	uint64_t stored = 0;
	int code = index_sql_prepare(c->store,
				     "SELECT count(*) FROM parts WHERE segment = ? AND (? OR"
				     " coalesce(first_step, begin_ns, end_ns) IS NOT NULL)",
				     &statement, c->err);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)c->number);
	sqlite3_bind_int(statement, 2, !c->standalone);
	code = index_sql_step(c->store, statement, c->err);
	if (code == 1)
		stored = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (code < 0 || stored == parts)
		return code < 0 ? code : 0;
	r3ring_error_set(c->err, 0,
			 "index.sqlite: segment %" PRIu64 " has something of %" PRIu64
			 " requests, the index says of %" PRIu64
			 "; make it anew with r3ring verify --reindex",
			 c->number, parts, stored);
	return 1;
}

int index_store_compare(struct index_store *store, uint64_t number, const struct index_tally *tally,
			bool standalone, struct r3ring_error *err)
{
	struct comparison c = {
		.store = store, .number = number, .standalone = standalone, .err = err};
	const struct index_part *part = index_tally_parts(tally);
	uint64_t parts = 0;
	int code = prepare(&c);

	for (; !code && part; part = part->hh.next) {
		if (!index_part_tells(part))
			continue;
		parts++;
		code = compare_part(&c, part);
	}
	sqlite3_finalize(c.part);
	return code ? code : compare_count(&c, parts);
}
