/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing what the drain thread takes out of a producer's lanes: one byte that says how,
 * then the image of pages and buffer (tests/support/drain_image.h), which ends anywhere.
 * What a lane says is the producer's to spoil, but readers must be told a story that
 * holds together.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/drain_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct drain_input input;

	if (size < 1 || size - 1 > sizeof(struct drain_image))
		return 0;
	drain_input_begin(&input);
	memcpy(&input.image, data + 1, size - 1);
	if (!(data[0] & DRAIN_INPUT_KEEP_FRAMES))
		drain_image_frame(&input.image);
	drain_input_work(&input, data[0]);
	return 0;
}
