/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and syncs, several in flight through io_uring; one after the other with pwrite where
 * io_uring is refused. One thread.
 *
 * No buffers are registered: the bytes are copied into the page cache either way, and pinning
 * the buffers takes longer than the first of them takes to fill.
 */
#ifndef ARCHIVE_DISK_H
#define ARCHIVE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <liburing.h>

#define DISK_IN_FLIGHT 16u

struct disk_done {
	uint64_t tag;
	int result; /* bytes written, 0 of the others, -errno */
};

struct disk {
	bool uring;
	int wake_fd; /* becomes readable when something is done; others may write it too */
	struct io_uring ring;
	unsigned int in_flight;
	/* Without io_uring: done and not yet told. */
	struct disk_done done[DISK_IN_FLIGHT];
};

/* What one write is of. */
struct disk_write {
	int fd;
	const void *bytes;
	uint32_t count;
	uint64_t offset;
	uint64_t tag;
};

/* @wake_fd: an eventfd. Never fails: there is always pwrite. */
void disk_open(struct disk *disk, int wake_fd, bool no_uring);
void disk_close(struct disk *disk);

/* Start something; at most DISK_IN_FLIGHT at a time, the caller's to see to. What a failure
 * to start it is comes as its result. */
void disk_write(struct disk *disk, const struct disk_write *write);
void disk_sync(struct disk *disk, int fd, uint64_t tag);

/* Has the kernel begin to move what was written to the device, so that the next sync finds less
 * to do. Nothing is certain by it. */
void disk_push(struct disk *disk, int fd, uint64_t tag);

/* Something that is done; false: nothing more for now. */
bool disk_reap(struct disk *disk, struct disk_done *done);

/* Waits until something may be done, or somebody wrote wake_fd. */
void disk_wait(struct disk *disk, int timeout_ms);

#endif
