/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_answer into the directory given: a right answer to every kind of
 * reader, a refusal, and descriptors of every wrong kind. */
#include <errno.h>
#include <string.h>

#include <r3ring/proto.h>
#include <r3ring/reader_page.h>

#include "tests/fuzz/answer_input.h"
#include "tests/fuzz/seed_file.h"
#include "tests/support/segment_image.h"

static struct segment_image image;

static void write_answer(const char *dir, const char *name, const struct answer_input_head *given,
			 const void *message, size_t len)
{
	const struct r3ring_reader_page page = {.state = R3RING_READER_ADMITTED, .held_from = 1};
	struct answer_input_head head = *given;
	const struct seed_part parts[] = {
		{&head, sizeof(head)}, {message, len}, {&page, sizeof(page)}};

	head.bytes = (uint16_t)len;
	seed_write(dir, name, parts, 3);
}

static void write_segment(const char *dir, const char *name, const struct answer_input_head *head)
{
	struct r3ring_segment_message message = {
		.head.type = R3RING_MSG_SEGMENT,
		.generation = image.header.generation,
		.segment = "/r3ring.fuzz",
	};

	memcpy(message.uuid, image.header.uuid, sizeof(message.uuid));
	write_answer(dir, name, head, &message, sizeof(message));
}

int main(int argc, char **argv)
{
	const struct r3ring_refused_message refused = {
		.head.type = R3RING_MSG_REFUSED, .code = -ENOENT, .text = "no such channel"};
	struct answer_input_head head = {.kinds = {ANSWER_FD_SEGMENT, ANSWER_FD_PAGE}};
	char name[32];

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	segment_image_make(&image, ANSWER_INPUT_RECORDS);
	write_answer(argv[1], "refused", &head, &refused, sizeof(refused));
	for (head.from = 0; head.from < 4; head.from++) {
		snprintf(name, sizeof(name), "right.%u", head.from);
		head.fds = 2;
		write_segment(argv[1], name, &head);
		snprintf(name, sizeof(name), "lossless.%u", head.from);
		head.fds = 2 | ANSWER_INPUT_LOSSLESS;
		write_segment(argv[1], name, &head);
	}
	for (uint8_t kind = 0; kind < ANSWER_FD_KINDS; kind++) {
		head.kinds[0] = kind;
		head.kinds[1] = (uint8_t)(ANSWER_FD_KINDS - 1 - kind);
		snprintf(name, sizeof(name), "descriptors.%u", kind);
		write_segment(argv[1], name, &head);
	}
	return 0;
}
