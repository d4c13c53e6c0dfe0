/* SPDX-License-Identifier: Apache-2.0 */
/* A segment that many runs of a test use one after the other: making one anew would
 * be most of a short run. */
#ifndef TESTS_SUPPORT_SCRATCH_SEGMENT_H
#define TESTS_SUPPORT_SCRATCH_SEGMENT_H

#include <stdint.h>

#include <r3ring/ring.h>

/* Makes one, whose name is gone already; ends the process when it cannot. */
struct r3ring_segment *scratch_segment_make(uint32_t depth, uint64_t arena_bytes);

/* As it was when it was made; nobody may be reading or writing. */
void scratch_segment_clear(struct r3ring_segment *segment);

#endif
