/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/archive_skip.h"

#include <stdlib.h>
#include <string.h>

struct skip_trial skip;

static void find_blocks(void)
{
	struct archive_block_head head;

	skip.count = 0;
	for (size_t at = HEAD; at < skip.whole.len; at += skip.places[skip.count++].len) {
		memcpy(&head, skip.whole.at + at, sizeof(head));
		cr_assert_lt(skip.count, sizeof(skip.places) / sizeof(*skip.places));
		skip.places[skip.count].at = at;
		skip.places[skip.count].len = HEAD + (head.stored + 63u) / 64 * 64;
	}
}

void skip_read_whole(void)
{
	skip.whole = builder_read(builder_path(&skip.builder, "00000001.r3seg"));
	find_blocks();
}

void skip_finish(void)
{
	free(skip.whole.at);
	builder_close(&skip.builder);
}

struct archive_tally skip_with_changed(unsigned int block, size_t byte)
{
	skip.whole.at[skip.places[block].at + byte] ^= 1;
	builder_write(builder_path(&skip.builder, "00000001.r3seg"), skip.whole.at, skip.whole.len);
	return archive_tally(skip.builder.dir);
}

void skip_expect_text(const struct archive_tally *tally, const char *what)
{
	cr_expect(strstr(tally->text, what), "%s: %s", what, tally->text);
}

void skip_ignore(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}
