/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of the index. */
#ifndef ARCHIVE_INDEX_SQL_H
#define ARCHIVE_INDEX_SQL_H

#include <sqlite3.h>

#include "archive/index_store.h"

struct index_store {
	sqlite3 *db;
	char *becomes; /* path that one that is made anew takes at commit; else NULL */
};

/* The errno of what SQLite returned; 0 where that is no error. */
int index_sql_fail(struct index_store *store, int code, struct r3ring_error *err);

/* Runs statements that give no rows. Returns 0 or an errno. */
int index_sql_run(struct index_store *store, const char *sql, struct r3ring_error *err);

/* Pairs with sqlite3_finalize() or index_sql_finish(). Returns 0 or an errno. */
int index_sql_prepare(struct index_store *store, const char *sql, sqlite3_stmt **statement,
		      struct r3ring_error *err);

/* Returns 1 (a row), 0 (no more), or an errno. */
int index_sql_step(struct index_store *store, sqlite3_stmt *statement, struct r3ring_error *err);

/* One step, and the end of the statement; likewise. */
int index_sql_finish(struct index_store *store, sqlite3_stmt *statement, struct r3ring_error *err);

#endif
