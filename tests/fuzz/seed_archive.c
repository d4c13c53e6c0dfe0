/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_archive into the directory given: two segments, compressed and
 * not, with everything put right and with nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/seed_file.h"
#include "tests/support/archive_story.h"

static void tell(struct archive_builder *builder, int level)
{
	static struct story story;
	struct story *const all[] = {&story};

	builder_open(builder, level);
	builder_segment(builder);
	builder_ready(builder);
	story_begin(&story, builder, 0, "small/0");
	builder_block(builder, 0);
	story_request(&story, 1, "a", 4);
	story_step(&story, 1, 0, 4);
	story_keyframe(&story);
	builder_gap(builder, 0, story.seq + 1, story.seq + 3, ARCHIVE_GAP_OVERRUN);
	story.seq += 3;
	builder_block(builder, 0);
	story_step(&story, 1, 4, 1);
	story_next_segment(all, 1);
	story_lost(&story, 2, 3, R3RING_CAUSE_BUFFER_FULL);
	story_step(&story, 1, 5, 1);
	story_end(&story, 1, 6);
	story_keyframe(&story);
	story_closed(&story);
	builder_segment_end(builder, true);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (int level = 0; level < 4; level += 3) {
		struct archive_builder builder;
		struct builder_bytes first, second;
		uint32_t length;

		tell(&builder, level);
		first = builder_read(builder_path(&builder, "00000001.r3seg"));
		second = builder_read(builder_path(&builder, "00000002.r3seg"));
		length = (uint32_t)first.len;
		for (uint8_t control = 0; control < 8; control++) {
			const struct seed_part parts[] = {{&control, 1},
							  {&length, sizeof(length)},
							  {first.at, first.len},
							  {second.at, second.len}};
			char name[32];

			snprintf(name, sizeof(name), "level-%d.%u", level, control);
			seed_write(argv[1], name, parts, 4);
		}
		free(first.at);
		free(second.at);
		builder_close(&builder);
	}
	return 0;
}
