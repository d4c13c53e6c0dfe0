/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_segment into the directory given: rings that are empty,
 * begun, and lapped, with everything put right and with nothing. */
#include <stdio.h>

#include "tests/support/segment_image.h"

static int write_seed(const char *dir, unsigned int records, uint8_t control)
{
	struct segment_image image;
	char path[512];
	FILE *file;
	int ok;

	segment_image_make(&image, records);
	snprintf(path, sizeof(path), "%s/records-%u.%u", dir, records, control);
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
		for (uint8_t control = 0; control < 4; control++)
			if (!write_seed(argv[1], lengths[i], control))
				return 1;
	return 0;
}
