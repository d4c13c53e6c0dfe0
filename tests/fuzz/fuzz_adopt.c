/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing what a daemon does with the ring of one that died: one byte that says what is
 * put right, then the image of a segment (tests/support/segment_image.h), which ends
 * anywhere. Nothing may be read or written outside, and what is gone on with must be a
 * ring that readers can read.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/segment_image.h"

#define KEEP_HEADER 1u    /* else it is a right one, so that the daemon gets deep */
#define KEEP_CHECKSUMS 2u /* else they are made right */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* It has a name only while it is looked at: a fuzzer's process just ends. */
static void adopt(const struct segment_image *image, struct segment_reading *reading)
{
	uint8_t *memory;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/r3ring-fuzz-adopt.%d", getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || ftruncate(fd, SEGMENT_IMAGE_BYTES)) {
		perror(name);
		exit(1);
	}
	memory = segment_image_map(fd);
	segment_image_put(memory, image);
	munmap(memory, SEGMENT_IMAGE_BYTES);
	close(fd);
	segment_image_adopt(name, reading);
	shm_unlink(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct segment_image right;
	static bool made;
	struct segment_reading reading = {0};
	struct segment_image image;

	if (!made)
		segment_image_make_capture(&right);
	made = true;
	if (size < 1 || size - 1 > sizeof(image))
		return 0;
	image = right;
	memcpy(&image, data + 1, size - 1);
	if (!(data[0] & KEEP_HEADER))
		image.header = right.header;
	if (!(data[0] & KEEP_CHECKSUMS))
		segment_image_seal(&image);
	adopt(&image, &reading);
	if (reading.wrong)
		abort();
	return 0;
}
