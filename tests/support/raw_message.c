/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors, sent as they are. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <r3ring/proto.h>

#include "tests/support/raw_message.h"

void raw_message_make_right(void *bytes, size_t len, unsigned int fds)
{
	struct r3ring_message head;

	if (len < sizeof(head))
		return;
	memcpy(&head, bytes, sizeof(head));
	head.magic = R3RING_PROTO_MAGIC;
	head.major = R3RING_PROTO_MAJOR;
	head.len = (uint32_t)len;
	head.fds = (uint16_t)fds;
	memcpy(bytes, &head, sizeof(head));
}

ssize_t raw_message_send(int socket, const void *bytes, size_t len, const int *fds,
			 unsigned int fd_count)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(RAW_MESSAGE_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd_count) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, fd_count * sizeof(int));
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}
