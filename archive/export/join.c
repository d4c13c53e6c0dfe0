/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "archive/export/join.h"

struct session {
	UT_hash_handle hh; /* in the order of their coming */
	struct export_turn turn;
	char name[];
};

struct export_sessions {
	struct session *first;
};

struct export_sessions *export_sessions_create(void)
{
	return calloc(1, sizeof(struct export_sessions));
}

static void forget(struct export_sessions *sessions, struct session *session)
{
	HASH_DEL(sessions->first, session);
	free(session);
}

void export_sessions_destroy(struct export_sessions *sessions)
{
	while (sessions && sessions->first)
		forget(sessions, sessions->first);
	free(sessions);
}

int export_sessions_put(struct export_sessions *sessions, const char *name,
			const struct export_turn *turn)
{
	const size_t bytes = strlen(name) + 1;
	struct session *session;
	unsigned int before;
	int forgotten = 0;

	HASH_FIND_STR(sessions->first, name, session);
	if (session) {
		session->turn = *turn;
		return 0;
	}
	if (HASH_COUNT(sessions->first) >= EXPORT_SESSIONS_MAX) {
		forget(sessions, sessions->first);
		forgotten = 1;
	}
	session = malloc(sizeof(*session) + bytes);
	if (!session)
		return -ENOMEM;
	session->turn = *turn;
	memcpy(session->name, name, bytes);
	before = HASH_COUNT(sessions->first);
	HASH_ADD_STR(sessions->first, name, session);
	if (HASH_COUNT(sessions->first) > before)
		return forgotten;
	free(session);
	return -ENOMEM;
}

int export_sessions_take(struct export_sessions *sessions, const char *name,
			 struct export_turn *turn)
{
	struct session *session;

	HASH_FIND_STR(sessions->first, name, session);
	if (!session)
		return 0;
	*turn = session->turn;
	forget(sessions, session);
	return 1;
}
