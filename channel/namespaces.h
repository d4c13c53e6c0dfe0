/* SPDX-License-Identifier: Apache-2.0 */
/* Which namespaces this process is in. */
#ifndef CHANNEL_NAMESPACES_H
#define CHANNEL_NAMESPACES_H

#include <stdint.h>

/*
 * Numbers that two processes of one kernel have in common exactly when they share
 * the namespace; 0 where /proc does not say.
 *
 * Source: namespaces(7), "The /proc/pid/ns/ directory".
 */
struct namespaces {
	uint64_t pid;
	uint64_t ipc;
};

struct namespaces namespaces_of_this_process(void);

#endif
