/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing the reader of a ring: one byte that says what is put right, then the
 * image of a segment (tests/support/segment_image.h), which ends anywhere. Nothing
 * may be read outside, accounts must add up, reading must end and tell what it did
 * not give, whatever a segment says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/segment_image.h"

#define KEEP_HEADER 1u    /* else it is a right one, so that readers get deep */
#define KEEP_CHECKSUMS 2u /* else they are made right */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct segment_image right;
	static uint8_t *memory;
	static int fd;
	struct segment_reading reading = {0};
	struct segment_image image;

	if (!memory) {
		segment_image_make(&right, 3 * SEGMENT_IMAGE_DEPTH);
		fd = segment_image_fd();
		memory = segment_image_map(fd);
	}
	if (size < 1 || size - 1 > sizeof(image))
		return 0;
	image = right;
	memcpy(&image, data + 1, size - 1);
	if (!(data[0] & KEEP_HEADER))
		image.header = right.header;
	if (!(data[0] & KEEP_CHECKSUMS))
		segment_image_seal(&image);
	segment_image_put(memory, &image);
	segment_image_read(fd, &reading);
	if (reading.wrong || reading.endless || reading.untold)
		abort();
	return 0;
}
