/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/life.h"

/* The daemon watches it, too: while it says that the channel is live its process is no other one
 * that came to have the same number. */
static bool is_known_here(const struct daemon_picture *picture, const struct picture_channel *told,
			  uint64_t pid_namespace)
{
	return picture->state == PICTURE_LIVE && pid_namespace &&
	       picture->pid_namespace == pid_namespace && strcmp(told->state, "live") == 0 &&
	       told->producer_pid > 0 && told->producer_pid <= INT32_MAX;
}

void life_watch(struct life *life, const struct daemon_picture *picture,
		const struct picture_channel *told, uint64_t pid_namespace)
{
	if (life->pidfd < 0 && is_known_here(picture, told, pid_namespace))
		life->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)told->producer_pid, 0);
}

void life_forget(struct life *life)
{
	if (life->pidfd >= 0)
		close(life->pidfd);
	*life = life_of_nobody();
}

/* Source: pidfd_open(2): it is readable once the process has ended. */
bool life_is_over(const struct life *life)
{
	struct pollfd process = {.fd = life->pidfd, .events = POLLIN};

	return life->pidfd >= 0 && poll(&process, 1, 0) == 1;
}
