/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "tests/unit/signature_fixture.h"

struct feed signature_feed;
struct r3ring_signature *signature;

static uint16_t expert(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
		       uint32_t k)
{
	(void)feed;
	return (uint16_t)((step * 7 + row * 3 + layer * 5 + k * (1 + step % 3)) %
			  SIGNATURE_EXPERTS);
}

void signature_open(const struct r3ring_signatures_options *options)
{
	feed_create_signatures(&signature_feed, options);
	signature_feed.experts = SIGNATURE_EXPERTS;
	signature_feed.id = expert;
	feed_schema(&signature_feed);
	cr_assert_eq(r3ring_signature_create(&signature), 0);
}

void signature_close(void)
{
	r3ring_signature_free(signature);
	feed_destroy(&signature_feed);
}

void signature_count(struct signature_expected *expected, enum r3ring_signature_phase phase,
		     uint64_t step, uint32_t first, uint32_t end)
{
	for (uint32_t row = first; row < end; row++) {
		expected->rows[phase]++;
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
			for (uint32_t k = 0; k < FEED_TOP_K; k++)
				expected->counts[phase][layer * SIGNATURE_EXPERTS +
							expert(NULL, step, row, layer, k)]++;
	}
}

void signature_live(uint64_t handle, const char *id, uint64_t step)
{
	feed_begin(&signature_feed, handle, id, 3, 0);
	feed_computed(&signature_feed, step, handle, 0, 3, NULL, 0);
}

const struct r3ring_signature_info *signature_get(const char *id)
{
	cr_assert_eq(r3ring_signatures_get(signature_feed.signatures, id, signature), 0, "%s", id);
	return r3ring_signature_get_info(signature);
}

void signature_expect(const char *id, const struct signature_expected *expected)
{
	const struct r3ring_signature_info *info = signature_get(id);

	cr_assert_str_eq(info->id, id);
	cr_assert_eq(info->layers, FEED_LAYERS);
	cr_assert_eq(info->experts, SIGNATURE_EXPERTS);
	for (uint32_t phase = 0; phase < R3RING_SIGNATURE_PHASES; phase++) {
		cr_assert_eq(info->rows[phase], expected->rows[phase], "phase %u: %lu rows", phase,
			     info->rows[phase]);
		for (uint32_t i = 0; i < FEED_LAYERS * SIGNATURE_EXPERTS; i++)
			cr_assert_eq(info->counts[phase][i], expected->counts[phase][i],
				     "phase %u, layer %u, expert %u: %u, not %u", phase,
				     i / SIGNATURE_EXPERTS, i % SIGNATURE_EXPERTS,
				     info->counts[phase][i], expected->counts[phase][i]);
	}
}

void signature_expect_gone(const char *id)
{
	cr_assert_eq(r3ring_signatures_get(signature_feed.signatures, id, signature), -ENOENT, "%s",
		     id);
	cr_assert_null(r3ring_signature_get_info(signature)->id);
}

struct r3ring_signatures_stats signature_stats(void)
{
	struct r3ring_signatures_stats stats;

	r3ring_signatures_get_stats(signature_feed.signatures, &stats);
	return stats;
}
