/* SPDX-License-Identifier: Apache-2.0 */
/* Writing, with io_uring or without. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "archive/disk.h"

#define AGAIN_MS 10

static int uring_open(struct disk *disk)
{
	int r = io_uring_queue_init(2 * DISK_IN_FLIGHT, &disk->ring, IORING_SETUP_CLAMP);

	if (r < 0)
		return r;
	r = io_uring_register_eventfd(&disk->ring, disk->wake_fd);
	if (r < 0)
		io_uring_queue_exit(&disk->ring);
	return r;
}

void disk_open(struct disk *disk, int wake_fd, bool no_uring)
{
	*disk = (struct disk){.wake_fd = wake_fd};
	disk->uring = !no_uring && uring_open(disk) == 0;
}

void disk_close(struct disk *disk)
{
	if (disk->uring)
		io_uring_queue_exit(&disk->ring);
}

/* ---- without io_uring --------------------------------------------------- */

static void note_done(struct disk *disk, uint64_t tag, ssize_t result)
{
	disk->done[disk->in_flight++] = (struct disk_done){
		.tag = tag,
		.result = result < 0 ? -errno : (int)result,
	};
}

/* ---- both --------------------------------------------------------------- */

/* There is always room: twice what may be in flight. What the kernel does not take for now
 * stays in the queue, for disk_wait(). */
static void submit(struct disk *disk, struct io_uring_sqe *sqe, uint64_t tag)
{
	sqe->user_data = tag;
	disk->in_flight++;
	io_uring_submit(&disk->ring);
}

void disk_write(struct disk *disk, const struct disk_write *write)
{
	struct io_uring_sqe *sqe;

	if (!disk->uring) {
		note_done(disk, write->tag,
			  pwrite(write->fd, write->bytes, write->count, (off_t)write->offset));
		return;
	}
	sqe = io_uring_get_sqe(&disk->ring);
	io_uring_prep_write(sqe, write->fd, write->bytes, write->count, write->offset);
	submit(disk, sqe, write->tag);
}

void disk_sync(struct disk *disk, int fd, uint64_t tag)
{
	struct io_uring_sqe *sqe;

	if (!disk->uring) {
		note_done(disk, tag, fdatasync(fd));
		return;
	}
	sqe = io_uring_get_sqe(&disk->ring);
	io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
	submit(disk, sqe, tag);
}

void disk_push(struct disk *disk, int fd, uint64_t tag)
{
	struct io_uring_sqe *sqe;

	/* No length: to the end. What is not dirty costs nothing. */
	if (!disk->uring) {
		note_done(disk, tag, sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
		return;
	}
	sqe = io_uring_get_sqe(&disk->ring);
	io_uring_prep_sync_file_range(sqe, fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	submit(disk, sqe, tag);
}

bool disk_reap(struct disk *disk, struct disk_done *done)
{
	struct io_uring_cqe *cqe;

	if (!disk->in_flight)
		return false;
	if (!disk->uring) {
		*done = disk->done[--disk->in_flight];
		return true;
	}
	if (io_uring_peek_cqe(&disk->ring, &cqe))
		return false;
	*done = (struct disk_done){.tag = cqe->user_data, .result = cqe->res};
	io_uring_cqe_seen(&disk->ring, cqe);
	disk->in_flight--;
	return true;
}

void disk_wait(struct disk *disk, int timeout_ms)
{
	struct pollfd polled = {.fd = disk->wake_fd, .events = POLLIN};
	uint64_t count;

	if (!disk->uring && disk->in_flight)
		return;
	if (disk->uring && io_uring_sq_ready(&disk->ring) && io_uring_submit(&disk->ring) < 0)
		timeout_ms = AGAIN_MS;
	poll(&polled, 1, timeout_ms);
	/* Nobody wrote it: then it says so. */
	if (read(disk->wake_fd, &count, sizeof(count)) < 0)
		return;
}
