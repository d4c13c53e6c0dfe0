/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime directory: one daemon each, its socket, and lists that outlive
 * the daemon.
 *
 *	r3ringd.lock    flock held by the daemon, with its pid
 *	r3ringd.sock    the socket
 *	segments/       a file for each segment that was made here (channel/leftover.h)
 *	generations/    a file per channel with its last generation, and one with what
 *			lived in it when the daemon ended (capture_daemon/carried.h)
 */
#ifndef DAEMON_RUNTIME_DIR_H
#define DAEMON_RUNTIME_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>

struct runtime_dir {
	char path[PATH_MAX];
	char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;
	int lock_fd;
	int listen_fd;    /* non-blocking */
	ino_t socket_ino; /* of its file */
	int segments_fd;
	int generations_fd;
};

/*
 * Makes the directory where needed (0750), takes its lock, and listens.
 *
 * @gid: group that may connect, (gid_t)-1 for none but the user's own rule.
 *
 * Returns 0, -ENAMETOOLONG (socket path; names the limit), -EBUSY (another
 * daemon, its pid is named), -EACCES (directory of another user, or writable
 * by others), or an errno.
 */
int runtime_dir_open(struct runtime_dir *dir, const char *path, gid_t gid,
		     struct r3ring_error *err);

/* Whether the socket's file is still there. */
bool runtime_dir_has_socket(const struct runtime_dir *dir);

/* Listens anew where it is not; on failure nowhere any more, and listen_fd is -1. */
int runtime_dir_listen_again(struct runtime_dir *dir, gid_t gid, struct r3ring_error *err);

/* What to do about a negative errno of writing there, with ": " in front; "" where that is
 * not known. */
const char *runtime_dir_remedy(int error);

/* Removes the socket and gives the lock back; the directory stays. */
void runtime_dir_close(struct runtime_dir *dir);

/* The last generation of a channel, 0 when there was none. */
uint64_t runtime_dir_last_generation(struct runtime_dir *dir,
				     const struct r3ring_channel_name *channel);
/* Stored so that a crash leaves the old number or the new one. */
int runtime_dir_store_generation(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
				 uint64_t generation);

#endif
