/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that hold reservations, known by who is at the other end of a Unix socket. A
 * thread waits for their deaths.
 */
#ifndef SERVE_OWNERS_H
#define SERVE_OWNERS_H

#include <stdint.h>
#include <sys/types.h>

#include <r3ring/error.h>

struct owners;

/* Called by the waiting thread, once for each owner that died. */
typedef void (*owner_gone_fn)(void *context, uint64_t owner);

/* Returns 0, or the errno of a thread or descriptor that was not to be had, with a message.
 * Pairs with owners_stop(). */
int owners_start(struct owners **owners, owner_gone_fn gone, void *context,
		 struct r3ring_error *err);

/* Nothing is called any more when it returns. NULL is fine. */
void owners_stop(struct owners *owners);

/*
 * The owner that a process is: the same number as long as it lives, and no other's ever.
 * Returns 0, -ESRCH (it is dead), -EMFILE or -ENOMEM.
 */
int owners_find(struct owners *owners, pid_t pid, uint64_t *owner);

#endif
