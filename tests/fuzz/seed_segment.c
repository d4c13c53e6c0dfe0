/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_segment into the directory given: rings that are empty,
 * begun, and lapped, with everything put right and with nothing, and of writers that lie. */
#include <stdio.h>

#include "tests/support/segment_image.h"

enum lie { NONE, TAIL, TAIL_OF_A_CLOSED, INTENT, INTENT_OF_A_HOLLOW, LIES };

/* Of all its records only the newest is there. */
static void hollow(struct segment_image *image)
{
	for (unsigned int i = 0; i < SEGMENT_IMAGE_DEPTH; i++)
		if (image->descs[i].seq != image->lines.tail_seq)
			image->descs[i] = (struct r3ring_desc){0};
}

static void tell_lie(struct segment_image *image, enum lie lie)
{
	if (lie == TAIL || lie == TAIL_OF_A_CLOSED)
		image->lines.tail_seq = 1ull << 61;
	if (lie == INTENT || lie == INTENT_OF_A_HOLLOW)
		image->lines.intent_pos = 1ull << 60;
	if (lie == INTENT_OF_A_HOLLOW)
		hollow(image);
	image->lines.closed = lie == TAIL_OF_A_CLOSED;
}

static int write_seed(const char *dir, unsigned int records, uint8_t control, enum lie lie)
{
	struct segment_image image;
	char path[512];
	FILE *file;
	int ok;

	segment_image_make(&image, records);
	tell_lie(&image, lie);
	snprintf(path, sizeof(path), "%s/records-%u.%u.%d", dir, records, control, (int)lie);
	file = fopen(path, "wb");
	ok = file && fwrite(&control, sizeof(control), 1, file) == 1 &&
	     fwrite(&image, sizeof(image), 1, file) == 1;
	if (file && fclose(file))
		ok = 0;
	if (!ok)
		perror(path);
	return ok;
}

int main(int argc, char **argv)
{
	static const unsigned int lengths[] = {0, 1, SEGMENT_IMAGE_DEPTH / 2,
					       3 * SEGMENT_IMAGE_DEPTH};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (uint8_t control = 0; control < 4 * LIES; control++)
			if (!write_seed(argv[1], lengths[i], control % 4, (enum lie)(control / 4)))
				return 1;
	return 0;
}
