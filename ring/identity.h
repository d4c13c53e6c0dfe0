/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a number means: a later one of that number began at another time. */
#ifndef RING_IDENTITY_H
#define RING_IDENTITY_H

#include <stdint.h>

/* When it began, in the kernel's ticks; 0 where /proc does not say, or there is no such process. */
uint64_t identity_start_time(uint32_t pid);

#endif
