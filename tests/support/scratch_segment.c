/* SPDX-License-Identifier: Apache-2.0 */
/* A segment that is used many times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring/internal.h"
#include "tests/support/scratch_segment.h"

struct r3ring_segment *scratch_segment_make(uint32_t depth, uint64_t arena_bytes)
{
	struct r3ring_segment_options options = {
		.size = sizeof(options),
		.arena_bytes = arena_bytes,
		.depth = depth,
		.generation = 1,
		.label = "scratch/0",
	};
	struct r3ring_segment *segment;
	struct r3ring_error err;
	char name[64];

	snprintf(name, sizeof(name), "/r3ring-scratch.%d", getpid());
	options.name = name;
	if (r3ring_segment_create(&segment, &options, &err)) {
		fprintf(stderr, "scratch segment: %s\n", err.text);
		exit(1);
	}
	r3ring_segment_unlink(segment);
	return segment;
}

void scratch_segment_clear(struct r3ring_segment *segment)
{
	memset(segment->lines, 0, sizeof(*segment->lines));
	memset(segment->descs, 0, segment->depth * sizeof(struct r3ring_desc));
	segment->lines->tail_seq = segment->header.first_seq - 1;
}
