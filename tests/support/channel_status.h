/* SPDX-License-Identifier: Apache-2.0 */
/* One figure of what a daemon says of a channel. */
#ifndef TESTS_SUPPORT_CHANNEL_STATUS_H
#define TESTS_SUPPORT_CHANNEL_STATUS_H

#include <stdint.h>

#include <jansson.h>

/* The channel's object; a new reference, NULL when there is none. */
json_t *channel_status(const char *dir, const char *channel);

/* One of its numbers; -1 when there is none. */
int64_t channel_figure(const char *dir, const char *channel, const char *key);

/* How many registered readers it has; -1 when there is no channel. */
int channel_readers(const char *dir, const char *channel);

#endif
