/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_answer takes: this head, a message of `bytes` bytes, then what the daemon
 * stores in the reader's page. */
#ifndef TESTS_FUZZ_ANSWER_INPUT_H
#define TESTS_FUZZ_ANSWER_INPUT_H

#include <stdint.h>

#define ANSWER_INPUT_FDS 4u

/* Bits of `fds`, beside how many descriptors go along. */
#define ANSWER_INPUT_FD_COUNT 7u
#define ANSWER_INPUT_KEEP_HEAD 8u /* else magic, version, length and count are made right */
#define ANSWER_INPUT_LOSSLESS 16u /* what the reader had asked for */

enum answer_input_fd {
	ANSWER_FD_SEGMENT, /* of segment_image.h */
	ANSWER_FD_PAGE,
	ANSWER_FD_UNSEALED,
	ANSWER_FD_SMALL,
	ANSWER_FD_PIPE,
	ANSWER_FD_DIRECTORY,
	ANSWER_FD_KINDS,
};

struct answer_input_head {
	uint8_t fds;
	uint8_t kinds[ANSWER_INPUT_FDS];
	uint8_t from; /* enum r3ring_cursor_start */
	uint16_t bytes;
};

/* Whose answer is a right one: of the segment that segment_image_make() makes. */
#define ANSWER_INPUT_RECORDS 20u

#endif
