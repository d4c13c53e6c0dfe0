/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two channels of an instance run a request of one text id each: their signatures against counts
 * that the tests make themselves.
 */
#include <criterion/criterion.h>

#include <r3ring/predict.h>

#include "tests/unit/record_feed.h"

#define EXPERTS 16u
#define CELLS (FEED_LAYERS * EXPERTS)

static struct feed one, other;
static struct r3ring_signature *signature;

static void open_both(void)
{
	feed_create_signatures(&one, NULL);
	other = feed_signatures_channel(&one, "test/1");
	one.experts = other.experts = EXPERTS;
	cr_assert_eq(r3ring_signature_create(&signature), 0);
}

static void close_both(void)
{
	r3ring_signature_free(signature);
	feed_destroy(&one);
}

TestSuite(signature_twins, .init = open_both, .fini = close_both);

/* Neither has any coordinates, as of engines that were given ranks only. */
static void begin_both(void)
{
	feed_schema(&one);
	feed_schema(&other);
	feed_begin(&one, 1, "a", 3, 0);
	feed_begin(&other, 1, "a", 3, 0);
}

static void run(struct feed *on, uint64_t step, uint32_t position, uint32_t rows)
{
	const struct r3ring_span span = {.request = 1,
					 .position = position,
					 .rows = rows,
					 .accepted = R3RING_UNKNOWN_U32,
					 .kind = R3RING_SPAN_COMPUTED};

	feed_whole(on, step, rows, &span, 1);
}

static void end(struct feed *on, uint32_t kept)
{
	feed_end(on, 1, R3RING_END_FINISHED, 0, kept);
}

/* The visits of the first @rows rows of a step. */
static void add(uint32_t counts[CELLS], uint64_t step, uint32_t rows)
{
	for (uint32_t row = 0; row < rows; row++)
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
			for (uint32_t k = 0; k < FEED_TOP_K; k++)
				counts[layer * EXPERTS +
				       feed_id(0, step, row, layer, k) % EXPERTS]++;
}

/* What "a" did is the three rows of that step, its prompt, and then a token in the next one. */
static void expect(uint64_t step, uint32_t decoded, uint32_t same_id)
{
	const struct r3ring_signature_info *info = r3ring_signature_get_info(signature);
	uint32_t counts[R3RING_SIGNATURE_PHASES][CELLS] = {0};

	cr_assert_eq(r3ring_signatures_get(one.signatures, "a", signature), 0);
	add(counts[R3RING_SIGNATURE_PREFILL], step, 3);
	add(counts[R3RING_SIGNATURE_DECODE], step + 1, decoded);
	cr_expect_eq(info->rows[R3RING_SIGNATURE_PREFILL], 3);
	cr_expect_eq(info->rows[R3RING_SIGNATURE_DECODE], decoded);
	cr_expect_eq(info->rows_missing, 0);
	cr_expect_eq(info->same_id, same_id, "%u others", info->same_id);
	for (uint32_t phase = 0; phase < R3RING_SIGNATURE_PHASES; phase++)
		for (uint32_t i = 0; i < CELLS; i++)
			cr_expect_eq(info->counts[phase][i], counts[phase][i],
				     "phase %u, cell %u: %u, not %u", phase, i,
				     info->counts[phase][i], counts[phase][i]);
}

Test(signature_twins, the_newest_of_two_that_live_is_told_and_no_sum_of_them)
{
	begin_both();
	run(&other, 20, 0, 3);
	expect(20, 0, 1);
	run(&one, 10, 0, 3);
	run(&one, 11, 3, 1);
	expect(20, 0, 1);
	run(&other, 21, 3, 1);
	expect(20, 1, 1);
}

Test(signature_twins, one_that_lives_goes_before_one_that_began_later_and_has_ended)
{
	begin_both();
	run(&one, 10, 0, 3);
	run(&other, 20, 0, 3);
	end(&other, 4);
	expect(10, 0, 1);
	run(&one, 11, 3, 1);
	expect(10, 1, 1);
	end(&one, 5);
	expect(20, 0, 1);
}

Test(signature_twins, one_that_was_not_run_yet_counts_as_another)
{
	feed_schema(&one);
	feed_schema(&other);
	feed_begin(&one, 1, "a", 3, 0);
	run(&one, 10, 0, 3);
	expect(10, 0, 0);
	feed_begin(&other, 1, "a", 3, 0);
	cr_assert_eq(r3ring_signatures_get(one.signatures, "a", signature), 0);
	cr_expect_eq(r3ring_signature_get_info(signature)->rows[R3RING_SIGNATURE_PREFILL], 0);
	cr_expect_eq(r3ring_signature_get_info(signature)->same_id, 1);
}

Test(signature_twins, tensor_parallel_ranks_share_one)
{
	other.rank.tp.index = 1;
	one.rank.tp.size = other.rank.tp.size = 2;
	begin_both();
	run(&one, 10, 0, 3);
	expect(10, 0, 0);
}

Test(signature_twins, data_parallel_ranks_have_one_each)
{
	other.rank.dp.index = 1;
	one.rank.dp.size = other.rank.dp.size = 2;
	begin_both();
	run(&one, 10, 0, 3);
	run(&other, 20, 0, 3);
	expect(20, 0, 1);
}

/* ---- stages of two engines -------------------------------------------------------- */

static void feed_stage(struct feed *stage, uint16_t index)
{
	stage->rank.pp.index = index;
	stage->rank.pp.size = 2;
	stage->first_layer = index * (int32_t)FEED_LAYERS;
	feed_schema(stage);
	feed_begin(stage, 1, "a", 3, 0);
}

static uint32_t flags_of_a(void)
{
	cr_assert_eq(r3ring_signatures_get(one.signatures, "a", signature), 0);
	return r3ring_signature_get_info(signature)->flags;
}

Test(signature_twins, stages_of_one_engine_are_not_mixed)
{
	feed_stage(&one, 0);
	feed_stage(&other, 1);
	run(&one, 10, 0, 3);
	run(&other, 10, 0, 3);
	cr_expect_eq(flags_of_a(), 0);
	end(&one, 3);
	end(&other, 3);
	cr_expect_eq(flags_of_a(), R3RING_SIGNATURE_ENDED);
}

Test(signature_twins, stages_of_two_engines_that_say_to_be_the_same_ranks_are_told_to_be_mixed)
{
	struct feed twin = feed_signatures_channel(&one, "test/2");
	struct feed its_other = feed_signatures_channel(&one, "test/3");
	struct r3ring_history *history;
	struct r3ring_history_stats stats;

	cr_assert_eq(r3ring_history_create(&history, NULL, NULL), 0);
	cr_assert_eq(r3ring_signatures_keep(one.signatures, history), 0);
	twin.experts = its_other.experts = EXPERTS;
	feed_stage(&one, 0);
	feed_stage(&other, 1);
	run(&one, 10, 0, 3);
	cr_expect_eq(flags_of_a(), 0);
	feed_stage(&twin, 0);
	feed_stage(&its_other, 1);
	run(&twin, 30, 0, 3);
	run(&its_other, 30, 0, 3);
	cr_expect_eq(flags_of_a(), R3RING_SIGNATURE_MIXED);
	end(&twin, 3);
	end(&its_other, 3);
	cr_expect_eq(flags_of_a(), 0, "of the first no row came since");
	run(&other, 10, 0, 3);
	cr_expect_eq(flags_of_a(), R3RING_SIGNATURE_MIXED);
	end(&one, 3);
	end(&other, 3);
	cr_expect_eq(flags_of_a(), R3RING_SIGNATURE_MIXED | R3RING_SIGNATURE_ENDED);
	r3ring_history_get_stats(history, &stats);
	cr_expect_eq(stats.requests, 0, "%u", stats.requests);
	r3ring_history_destroy(history);
}

Test(signature_twins, each_is_kept_when_it_ends)
{
	struct r3ring_history *history;
	struct r3ring_history_stats stats;

	cr_assert_eq(r3ring_history_create(&history, NULL, NULL), 0);
	cr_assert_eq(r3ring_signatures_keep(one.signatures, history), 0);
	begin_both();
	run(&one, 10, 0, 3);
	run(&other, 20, 0, 3);
	end(&one, 4);
	end(&other, 4);
	r3ring_history_get_stats(history, &stats);
	cr_expect_eq(stats.added, 2);
	close_both();
	r3ring_history_destroy(history);
	signature = NULL;
	one = (struct feed){0};
}
