/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers of the drain thread share: how a byte says to run an image. */
#ifndef TESTS_FUZZ_DRAIN_INPUT_H
#define TESTS_FUZZ_DRAIN_INPUT_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/drain_image.h"

#define DRAIN_INPUT_KEEP_FRAMES 1u /* else heads of entries and lanes are made right */
#define DRAIN_INPUT_WRAPS 2u
#define DRAIN_INPUT_RESUMED 4u
#define DRAIN_INPUT_DROP 8u
#define DRAIN_INPUT_DIED 16u

struct drain_input {
	bool opened;
	struct drain_image_rig rig;
	struct drain_image right, image;
};

/* The image is a right one, to be spoilt. */
static inline void drain_input_begin(struct drain_input *input)
{
	if (!input->opened) {
		drain_image_open(&input->rig);
		drain_image_make(&input->right);
		input->opened = true;
	}
	input->image = input->right;
}

static inline void drain_input_work(struct drain_input *input, uint8_t control)
{
	const struct drain_image_run run = {
		.wraps = control & DRAIN_INPUT_WRAPS,
		.resumed = control & DRAIN_INPUT_RESUMED,
		.drop = control & DRAIN_INPUT_DROP,
		.producer = control & DRAIN_INPUT_DIED ? DRAIN_PRODUCER_DIED
						       : DRAIN_PRODUCER_CLOSED,
	};
	struct drain_image_result result;

	drain_image_work(&input->rig, &input->image, &run, NULL, NULL, &result);
	if (result.wrong) {
		printf("%s\n", result.wrong);
		fflush(stdout);
		abort();
	}
}

#endif
