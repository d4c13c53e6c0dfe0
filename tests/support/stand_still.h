/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_STAND_STILL_H
#define TESTS_SUPPORT_STAND_STILL_H

#include <sys/types.h>

/* Stops a child of this process and returns once no thread of it runs any more, which a bare
 * SIGSTOP does not wait for. SIGCONT ends it. */
void stand_still(pid_t child);

#endif
