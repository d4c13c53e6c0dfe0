/* SPDX-License-Identifier: Apache-2.0 */
/* What one user may take of the daemon. */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

#include <stdbool.h>
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

/* /dev/shm has no room for the ring: removes one ended channel of the user, those without a
 * reader first, the former generation last. False: there is none. The memory of a ring that
 * readers have mapped is free once they have read it to its end. */
bool limits_make_shm_room(struct daemon *daemon, const struct limits_demand *demand);

/* Then: adds to the message of @err what channels hold of it that do not make room. */
void limits_explain_shm_room(const struct daemon *daemon, const struct limits_demand *demand,
			     struct r3ring_error *err);

/* Whether the user may open it. Returns 0 or -EDQUOT with a message that names the
 * limit and its flag. */
int limits_check_channel(const struct daemon *daemon, const struct limits_demand *demand,
			 struct r3ring_error *err);

/* Whether @user may have one connection more. Returns likewise. */
int limits_check_connection(const struct daemon *daemon, uid_t user, struct r3ring_error *err);

/* Whether @user may attach one reader more. Returns likewise. */
int limits_check_reader(const struct daemon *daemon, uid_t user, struct r3ring_error *err);

#endif
