/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing what the drain thread finds in a producer's pages and buffer besides the
 * lanes: one byte that says how, then bells, buffer and the words of both sides (where
 * another daemon stopped, what was begun), which end anywhere. The lanes are right ones.
 */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/drain_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies what is there of a part; returns how much of the input that took. */
static size_t take(void *part, size_t bytes, const uint8_t *data, size_t size)
{
	size_t taken = bytes < size ? bytes : size;

	memcpy(part, data, taken);
	return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct drain_input input;
	size_t at = 1;

	if (size < 1)
		return 0;
	drain_input_begin(&input);
	at += take(input.image.bells, sizeof(input.image.bells), data + at, size - at);
	at += take(&input.image.words, sizeof(input.image.words), data + at, size - at);
	take(input.image.buffer, sizeof(input.image.buffer), data + at, size - at);
	if (!(data[0] & DRAIN_INPUT_KEEP_FRAMES))
		drain_image_frame(&input.image);
	drain_input_work(&input, data[0]);
	return 0;
}
