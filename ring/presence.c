/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that tell a ring's next writer of readers that have yet to come back. */
#include <errno.h>
#include <fcntl.h>

#include "ring/internal.h"
#include "ring/presence.h"

/* Open file description locks: no other descriptor that this process closes takes them. */
static int set_lock(int fd, short type, uint64_t begin, uint64_t bytes)
{
	struct flock lock = {.l_type = type,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)begin,
			     .l_len = (off_t)bytes};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int presence_show(int segment_fd, uint64_t epoch)
{
	int rc = epoch < RING_NUMBER_LIMIT ? set_lock(segment_fd, F_RDLCK, epoch, 1) : -ERANGE;

	/* A length of 0 would be all. */
	return rc || !epoch ? rc : set_lock(segment_fd, F_UNLCK, 0, epoch);
}

bool presence_before(const struct r3ring_segment *segment, uint64_t epoch)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = (off_t)epoch};

	if (!epoch)
		return false;
	if (epoch >= RING_NUMBER_LIMIT || fcntl(segment->fd, F_OFD_GETLK, &lock) < 0)
		return true;
	return lock.l_type != F_UNLCK;
}
