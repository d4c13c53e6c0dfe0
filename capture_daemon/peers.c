/* SPDX-License-Identifier: Apache-2.0 */
/* Who may talk to the daemon: checked with what the kernel knows of a peer. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_daemon/peers.h"

int peers_find_group(const char *name, gid_t *gid, struct r3ring_error *err)
{
	struct group *group = getgrnam(name);

	if (!group)
		return r3ring_error_set(err, -ENOENT,
					"--group %s: there is no such group on this machine", name);
	*gid = group->gr_gid;
	return 0;
}

static bool peer_in_group(int fd, gid_t gid)
{
	socklen_t bytes = 0;
	bool found = false;
	gid_t *groups;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE)
		return false;
	groups = malloc(bytes);
	if (!groups)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0) {
		for (size_t i = 0; i < bytes / sizeof(*groups); i++)
			found |= groups[i] == gid;
	}
	free(groups);
	return found;
}

int peers_check(int fd, gid_t gid, struct ucred *peer, struct r3ring_error *err)
{
	socklen_t bytes = sizeof(*peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) < 0)
		return r3ring_error_set(err, -errno, "the peer's credentials: %s", strerror(errno));
	if (peer->uid == geteuid() || peer->uid == 0)
		return 0;
	if (gid != PEERS_NO_GROUP && (peer->gid == gid || peer_in_group(fd, gid)))
		return 0;
	return r3ring_error_set(err, -EACCES,
				"this r3ringd serves user %u; user %u may not connect: start it "
				"with --group and join that group, or run one of your own",
				geteuid(), peer->uid);
}

int peers_check_pidfd(int fd, struct r3ring_error *err)
{
	char path[64], line[128];
	bool found = false;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	if (!info)
		return r3ring_error_set(err, -errno, "its pidfd cannot be looked at: %s",
					strerror(errno));
	while (!found && fgets(line, sizeof(line), info))
		found = strncmp(line, "Pid:", 4) == 0;
	fclose(info);
	return found ? 0 : r3ring_error_set(err, -EBADMSG, "hello's last descriptor is no pidfd");
}
