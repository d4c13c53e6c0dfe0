/* SPDX-License-Identifier: Apache-2.0 */
/* What readers must find of a drain image in the ring that it was worked off into. */
#ifndef TESTS_SUPPORT_DRAIN_IMAGE_RING_H
#define TESTS_SUPPORT_DRAIN_IMAGE_RING_H

#include <r3ring/ring.h>

#include "tests/support/drain_image.h"

/*
 * Reads the ring to its end. Whatever the producer said: every record decodes; steps are
 * announced in the order of their numbers, each once, and each has one end before the
 * next begins; layers and rows belong to the step at work, and no part comes twice; the
 * last record is CLOSED.
 */
void drain_image_ring_read(const struct r3ring_segment *segment, struct drain_image_result *result);

#endif
