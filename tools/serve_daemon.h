/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of an instance, for monitors: docs/API.md, "Events". */
#ifndef TOOLS_SERVE_DAEMON_H
#define TOOLS_SERVE_DAEMON_H

#include <jansson.h>

#include "monitor/daemon_watch.h"

/* Its channels, losses and readers, from the newest picture. NULL without memory. */
json_t *daemon_tell(struct daemon_watch *watch, const char *instance);

#endif
