/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/unit/key_feed.h"

void feed_create_slots(struct feed *feed, const struct r3ring_assembler_options *options)
{
	feed_create(feed, options);
	feed->key_kind = R3RING_KEYS_SLOT;
	feed->tokens_per_key = 2;
	feed_schema(feed);
}

struct feed feed_create_pair(struct feed *one, const char *name)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 2};
	struct feed other;

	feed_create(one, &options);
	other = feed_channel(one, name);
	feed_schema(one);
	feed_schema(&other);
	return other;
}

void feed_expect_mixed(struct feed *from, const char *id, const char *one, const char *other)
{
	struct r3ring_assembled *got = take(from, id);
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(got);
	const bool turned = info->mixed_by[0] && strcmp(info->mixed_by[0], one);

	cr_assert_eq(info->flags, R3RING_ASSEMBLED_MIXED);
	cr_expect_str_eq(info->mixed_by[turned], one);
	cr_expect_str_eq(info->mixed_by[!turned], other);
	r3ring_assembled_free(got);
}

struct r3ring_span keyed_span(uint64_t request, uint8_t kind, uint32_t position, uint32_t row,
			      uint32_t rows, uint32_t keys)
{
	return (struct r3ring_span){.request = request,
				    .position = position,
				    .row = row,
				    .rows = rows,
				    .accepted = R3RING_UNKNOWN_U32,
				    .keys = keys,
				    .kind = kind};
}

void feed_computed(struct feed *feed, uint64_t step, uint64_t request, uint32_t position,
		   uint32_t rows, const uint64_t *keys, uint32_t key_count)
{
	const struct r3ring_span one =
		keyed_span(request, R3RING_SPAN_COMPUTED, position, 0, rows, key_count);

	feed_whole_keys(feed, step, rows, &one, 1, keys, key_count);
}

void feed_cached(struct feed *feed, uint64_t step, uint64_t request, uint32_t rows,
		 const uint64_t *keys, uint32_t key_count)
{
	const struct r3ring_span spans[] = {
		keyed_span(request, R3RING_SPAN_CACHED, 0, 0, rows, key_count),
		keyed_span(request, R3RING_SPAN_COMPUTED, rows, 0, 1, 0),
	};

	feed_whole_keys(feed, step, 1, spans, 2, keys, key_count);
}

struct r3ring_assembled *feed_finish(struct feed *feed, uint64_t request, const char *id,
				     uint32_t accepted)
{
	feed_end(feed, request, R3RING_END_FINISHED, 0, accepted);
	return take(feed, id);
}
