/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_lanes into the directory given: a right image, run in every way. */
#include "tests/fuzz/drain_input.h"
#include "tests/fuzz/seed_file.h"

int main(int argc, char **argv)
{
	static struct drain_image image;
	char name[32];

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	drain_image_make(&image);
	for (uint8_t control = 0; control < 2 * DRAIN_INPUT_DIED; control++) {
		const struct seed_part parts[] = {{&control, 1}, {&image, sizeof(image)}};

		snprintf(name, sizeof(name), "right.%u", control);
		seed_write(argv[1], name, parts, 2);
	}
	return 0;
}
