/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/hash_feed.h"

const uint64_t hash_name = HASH;

void hash_create(struct feed *feed, const struct r3ring_assembler_options *options)
{
	feed_create(feed, options);
	feed->key_kind = R3RING_KEYS_BLOCK_HASH;
	feed->tokens_per_key = 2;
	feed_schema(feed);
}

void hash_run(struct feed *feed, uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span one = keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_begin(feed, request, id, 2, 0);
	feed_whole_keys(feed, step, 2, &one, 1, &hash_name, 1);
}

void hash_load(struct feed *feed, uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span one = keyed_span(request, R3RING_SPAN_EXTERNAL, 0, 0, 2, 1);

	feed_begin(feed, request, id, 3, 0);
	feed_whole_keys(feed, step, 0, &one, 1, &hash_name, 1);
}

void hash_find(struct feed *feed, uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span spans[] = {
		keyed_span(request, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(request, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
	};

	feed_begin(feed, request, id, 3, 0);
	feed_whole_keys(feed, step, 1, spans, 2, &hash_name, 1);
}

void hash_find_and_run_other(struct feed *feed, uint64_t step, uint64_t finder, const char *id,
			     uint64_t runner, uint64_t block)
{
	const uint64_t keys[] = {block, block};
	const struct r3ring_span spans[] = {
		keyed_span(finder, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(finder, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
		keyed_span(runner, R3RING_SPAN_COMPUTED, 0, 1, 2, 1),
	};

	feed_begin(feed, finder, id, 3, 0);
	feed_begin(feed, runner, runner % 2 ? "odd runner" : "even runner", 2, 0);
	feed_whole_keys(feed, step, 3, spans, 3, keys, 2);
}

void hash_find_and_run(struct feed *feed, uint64_t step, uint64_t finder, const char *id,
		       uint64_t runner)
{
	hash_find_and_run_other(feed, step, finder, id, runner, HASH);
}

struct r3ring_span hash_draft(struct feed *feed, uint64_t step, uint64_t request)
{
	struct r3ring_span one = keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);

	one.flags = R3RING_SPAN_DRAFT;
	feed_begin(feed, request, "drafter", 1, 0);
	feed_whole(feed, step, 2, &one, 1);
	return one;
}

void hash_accept(struct feed *feed, uint64_t step, struct r3ring_span drafts)
{
	drafts.accepted = 2;
	drafts.keys = 1;
	feed_spans_as(feed, R3RING_SPANS_REPLACE, step, &drafts, 1, &hash_name, 1);
}

struct r3ring_assembled *hash_finish(struct feed *feed, uint64_t request, const char *id)
{
	feed_end(feed, request, R3RING_END_FINISHED, 0, 3);
	return take(feed, id);
}

void assert_found(struct feed *feed, uint64_t request, const char *id, uint64_t step, uint32_t row)
{
	struct r3ring_assembled *got = hash_finish(feed, request, id);

	assert_row(got, 0, step, row);
	assert_row(got, 1, step, row + 1);
	r3ring_assembled_free(got);
}

void assert_cause(struct feed *feed, uint64_t request, const char *id, uint8_t cause)
{
	struct r3ring_assembled *got = hash_finish(feed, request, id);

	assert_missing(got, 0, cause);
	assert_missing(got, 1, cause);
	r3ring_assembled_free(got);
}

void assert_unknown(struct feed *feed, uint64_t request, const char *id)
{
	assert_cause(feed, request, id, R3RING_MISSING_UNKNOWN_KEY);
}

void assert_conflict(struct feed *feed, uint64_t request, const char *id, uint64_t step,
		     uint64_t other)
{
	struct r3ring_assembled *got = hash_finish(feed, request, id);
	const struct r3ring_conflict *told = r3ring_assembled_get_info(got)->conflict;

	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	cr_assert_eq(told->step[0] + told->step[1], step + other);
	cr_assert(told->step[0] == step || told->step[1] == step);
	r3ring_assembled_free(got);
}
