/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_session takes: messages, each with this head and then `bytes` bytes. */
#ifndef TESTS_FUZZ_SESSION_INPUT_H
#define TESTS_FUZZ_SESSION_INPUT_H

#include <stdint.h>

#define SESSION_INPUT_CONNECTIONS 4u
#define SESSION_INPUT_FDS 4u

/* Bits of `fds`, beside how many descriptors go along (more than kinds: the last again). */
#define SESSION_INPUT_FD_COUNT 7u
#define SESSION_INPUT_KEEP_HEAD 8u /* else magic, version, length and count are made right */
#define SESSION_INPUT_HANG_UP 16u  /* behind it */
#define SESSION_INPUT_AT_ONCE 32u  /* the daemon finds the next message together with it */

enum session_input_fd {
	SESSION_FD_PAGES, /* as they should be, but for what is in them */
	SESSION_FD_BUFFER,
	SESSION_FD_PIDFD,
	SESSION_FD_DEAD_PIDFD,
	SESSION_FD_PIPE,
	SESSION_FD_DIRECTORY,
	SESSION_FD_UNSEALED,
	SESSION_FD_SMALL, /* a sealed memfd of one byte */
	SESSION_FD_SOCKET,
	SESSION_FD_DEVICE, /* /dev/zero */
	SESSION_FD_KINDS,
};

struct session_input_message {
	uint8_t fds;
	uint8_t kinds[SESSION_INPUT_FDS];
	uint8_t connection;
	uint16_t bytes;
};

/* Of the channels that the right hellos open. */
#define SESSION_INPUT_LAYERS 2u
#define SESSION_INPUT_LANE_BYTES 65536u
#define SESSION_INPUT_BUFFER_BYTES 65536u

#endif
