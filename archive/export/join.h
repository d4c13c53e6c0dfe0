/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns of a session: the last token that a turn sampled is consumed by the next turn, whose
 * row stands for it then.
 */
#ifndef ARCHIVE_EXPORT_JOIN_H
#define ARCHIVE_EXPORT_JOIN_H

#include <stdint.h>

#define EXPORT_SESSIONS_MAX (1u << 16) /* beyond it the oldest is forgotten */

struct export_turn {
	uint32_t tokens; /* of the turn; its last row is at tokens - 1 */
	uint64_t row;    /* the number of its last row in the output */
	uint64_t weight_version;
};

struct export_sessions;

struct export_sessions *export_sessions_create(void);
void export_sessions_destroy(struct export_sessions *sessions);

/* Keeps a turn that waits for its last row. Returns 0, 1 (the oldest was forgotten for it), or
 * -ENOMEM. */
int export_sessions_put(struct export_sessions *sessions, const char *session,
			const struct export_turn *turn);

/* Takes the session's turn out again. Returns 1, or 0: none waits. */
int export_sessions_take(struct export_sessions *sessions, const char *session,
			 struct export_turn *turn);

#endif
