/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the daemon for a channel's segment. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "channel/reader_label.h"
#include "channel/socket.h"
#include "consumer/attach.h"
#include "ring/presence.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* With a pidfd, so that the daemon learns of a death though a child has the socket;
 * without one where the kernel has none. */
static int send_hello(int fd, const struct attach_target *target)
{
	int pidfd = target->registers ? (int)syscall(SYS_pidfd_open, getpid(), 0) : -1;
	struct r3ring_hello_reader_message hello = {
		.head.type = R3RING_MSG_HELLO_READER,
		.channel = target->channel,
		.generation = target->generation,
		.lossless = target->lossless,
		.has_pidfd = pidfd >= 0,
		.limit_bytes = target->limit_bytes,
		.stall_ms = target->stall_ms,
	};
	int rc = socket_send(fd, &hello.head,
			     target->registers ? sizeof(hello) : R3RING_HELLO_READER_MINOR0, NULL,
			     0, &pidfd, pidfd >= 0 ? 1 : 0);

	if (pidfd >= 0)
		close(pidfd);
	return rc;
}

int attach_begin(struct attach_request *request, const struct attach_target *target,
		 struct r3ring_error *err)
{
	int fd = socket_connect(target->runtime_dir, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = send_hello(fd, target);
	/* A daemon that hung up at once may have left a refusal to be read. */
	if (rc && rc != -EPIPE) {
		close(fd);
		errno = -rc;
		return r3ring_error_set(err, rc, "asking the daemon for a channel: %m");
	}
	request->fd = fd;
	R3RING_TEST_POINT("reader asked");
	return 0;
}

void attach_cancel(struct attach_request *request)
{
	if (request->fd >= 0)
		close(request->fd);
	request->fd = -1;
}

void attachment_release(struct attachment *attachment)
{
	if (attachment->segment) {
		close(attachment->connection);
		if (attachment->segment_fd >= 0)
			close(attachment->segment_fd);
	}
	if (attachment->page)
		munmap(attachment->page, R3RING_READER_PAGE_BYTES);
	r3ring_segment_close(attachment->segment);
	*attachment = (struct attachment){0};
}

/* The answer, copied and checked; its descriptor stays in the inbox. */
static int check_answer(const struct socket_inbox *inbox, struct attachment *attachment,
			struct r3ring_error *err)
{
	struct r3ring_segment_message answer;

	memcpy(&answer, inbox->u.bytes, sizeof(answer));
	if (inbox->fd_count != 1 && inbox->fd_count != 2)
		return r3ring_error_set(err, -EBADMSG,
					"the daemon sent %u descriptors with a segment, not 1 or 2",
					inbox->fd_count);
	if (!memchr(answer.segment, 0, sizeof(answer.segment)))
		return r3ring_error_set(err, -EBADMSG,
					"the daemon sent a segment's name without an end");
	attachment->generation = answer.generation;
	memcpy(attachment->uuid, answer.uuid, sizeof(attachment->uuid));
	memcpy(attachment->name, answer.segment, sizeof(attachment->name));
	return 0;
}

/* The segment must be the one that the daemon speaks of. */
static int check_identity(const struct attachment *attachment, struct r3ring_error *err)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(attachment->segment);

	if (header->generation != attachment->generation ||
	    memcmp(header->uuid, attachment->uuid, sizeof(header->uuid)) != 0)
		return r3ring_error_set(
			err, -EBADMSG,
			"segment %s is generation %llu by its own header, "
			"generation %llu (or another uuid) by the daemon; restart the "
			"daemon",
			attachment->name, (unsigned long long)header->generation,
			(unsigned long long)attachment->generation);
	return 0;
}

/* Sealed and of the one size there is, so that no access to it can fail. */
static int map_page(const struct socket_inbox *inbox, const struct attach_target *target,
		    struct attachment *attachment, struct r3ring_error *err)
{
	struct stat st;
	void *base;
	int seals;

	if (inbox->fd_count < 2)
		return target->lossless
			       ? r3ring_error_set(err, -EOPNOTSUPP,
						  "this daemon has no lossless readers: use "
						  "r3ringd of this release")
			       : 0;
	seals = fcntl(inbox->fds[1], F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(inbox->fds[1], &st) ||
	    st.st_size != R3RING_READER_PAGE_BYTES)
		return r3ring_error_set(err, -EBADMSG,
					"the daemon's page for this reader is no sealed memfd of "
					"%u bytes",
					R3RING_READER_PAGE_BYTES);
	base = mmap(NULL, R3RING_READER_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    inbox->fds[1], 0);
	if (base == MAP_FAILED)
		return r3ring_error_set(err, -errno, "mapping the page of this reader: %m");
	attachment->page = base;
	reader_label_store(attachment->page, target->label);
	/* By the daemon itself: another one may go on in the segment by now. */
	if (attachment->page->known_to)
		attachment->epoch = attachment->page->known_to - 1;
	return 0;
}

bool attachment_ready(const struct attachment *attachment, const struct attach_target *target)
{
	/* Pairs with the release in the gate's admit(). */
	return !target->lossless ||
	       r3ring_load_acquire_u32(&attachment->page->state) != R3RING_READER_ADMITTING;
}

int attachment_show(const struct attachment *attachment, uint64_t epoch)
{
	int rc = 0;

	if (attachment->segment_fd >= 0)
		rc = presence_show(attachment->segment_fd, epoch);
	R3RING_TEST_POINT("reader shown");
	return rc;
}

bool attachment_abandoned(const struct attachment *attachment)
{
	struct pollfd end = {.fd = attachment->connection, .events = POLLRDHUP};

	return poll(&end, 1, 0) > 0;
}

/* The daemon opened the segment for this reader alone, as presence_show() wants it. */
static int keep_segment_fd(const struct socket_inbox *inbox, const struct attach_target *target,
			   struct attachment *attachment, struct r3ring_error *err)
{
	if (!target->lossless)
		return 0;
	attachment->segment_fd = fcntl(inbox->fds[0], F_DUPFD_CLOEXEC, 0);
	return attachment->segment_fd < 0
		       ? r3ring_error_set(err, -errno, "a descriptor of the segment: %m")
		       : 0;
}

/* Takes the request's connection over on success. */
static int map_answer(struct attach_request *request, const struct attach_target *target,
		      const struct socket_inbox *inbox, struct attachment *attachment,
		      struct r3ring_error *err)
{
	struct attachment mapped = {.segment_fd = -1};
	int rc = check_answer(inbox, &mapped, err);

	if (!rc)
		rc = r3ring_segment_open_fd(&mapped.segment, inbox->fds[0], err);
	if (rc)
		return rc;
	mapped.connection = request->fd;
	request->fd = -1;
	mapped.epoch = r3ring_segment_epoch(mapped.segment);
	rc = check_identity(&mapped, err);
	if (!rc)
		rc = map_page(inbox, target, &mapped, err);
	if (!rc)
		rc = keep_segment_fd(inbox, target, &mapped, err);
	if (rc) {
		attachment_release(&mapped);
		return rc;
	}
	*attachment = mapped;
	R3RING_TEST_POINT("reader attached");
	return 0;
}

int attach_finish(struct attach_request *request, const struct attach_target *target,
		  struct attachment *attachment, int timeout_ms, struct r3ring_error *err)
{
	struct socket_inbox inbox;
	int rc = socket_answer(request->fd, &inbox, R3RING_MSG_SEGMENT,
			       sizeof(struct r3ring_segment_message), timeout_ms, err);

	if (rc == -ETIMEDOUT)
		return rc;
	if (!rc) {
		rc = map_answer(request, target, &inbox, attachment, err);
		socket_inbox_close_fds(&inbox);
	}
	attach_cancel(request);
	return rc;
}
