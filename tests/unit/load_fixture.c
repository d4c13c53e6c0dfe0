/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/load_fixture.h"

struct feed load_feed;
struct r3ring_load_snapshot *snapshot;

/* Two different experts; the hotter ones are the lower ones. */
static uint16_t expert(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
		       uint32_t k)
{
	uint32_t first = (uint32_t)(step * 5 + row * 3 + layer * 2) % LOAD_EXPERTS;

	(void)feed;
	first = first * first % LOAD_EXPERTS;
	return (uint16_t)(k ? (first + 1) % LOAD_EXPERTS : first);
}

void load_open(const struct r3ring_load_options *options)
{
	feed_create_load(&load_feed, options);
	load_feed.experts = LOAD_EXPERTS;
	load_feed.id = expert;
	feed_schema(&load_feed);
	cr_assert_eq(r3ring_load_snapshot_create(&snapshot), 0);
}

void load_close(void)
{
	r3ring_load_snapshot_free(snapshot);
	feed_destroy(&load_feed);
}

void expect_rows(struct expected *expected, uint64_t step, uint32_t first, uint32_t end)
{
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		for (uint32_t row = first; row < end; row++) {
			expected->rows[layer]++;
			for (uint32_t k = 0; k < FEED_TOP_K; k++)
				expected->counts[layer][expert(NULL, step, row, layer, k)]++;
		}
}

const struct r3ring_load_info *read_load(uint32_t channel)
{
	cr_assert_eq(r3ring_load_read(load_feed.load, channel, R3RING_LOAD_STEPS,
				      R3RING_LOAD_ANY_EPOCH, snapshot),
		     0);
	return r3ring_load_snapshot_info(snapshot);
}

void expect_info(const struct r3ring_load_info *info, const struct expected *expected)
{
	cr_assert_eq(info->layers, FEED_LAYERS);
	cr_assert_eq(info->experts, LOAD_EXPERTS);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		cr_assert_float_eq(info->rows[layer], expected->rows[layer], 1e-6,
				   "layer %u: %g rows, not %g", layer, info->rows[layer],
				   expected->rows[layer]);
		for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
			cr_assert_float_eq(
				info->counts[layer * LOAD_EXPERTS + e], expected->counts[layer][e],
				1e-6, "layer %u, expert %u: %g, not %g", layer, e,
				info->counts[layer * LOAD_EXPERTS + e], expected->counts[layer][e]);
	}
}

void expect_load(const struct expected *expected, uint32_t channel)
{
	expect_info(read_load(channel), expected);
}

struct r3ring_span load_span(uint64_t request, uint32_t position, uint32_t row, uint32_t rows)
{
	return (struct r3ring_span){.request = request,
				    .position = position,
				    .row = row,
				    .rows = rows,
				    .accepted = R3RING_UNKNOWN_U32};
}

struct r3ring_span load_draft(uint64_t request, uint32_t position, uint32_t row, uint32_t rows,
			      uint32_t accepted)
{
	struct r3ring_span span = load_span(request, position, row, rows);

	span.flags = R3RING_SPAN_DRAFT;
	span.accepted = accepted;
	return span;
}
