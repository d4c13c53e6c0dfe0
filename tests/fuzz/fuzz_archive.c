/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing the reader of archives, and what verifies them: a byte that says what is put
 * right, four that say where the second segment begins, and the bytes of both. Nothing may
 * be read outside of a payload, and it must end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/reader.h"
#include "archive/verify.h"
#include "tests/support/archive_builder.h"

#define KEEP_HASHES 1u /* else they are made right, so that what is behind is looked at */
#define KEEP_CHAIN 2u  /* else the second segment follows the first */
#define ONE_SEGMENT 4u
#define ITEMS_MAX 1000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct segment {
	uint8_t *bytes;
	size_t len;
};

static struct archive_builder directory;

static void chain(struct segment *second, const struct archive_block_head *last,
		  const struct segment *first)
{
	struct archive_segment_head head;

	if (second->len < sizeof(head) || first->len < sizeof(head))
		return;
	memcpy(&head, second->bytes, sizeof(head));
	memcpy(head.uuid, first->bytes + offsetof(struct archive_segment_head, uuid),
	       sizeof(head.uuid));
	head.previous_hash = last->head_hash;
	head.first_block = last->number + 1;
	memcpy(second->bytes, &head, sizeof(head));
}

static void put(const char *name, const struct segment *segment)
{
	/* A file that is there would be written through to the disk. */
	unlink(builder_path(&directory, name));
	builder_write(builder_path(&directory, name), segment->bytes, segment->len);
}

static void lay_out(uint8_t control, struct segment *first, struct segment *second)
{
	struct archive_block_head last = {0};

	if (!(control & KEEP_HASHES))
		last = builder_reseal(first->bytes, first->len);
	if (!(control & (KEEP_HASHES | KEEP_CHAIN)))
		chain(second, &last, first);
	if (!(control & KEEP_HASHES))
		builder_reseal(second->bytes, second->len);
	put("00000001.r3seg", first);
	if (control & ONE_SEGMENT)
		unlink(builder_path(&directory, "00000002.r3seg"));
	else
		put("00000002.r3seg", second);
}

/* Looks at every byte it is given. */
static void read_all(struct archive_reader *reader)
{
	static uint64_t sum;
	struct archive_item item;
	struct r3ring_error err;
	uint64_t items = 0;
	int code;

	while ((code = archive_reader_next(reader, &item, &err)) != 0) {
		const uint8_t *data = item.view.data;

		for (uint32_t i = 0; code == 1 && data && i < item.view.len; i++)
			sum += data[i];
		if (code == 1 && item.name)
			sum += strlen(item.name);
		if (++items > ITEMS_MAX)
			abort();
	}
}

static void ignore(void *ctx, const char *text)
{
	*(size_t *)ctx += strlen(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct archive_verify_hooks hooks = {.problem = ignore};
	struct archive_verified verified;
	struct archive_reader *reader;
	struct segment first, second;
	uint32_t length;
	size_t told = 0;
	uint8_t *copy;

	if (size < 5)
		return 0;
	if (!directory.dir[0])
		builder_open(&directory, 0);
	memcpy(&length, data + 1, sizeof(length));
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 5, size - 5);
	first = (struct segment){copy, length < size - 5 ? length : size - 5};
	second = (struct segment){copy + first.len, size - 5 - first.len};
	lay_out(data[0], &first, &second);
	if (!archive_reader_open(&reader, directory.dir, NULL)) {
		read_all(reader);
		if (!archive_reader_seek(reader, 2, NULL))
			read_all(reader);
		archive_reader_close(reader);
	}
	hooks.ctx = &told;
	archive_verify(directory.dir, &hooks, &verified, NULL);
	free(copy);
	return 0;
}
