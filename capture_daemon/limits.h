/* SPDX-License-Identifier: Apache-2.0 */
/* What one user may take of the daemon. */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

#include <stdint.h>
#include <sys/types.h>

#include <r3ring/error.h>

struct daemon;

/* Removes ended channels of @user, as far as that lets one more channel in, which
 * takes @bytes of memory. */
void limits_make_room(struct daemon *daemon, uid_t user, uint64_t bytes);

/* Whether @user may open one more channel that takes @bytes of memory. Returns 0
 * or -EDQUOT with a message that names the limit and its flag. */
int limits_check_channel(const struct daemon *daemon, uid_t user, uint64_t bytes,
			 struct r3ring_error *err);

/* Whether @user may have one connection more. Returns likewise. */
int limits_check_connection(const struct daemon *daemon, uid_t user, struct r3ring_error *err);

/* Whether @user may attach one reader more. Returns likewise. */
int limits_check_reader(const struct daemon *daemon, uid_t user, struct r3ring_error *err);

#endif
