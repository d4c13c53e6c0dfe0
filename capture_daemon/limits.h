/* SPDX-License-Identifier: Apache-2.0 */
/* What one user may take of the daemon. */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

#include <stdint.h>
#include <sys/types.h>

#include <r3ring/error.h>

struct channel;
struct daemon;

/* A channel that a user wants to open. */
struct limits_demand {
	uid_t user;
	uint64_t bytes;               /* of memory */
	const struct channel *former; /* generation that makes room for it; NULL: none. Does
				       * not count, be it drained already or not. */
};

/* Removes ended channels of the user, as far as that lets the new one in. */
void limits_make_room(struct daemon *daemon, const struct limits_demand *demand);

/* Whether the user may open it. Returns 0 or -EDQUOT with a message that names the
 * limit and its flag. */
int limits_check_channel(const struct daemon *daemon, const struct limits_demand *demand,
			 struct r3ring_error *err);

/* Whether @user may have one connection more. Returns likewise. */
int limits_check_connection(const struct daemon *daemon, uid_t user, struct r3ring_error *err);

/* Whether @user may attach one reader more. Returns likewise. */
int limits_check_reader(const struct daemon *daemon, uid_t user, struct r3ring_error *err);

#endif
