/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_adopt into the directory given: rings that are begun, lapped, and
 * of a daemon's records, with everything put right and with nothing. */
#include <stdio.h>

#include "tests/fuzz/seed_file.h"
#include "tests/support/segment_image.h"

static void write_seeds(const char *dir, const char *what, const struct segment_image *image)
{
	for (uint8_t control = 0; control < 4; control++) {
		const struct seed_part parts[] = {{&control, sizeof(control)},
						  {image, sizeof(*image)}};
		char name[64];

		snprintf(name, sizeof(name), "%s.%u", what, control);
		seed_write(dir, name, parts, 2);
	}
}

int main(int argc, char **argv)
{
	struct segment_image image;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	segment_image_make(&image, SEGMENT_IMAGE_DEPTH / 2);
	write_seeds(argv[1], "begun", &image);
	segment_image_make(&image, 3 * SEGMENT_IMAGE_DEPTH);
	write_seeds(argv[1], "lapped", &image);
	segment_image_make_capture(&image);
	write_seeds(argv[1], "capture", &image);
	return 0;
}
