/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon says of a channel. */
#ifndef TESTS_SUPPORT_STATUS_H
#define TESTS_SUPPORT_STATUS_H

#include <stdbool.h>

#include <jansson.h>

/* Asks the daemon in @dir. Returns the channel's object (a reference of the
 * caller's), or NULL when it has none of that name. */
json_t *status_of_channel(const char *dir, const char *channel);

/* Asks until @done says so of the channel's object, for at most ten seconds;
 * returns whether it did. */
bool status_becomes(const char *dir, const char *channel,
		    bool (*done)(const json_t *channel, long argument), long argument);

/* For status_becomes(): `attached_readers` is @count; `state` is "ended". */
bool status_has_readers(const json_t *channel, long count);
bool status_has_ended(const json_t *channel, long unused);

#endif
