/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the engines that run here of which the daemon has no channel: they did not start, do
 * not capture, or run where another daemon is.
 */
#ifndef TOOLS_ABSENT_CHANNELS_H
#define TOOLS_ABSENT_CHANNELS_H

#include "archive/ranks.h"
#include "monitor/daemon_picture.h"

/*
 * Channels that have ended count as there, but no engine of which nothing else is left.
 * @instance: of that one only; NULL: of all.
 * Returns 0, -ENOMEM.
 */
int absent_channels_find(const struct daemon_picture *picture, const char *instance,
			 struct archive_absent_ranks *absent);

#endif
