/* SPDX-License-Identifier: Apache-2.0 */
/* What a process holds, as /proc says. */
#ifndef TESTS_SUPPORT_PROCESS_SIZE_H
#define TESTS_SUPPORT_PROCESS_SIZE_H

#include <stdbool.h>
#include <sys/types.h>

/* Resident memory that is its own (RssAnon), in KiB; -1 when not known. */
long process_own_kib(pid_t pid);

/* Whether that says anything: under a sanitizer a process keeps what it frees. */
bool process_size_tells(void);

/* Open descriptors; -1 when not known. */
int process_descriptors(pid_t pid);

#endif
