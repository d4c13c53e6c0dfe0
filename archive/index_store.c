/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "archive/index.h"
#include "archive/index_sql.h"

#define APPLICATION_ID 0x52335249 /* "R3RI" */
#define SCHEMA_VERSION 1
#define WAIT_MS 10000
#define NEW_SUFFIX ".new" /* of one that is not whole yet */

static const char make_tables[] =
	"PRAGMA application_id = 1379095113;"
	"PRAGMA user_version = 1;"
	"CREATE TABLE archive (uuid BLOB NOT NULL);"
	"CREATE TABLE segments (number INTEGER PRIMARY KEY, bytes INTEGER NOT NULL,"
	" state INTEGER NOT NULL, records INTEGER NOT NULL, first_ns INTEGER NOT NULL,"
	" last_ns INTEGER NOT NULL, open BLOB NOT NULL);"
	"CREATE TABLE requests (request INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
	" session TEXT NOT NULL, turn TEXT NOT NULL, sample TEXT NOT NULL);"
	"CREATE TABLE parts (segment INTEGER NOT NULL REFERENCES segments (number),"
	" ring BLOB NOT NULL, handle INTEGER NOT NULL,"
	" request INTEGER NOT NULL REFERENCES requests (request), channel TEXT NOT NULL,"
	" generation INTEGER NOT NULL, first_step INTEGER, last_step INTEGER,"
	" first_position INTEGER, end_position INTEGER, rows INTEGER NOT NULL,"
	" layer_rows INTEGER NOT NULL, carried_rows INTEGER NOT NULL,"
	" carried_layer_rows INTEGER NOT NULL, weight_min INTEGER, weight_max INTEGER,"
	" first_offset INTEGER NOT NULL, last_offset INTEGER NOT NULL, begin_ns INTEGER,"
	" end_ns INTEGER, prompt_tokens INTEGER, accepted_tokens INTEGER,"
	" attempts INTEGER NOT NULL, end_reason INTEGER,"
	" PRIMARY KEY (segment, ring, handle)) WITHOUT ROWID;"
	"CREATE INDEX parts_of_request ON parts (request);"
	"CREATE VIEW coverage AS SELECT id, session, turn, sample,"
	" group_concat(DISTINCT channel) AS channels, min(segment) AS first_segment,"
	" max(segment) AS last_segment, min(first_step) AS first_step,"
	" max(last_step) AS last_step, min(first_position) AS first_position,"
	" max(end_position) AS end_position, sum(rows + carried_rows) AS rows,"
	" sum(layer_rows + carried_layer_rows) AS layer_rows, min(weight_min) AS weight_min,"
	" max(weight_max) AS weight_max, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns,"
	" max(prompt_tokens) AS prompt_tokens, max(accepted_tokens) AS accepted_tokens,"
	" max(attempts) AS attempts, max(end_reason = 1) AS finished"
	" FROM parts JOIN requests USING (request) GROUP BY request;";

/* ---- errors ------------------------------------------------------------ */

static int to_errno(int code)
{
	switch (code & 0xFF) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		return -EACCES;
	case SQLITE_IOERR:
		return -EIO;
	default:
		return -EBADMSG; /* also what its tables do not have */
	}
}

int index_sql_fail(struct index_store *store, int code, struct r3ring_error *err)
{
	int errnum = to_errno(code);

	if (!errnum)
		return 0;
	return r3ring_error_set(err, errnum, ARCHIVE_INDEX ": %s",
				store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code));
}

int index_sql_prepare(struct index_store *store, const char *sql, sqlite3_stmt **statement,
		      struct r3ring_error *err)
{
	return index_sql_fail(store, sqlite3_prepare_v2(store->db, sql, -1, statement, NULL), err);
}

int index_sql_step(struct index_store *store, sqlite3_stmt *statement, struct r3ring_error *err)
{
	int code = sqlite3_step(statement);

	return code == SQLITE_ROW ? 1 : index_sql_fail(store, code, err);
}

int index_sql_finish(struct index_store *store, sqlite3_stmt *statement, struct r3ring_error *err)
{
	int code = index_sql_step(store, statement, err);

	sqlite3_finalize(statement);
	return code;
}

int index_sql_run(struct index_store *store, const char *sql, struct r3ring_error *err)
{
	return index_sql_fail(store, sqlite3_exec(store->db, sql, NULL, NULL, NULL), err);
}

/* ---- opening ----------------------------------------------------------- */

static int read_number(struct index_store *store, const char *sql, int64_t *number,
		       struct r3ring_error *err)
{
	sqlite3_stmt *statement;
	int code = index_sql_prepare(store, sql, &statement, err);

	if (code)
		return code;
	code = index_sql_step(store, statement, err);
	if (code == 1)
		*number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return code < 0 ? code : 0;
}

static int check_version(struct index_store *store, struct r3ring_error *err)
{
	int64_t application = 0, version = 0;
	int code = read_number(store, "PRAGMA application_id", &application, err);

	if (!code)
		code = read_number(store, "PRAGMA user_version", &version, err);
	if (code)
		return code;
	if (application != APPLICATION_ID || version != SCHEMA_VERSION)
		return r3ring_error_set(err, -EBADMSG,
					ARCHIVE_INDEX ": not an index of this version: make it "
						      "anew with r3ring verify --reindex");
	return 0;
}

/* Without links on its way, since SQLite refuses those. */
static int find_path(const char *dir, char path[PATH_MAX + 32], struct r3ring_error *err)
{
	char *real = realpath(dir, NULL);

	if (!real)
		return r3ring_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	snprintf(path, PATH_MAX + 32, "%s/" ARCHIVE_INDEX, real);
	free(real);
	return 0;
}

static int remove_files(const char *path, struct r3ring_error *err)
{
	static const char *const behind[] = {"", "-journal", "-wal", "-shm"};
	char file[PATH_MAX + 64];

	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		snprintf(file, sizeof(file), "%s%s", path, behind[i]);
		if (unlink(file) && errno != ENOENT)
			return r3ring_error_set(err, -errno, "%s cannot be removed: %s", file,
						strerror(errno));
	}
	return 0;
}

static const char *name_new(char name[PATH_MAX + 64], const char *path)
{
	snprintf(name, PATH_MAX + 64, "%s" NEW_SUFFIX, path);
	return name;
}

/* In place of the one that was there. What belongs to that goes first: a journal would be taken
 * for one of the new. */
static int replace(struct index_store *store, struct r3ring_error *err)
{
	char made[PATH_MAX + 64];
	int code = index_sql_fail(store, sqlite3_close(store->db), err);

	store->db = NULL;
	if (!code)
		code = remove_files(store->becomes, err);
	if (!code && rename(name_new(made, store->becomes), store->becomes))
		code = r3ring_error_set(err, -errno, "%s: %s", store->becomes, strerror(errno));
	if (code)
		return code;
	free(store->becomes);
	store->becomes = NULL;
	return 0;
}

/* Its content is made of what is durable itself, so that it need not be. */
static int prepare(struct index_store *store, bool anew, struct r3ring_error *err)
{
	int code;

	sqlite3_busy_timeout(store->db, WAIT_MS);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	code = index_sql_run(store, "PRAGMA trusted_schema = OFF; PRAGMA synchronous = OFF", err);
	if (!code && anew)
		code = index_sql_run(store, make_tables, err);
	return code ? code : check_version(store, err);
}

/* For its owner alone, as the segments are: it names requests. SQLite would ask the umask. */
static int make_file(const char *path, struct r3ring_error *err)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return r3ring_error_set(err, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

/* @path: of the index; one that is made anew has another until it is whole. */
static int open_file(struct index_store *store, const char *path, bool anew,
		     struct r3ring_error *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW;
	char made[PATH_MAX + 64];
	int code = 0;

	if (anew) {
		store->becomes = strdup(path);
		path = name_new(made, path);
		code = store->becomes ? remove_files(path, err) : -ENOMEM;
		if (!code)
			code = make_file(path, err);
	} else if (access(path, F_OK)) {
		code = r3ring_error_set(err, -errno,
					ARCHIVE_INDEX " is not there: make it with r3ring verify "
						      "--reindex");
	}
	if (!code)
		code = index_sql_fail(store, sqlite3_open_v2(path, &store->db, flags, NULL), err);
	return code ? code : prepare(store, anew, err);
}

int index_store_open(struct index_store **store, const char *dir, bool anew,
		     struct r3ring_error *err)
{
	char path[PATH_MAX + 32];
	struct index_store *opened = calloc(1, sizeof(*opened));
	int code;

	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "no memory for an index");
	code = find_path(dir, path, err);
	if (!code)
		code = open_file(opened, path, anew, err);
	if (code) {
		index_store_close(opened);
		return code;
	}
	*store = opened;
	return 0;
}

void index_store_close(struct index_store *store)
{
	char made[PATH_MAX + 64];

	if (!store)
		return;
	sqlite3_close(store->db);
	if (store->becomes)
		remove_files(name_new(made, store->becomes), NULL);
	free(store->becomes);
	free(store);
}

int index_store_begin(struct index_store *store, struct r3ring_error *err)
{
	return index_sql_run(store, "BEGIN IMMEDIATE", err);
}

int index_store_commit(struct index_store *store, struct r3ring_error *err)
{
	int code = index_sql_run(store, "COMMIT", err);

	return code || !store->becomes ? code : replace(store, err);
}
