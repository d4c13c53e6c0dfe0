/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon says of a channel. */
#ifndef TESTS_SUPPORT_CHANNEL_STATUS_H
#define TESTS_SUPPORT_CHANNEL_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Asks the daemon in @dir. Returns the channel's object (a reference of the
 * caller's), or NULL when it has none of that name. */
json_t *channel_status(const char *dir, const char *channel);

/* One of its numbers; -1 when there is none. */
int64_t channel_figure(const char *dir, const char *channel, const char *key);

/* How many registered readers it has; -1 when there is no channel. */
int channel_readers(const char *dir, const char *channel);

/* Asks until @done says so of the channel's object, for at most twenty seconds;
 * returns whether it did. */
bool status_becomes(const char *dir, const char *channel,
		    bool (*done)(const json_t *channel, long argument), long argument);

/* For status_becomes(): it is there; `attached_readers` is @count; `state` is "ended". */
bool status_is_there(const json_t *channel, long unused);
bool status_has_readers(const json_t *channel, long count);
bool status_has_ended(const json_t *channel, long unused);

#endif
