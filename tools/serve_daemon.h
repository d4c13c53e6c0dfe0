/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of an instance, for monitors: docs/API.md, "Events". */
#ifndef TOOLS_SERVE_DAEMON_H
#define TOOLS_SERVE_DAEMON_H

#include <jansson.h>

#include "monitor/daemon_watch.h"

/*
 * Its channels, losses and readers, from the newest picture.
 *
 * @told: the live picture that was told of before, NULL at first; receives the one that is told
 *        of now, unless no daemon lives. What was lost in between is `lost_just_now`. The
 *        caller's: daemon_picture_put() at the end. One thread each.
 *
 * NULL without memory.
 */
json_t *daemon_tell(struct daemon_watch *watch, const char *instance, struct daemon_picture **told);

#endif
