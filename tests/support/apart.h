/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in PID, IPC and mount namespaces of their own, as those of containers are:
 * for `prepare` of daemons and commands. The kernel may refuse; root it allows.
 */
#ifndef TESTS_SUPPORT_APART_H
#define TESTS_SUPPORT_APART_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define APART_CONTAINER (CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS)

struct apart {
	int flags; /* CLONE_NEW...: PID (with its /proc), IPC, NS (with a /dev/shm of its own) */
	const struct apart *with; /* joins PID and IPC of a program that runs; NULL: new ones */
	uint32_t *inside;         /* its process id as the test sees it; atomic */
};

/* Whether such namespaces can be had here. */
bool apart_allowed(int flags);

/* Before the program is started. Pairs with apart_free(). */
void apart_init(struct apart *apart, int flags, const struct apart *with);
void apart_free(struct apart *apart);

/*
 * The calling process, which has one thread, goes there: it returns in a child, which
 * is to become the program. The process itself hands on SIGTERM and SIGINT and ends as
 * that one does. False where the kernel refuses.
 */
bool apart_enter(void *apart);

/* SIGKILL for the program itself; @pid, the process that was started, is left to be waited
 * for, and has ended. */
void apart_kill(const struct apart *apart, int pid);

#endif
