/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may still take. */
#ifndef DEVICE_HOST_MEMORY_H
#define DEVICE_HOST_MEMORY_H

#include <stdint.h>

/*
 * Bytes that can be taken without swapping or killing: what the kernel holds for
 * available, and what the limit of this process's control group (version 2)
 * leaves. UINT64_MAX where neither can be read.
 *
 * Source: proc(5) "MemAvailable", Linux Documentation/admin-guide/cgroup-v2.rst
 * "memory.max".
 */
uint64_t host_memory_available(void);

#endif
