/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors as no library of ours would send them. */
#ifndef TESTS_SUPPORT_RAW_MESSAGE_H
#define TESTS_SUPPORT_RAW_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

#define RAW_MESSAGE_FDS_MAX 16

/* Makes a message's head right, whatever it was: magic, version, and what it says of its
 * length and its @fds descriptors. One that is too short for a head stays as it is. */
void raw_message_make_right(void *bytes, size_t len, unsigned int fds);

/* Sends @bytes with @fd_count descriptors at once, or not at all; returns what sendmsg()
 * does. */
ssize_t raw_message_send(int socket, const void *bytes, size_t len, const int *fds,
			 unsigned int fd_count);

#endif
