/* SPDX-License-Identifier: Apache-2.0 */
/* Block hashes as keys: of two blocks of one hash nobody can tell which the cache finds. */
#include <stdio.h>

#include "tests/unit/key_feed.h"

#define HASH UINT64_C(100)

static struct feed channel;
static const uint64_t hash = HASH;

static void open_with(const struct r3ring_assembler_options *options)
{
	feed_create(&channel, options);
	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.tokens_per_key = 2;
	feed_schema(&channel);
}

static void open_channel(void)
{
	open_with(NULL);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_hashes, .init = open_channel, .fini = close_channel);

/* The block of HASH, in a step of its own. */
static void computed(uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span one = keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_begin(&channel, request, id, 2, 0);
	feed_whole_keys(&channel, step, 2, &one, 1, &hash, 1);
}

static void loaded(uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span one = keyed_span(request, R3RING_SPAN_EXTERNAL, 0, 0, 2, 1);

	feed_begin(&channel, request, id, 3, 0);
	feed_whole_keys(&channel, step, 0, &one, 1, &hash, 1);
}

/* The block is found, then a row is run. */
static void cached(uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span spans[] = {
		keyed_span(request, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(request, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
	};

	feed_begin(&channel, request, id, 3, 0);
	feed_whole_keys(&channel, step, 1, spans, 2, &hash, 1);
}

/* One request finds the block, and another runs it, in this order. */
static void found_and_run_other(uint64_t step, uint64_t finder, const char *id, uint64_t runner,
				uint64_t block)
{
	const uint64_t keys[] = {block, block};
	const struct r3ring_span spans[] = {
		keyed_span(finder, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(finder, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
		keyed_span(runner, R3RING_SPAN_COMPUTED, 0, 1, 2, 1),
	};

	feed_begin(&channel, finder, id, 3, 0);
	feed_begin(&channel, runner, runner % 2 ? "odd runner" : "even runner", 2, 0);
	feed_whole_keys(&channel, step, 3, spans, 3, keys, 2);
}

static void found_and_run(uint64_t step, uint64_t finder, const char *id, uint64_t runner)
{
	found_and_run_other(step, finder, id, runner, HASH);
}

/* Its draft rows fill the block; the host knows when it knows how many were accepted. */
static struct r3ring_span drafted(uint64_t step, uint64_t request)
{
	struct r3ring_span one = keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);

	one.flags = R3RING_SPAN_DRAFT;
	feed_begin(&channel, request, "drafter", 1, 0);
	feed_whole(&channel, step, 2, &one, 1);
	return one;
}

static void accepted(uint64_t step, struct r3ring_span drafts)
{
	drafts.accepted = 2;
	drafts.keys = 1;
	feed_spans_as(&channel, R3RING_SPANS_REPLACE, step, &drafts, 1, &hash, 1);
}

static struct r3ring_assembled *finish(uint64_t request, const char *id)
{
	feed_end(&channel, request, R3RING_END_FINISHED, 0, 3);
	return take(&channel, id);
}

static void assert_found(uint64_t request, const char *id, uint64_t step, uint32_t row)
{
	struct r3ring_assembled *got = finish(request, id);

	assert_row(got, 0, step, row);
	assert_row(got, 1, step, row + 1);
	r3ring_assembled_free(got);
}

static void assert_cause(uint64_t request, const char *id, uint8_t cause)
{
	struct r3ring_assembled *got = finish(request, id);

	assert_missing(got, 0, cause);
	assert_missing(got, 1, cause);
	r3ring_assembled_free(got);
}

static void assert_unknown(uint64_t request, const char *id)
{
	assert_cause(request, id, R3RING_MISSING_UNKNOWN_KEY);
}

/* In all cells of the block, between these steps. */
static void assert_conflict(uint64_t request, const char *id, uint64_t step, uint64_t other)
{
	struct r3ring_assembled *got = finish(request, id);
	const struct r3ring_conflict *told = r3ring_assembled_get_info(got)->conflict;

	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	cr_assert_eq(told->step[0] + told->step[1], step + other);
	cr_assert(told->step[0] == step || told->step[1] == step);
	r3ring_assembled_free(got);
}

static uint16_t as_in_step_1(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			     uint32_t k)
{
	(void)step;
	return feed_id(feed->salt, 1, row, layer, k);
}

/* ---- loaded, and run ------------------------------------------------------ */

Test(assembler_hashes, what_the_same_step_runs_is_found_where_nothing_was_loaded)
{
	found_and_run(1, 1, "a", 2);
	assert_found(1, "a", 1, 1);
}

Test(assembler_hashes, failure_11_a_step_may_find_what_was_loaded_and_not_what_it_runs_itself)
{
	loaded(1, 1, "a");
	found_and_run(2, 2, "b", 3);
	cached(3, 4, "d");
	assert_unknown(2, "b");
	assert_found(4, "d", 2, 1);
}

Test(assembler_hashes, failure_11_what_a_step_loads_and_runs_it_may_find_either_of)
{
	const uint64_t keys[] = {HASH, HASH, HASH};
	const struct r3ring_span spans[] = {
		keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 1),
		keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 2, 1),
		keyed_span(3, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(3, R3RING_SPAN_COMPUTED, 2, 2, 1, 0),
	};

	feed_begin(&channel, 1, "a", 3, 0);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_whole_keys(&channel, 1, 3, spans, 4, keys, 3);
	cached(2, 4, "d");
	assert_unknown(3, "c");
	assert_found(4, "d", 1, 0);
}

Test(assembler_hashes, failure_11_a_load_is_remembered_when_its_hash_is_forgotten)
{
	struct r3ring_assembler_options options = {.size = sizeof(options), .max_keys = 1};
	const struct r3ring_span other = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const uint64_t others = HASH + 1;

	close_channel();
	open_with(&options);
	loaded(1, 1, "a");
	feed_begin(&channel, 9, "other", 2, 0);
	feed_whole_keys(&channel, 2, 2, &other, 1, &others, 1);
	found_and_run(3, 2, "b", 3);
	cached(4, 4, "d");
	assert_unknown(2, "b");
	assert_found(4, "d", 3, 1);
}

Test(assembler_hashes, failure_11_a_load_is_remembered_when_who_ran_its_hash_is_not_known)
{
	const struct r3ring_span nobody = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	loaded(1, 1, "a");
	feed_whole_keys(&channel, 2, 2, &nobody, 1, &hash, 1);
	found_and_run(3, 2, "b", 3);
	found_and_run_other(4, 4, "d", 6, HASH + 1);
	assert_unknown(2, "b");
	assert_found(4, "d", 4, 1);
}

/* ---- told late ------------------------------------------------------------ */

Test(assembler_hashes, what_the_host_learns_later_is_found_from_then_on)
{
	const struct r3ring_span drafts = drafted(1, 1);

	cached(2, 2, "b");
	accepted(1, drafts);
	cached(3, 3, "c");
	assert_unknown(2, "b");
	assert_found(3, "c", 1, 0);
}

Test(assembler_hashes, what_was_run_before_may_be_found_until_then)
{
	struct r3ring_span drafts;

	computed(1, 1, "a");
	drafts = drafted(2, 2);
	cached(3, 3, "c");
	accepted(2, drafts);
	assert_conflict(3, "c", 1, 2);
}

Test(assembler_hashes, failure_11_what_was_loaded_is_found_until_then)
{
	struct r3ring_span drafts;

	loaded(1, 1, "a");
	drafts = drafted(2, 2);
	cached(3, 3, "c");
	accepted(2, drafts);
	cached(4, 4, "d");
	assert_unknown(3, "c");
	assert_found(4, "d", 2, 0);
}

Test(assembler_hashes, what_another_runs_meanwhile_is_found_from_the_next_step_on)
{
	const struct r3ring_span drafts = drafted(1, 1);

	found_and_run(2, 2, "b", 3);
	cached(3, 4, "d");
	accepted(1, drafts);
	assert_unknown(2, "b");
	assert_conflict(4, "d", 1, 2);
}

/* ---- run twice ------------------------------------------------------------ */

Test(assembler_hashes, two_passes_that_differ_under_one_hash_are_a_conflict_and_both_named)
{
	computed(1, 1, "a");
	computed(2, 2, "b");
	cached(3, 3, "c");
	assert_conflict(3, "c", 1, 2);
}

Test(assembler_hashes, of_three_passes_none_is_forgotten)
{
	computed(1, 1, "a");
	channel.id = as_in_step_1;
	computed(2, 2, "b");
	cached(3, 3, "c");
	channel.id = NULL;
	computed(4, 4, "d");
	channel.id = as_in_step_1;
	computed(5, 5, "e");
	cached(6, 6, "f");
	assert_found(3, "c", 1, 0);
	assert_conflict(6, "f", 4, 5);
}

Test(assembler_hashes, a_pass_that_was_lost_does_not_hide_one_that_differs)
{
	const struct r3ring_span lost = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	computed(1, 1, "a");
	feed_begin(&channel, 2, "b", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 2, 2, &lost, 1, &hash, 1);
	channel.flags = 0;
	feed_lost(&channel, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	cached(3, 3, "c");
	computed(4, 4, "d");
	cached(5, 5, "e");
	assert_conflict(5, "e", 1, 4);
	assert_cause(3, "c", R3RING_CAUSE_BUFFER_FULL);
}

Test(assembler_hashes, of_more_passes_than_are_kept_nothing_is_known)
{
	for (uint64_t i = 1; i <= 80; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%u", (unsigned int)i);
		computed(i, i, id);
	}
	cached(81, 81, "z");
	assert_unknown(81, "z");
}

/* ---- run under other weights, or lost, in part ----------------------------- */

/* The first token of the block ran under the weights before those of the step that fills it. */
static void filled_in_flight(uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span first = keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 1, 0);
	const struct r3ring_span rest = keyed_span(request, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, request, id, 2, 0);
	channel.weight_version = 1;
	feed_whole(&channel, step, 1, &first, 1);
	channel.weight_version = 2;
	feed_whole_keys(&channel, step + 1, 1, &rest, 1, &hash, 1);
}

/* Ends it: of which of its tokens the ids are known, and not. */
static void assert_causes(uint64_t request, const char *id, uint8_t first, uint8_t second)
{
	struct r3ring_assembled *got = finish(request, id);

	assert_missing(got, 0, first);
	if (second)
		assert_missing(got, 1, second);
	else
		assert_row(got, 1, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_hashes, a_block_that_new_weights_filled_has_rows_of_both_and_says_so)
{
	struct r3ring_assembled *got;
	uint64_t weights[2] = {0};
	const struct r3ring_assembled_rows rows = {.weight_version = weights};

	filled_in_flight(1, 1, "a");
	cached(3, 2, "b");
	got = finish(2, "b");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	cr_assert_eq(r3ring_assembled_read(got, 0, 2, 0, 1, &rows), 0);
	cr_assert_eq(weights[0], 1);
	cr_assert_eq(weights[1], 2);
	r3ring_assembled_free(got);
}

Test(assembler_hashes, a_block_that_new_weights_filled_may_be_found_after_another_was_run_whole)
{
	filled_in_flight(1, 1, "a");
	computed(3, 2, "b");
	cached(4, 3, "c");
	assert_causes(3, "c", R3RING_MISSING_UNKNOWN_KEY, R3RING_CAUSE_CONFLICT);
}

Test(assembler_hashes, a_block_that_was_run_whole_may_be_found_after_new_weights_filled_another)
{
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 0);
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	channel.weight_version = 1;
	feed_whole(&channel, 1, 1, &first, 1);
	channel.weight_version = 2;
	computed(2, 2, "b");
	feed_whole_keys(&channel, 3, 1, &rest, 1, &hash, 1);
	cached(4, 3, "c");
	assert_causes(3, "c", R3RING_MISSING_UNKNOWN_KEY, R3RING_CAUSE_CONFLICT);
}

static uint16_t the_same_always(const struct feed *feed, uint64_t step, uint32_t row,
				uint32_t layer, uint32_t k)
{
	(void)step;
	(void)row;
	return feed_id(feed->salt, 1, 0, layer, k);
}

/* Their ids are no sign of which weights ran what is found. */
Test(assembler_hashes, so_it_may_where_both_came_to_the_same)
{
	channel.id = the_same_always;
	filled_in_flight(1, 1, "a");
	computed(3, 2, "b");
	cached(4, 3, "c");
	assert_causes(3, "c", R3RING_MISSING_UNKNOWN_KEY, 0);
}

Test(assembler_hashes, what_one_pass_lost_another_under_its_hash_does_not_fill)
{
	const struct r3ring_span lost = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 1, 2, &lost, 1, &hash, 1);
	channel.flags = 0;
	feed_lost(&channel, 1, 1, R3RING_CAUSE_BUFFER_FULL, 0);
	computed(2, 2, "b");
	cached(3, 3, "c");
	assert_cause(3, "c", R3RING_CAUSE_BUFFER_FULL);
}

Test(assembler_hashes, a_layer_that_one_pass_lost_another_under_its_hash_does_not_fill)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	channel.id = as_in_step_1;
	feed_step(&channel, 1, 2, &one, 1, &hash, 1);
	feed_layers(&channel, 1, 2, 1, FEED_LAYERS);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_TOO_FEW_ROWS);
	computed(2, 2, "b");
	channel.id = NULL;
	cached(3, 3, "c");
	got = finish(3, "c");
	cr_assert_eq(cell_of(got, 0, 0, 0, 1, 0), R3RING_CAUSE_TOO_FEW_ROWS);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 1, 2, 0, 1, 1), 0);
	r3ring_assembled_free(got);
}

Test(assembler_hashes, what_nobody_s_span_ran_under_a_hash_may_be_found_later)
{
	const struct r3ring_span nobody = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_whole_keys(&channel, 1, 2, &nobody, 1, &hash, 1);
	computed(2, 2, "b");
	cached(3, 3, "c");
	assert_unknown(3, "c");
}

Test(assembler_hashes, a_block_of_which_a_token_was_not_seen_to_run_may_be_found_later)
{
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 1, 1, &rest, 1, &hash, 1);
	computed(2, 2, "b");
	cached(3, 3, "c");
	assert_unknown(3, "c");
}

Test(assembler_hashes, a_hash_that_is_told_before_its_block_is_full_is_known_once_it_is)
{
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 1);
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 1, 1, &first, 1, &hash, 1);
	feed_whole_keys(&channel, 2, 1, &rest, 1, &hash, 1);
	cached(3, 2, "b");
	{
		struct r3ring_assembled *got = finish(2, "b");

		assert_row(got, 0, 1, 0);
		assert_row(got, 1, 2, 0);
		r3ring_assembled_free(got);
	}
}

Test(assembler_hashes, what_ran_before_a_load_may_be_found_after_what_runs_behind_it)
{
	computed(1, 1, "a");
	loaded(2, 2, "b");
	computed(3, 3, "c");
	cached(4, 4, "d");
	assert_conflict(4, "d", 1, 3);
}

Test(assembler_hashes,
     what_was_not_seen_to_run_before_a_load_may_be_found_after_what_runs_behind_it)
{
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 1, 1, &rest, 1, &hash, 1);
	loaded(2, 2, "b");
	computed(3, 3, "c");
	cached(4, 4, "d");
	assert_unknown(4, "d");
}

Test(assembler_hashes, a_copy_is_of_either_of_two_passes)
{
	const uint64_t copy = HASH + 1;
	const struct r3ring_span spans[] = {
		keyed_span(3, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(3, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
	};

	computed(1, 1, "a");
	computed(2, 2, "b");
	feed_key_copy(&channel, HASH, copy);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_whole_keys(&channel, 3, 1, spans, 2, &copy, 1);
	assert_conflict(3, "c", 1, 2);
}

Test(assembler_hashes, a_hash_that_is_told_too_late_is_not_known)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .late_steps = 1};
	struct r3ring_span drafts;

	close_channel();
	open_with(&options);
	drafts = drafted(1, 1);
	cached(2, 2, "b");
	cached(3, 3, "c");
	accepted(1, drafts);
	computed(4, 4, "d");
	cached(5, 5, "e");
	assert_unknown(5, "e");
}

/* ---- steps that nobody saw -------------------------------------------------- */

static void gap(void)
{
	r3ring_assembler_gap(channel.assembler, channel.channel);
}

Test(assembler_hashes, what_a_step_that_was_lost_ran_under_a_hash_may_be_found)
{
	computed(1, 1, "a");
	gap();
	cached(3, 2, "b");
	assert_unknown(2, "b");
}

Test(assembler_hashes, so_it_may_be_where_the_block_was_run_behind_the_loss)
{
	computed(1, 1, "a");
	gap();
	found_and_run_other(3, 9, "z", 10, HASH + 1);
	computed(4, 2, "b");
	cached(5, 3, "c");
	assert_unknown(3, "c");
}

Test(assembler_hashes, a_loss_that_the_ring_tells_of_is_one)
{
	computed(1, 1, "a");
	feed_lost(&channel, 2, 2, R3RING_CAUSE_QUEUE_FULL, 1);
	cached(3, 2, "b");
	assert_unknown(2, "b");
}

Test(assembler_hashes, a_loss_that_took_no_step_took_no_block)
{
	computed(1, 1, "a");
	gap();
	cached(2, 2, "b");
	assert_found(2, "b", 1, 0);
}

Test(assembler_hashes, what_runs_under_new_weights_names_other_blocks_than_those_that_were_lost)
{
	channel.weight_version = 1;
	found_and_run_other(1, 1, "a", 2, HASH + 1);
	gap();
	channel.weight_version = 2;
	found_and_run_other(3, 3, "b", 5, HASH + 2);
	channel.weight_version = 3;
	computed(4, 7, "c");
	cached(5, 8, "d");
	assert_found(8, "d", 4, 0);
}

Test(assembler_hashes, new_weights_tell_nothing_of_an_engine_whose_hashes_stay)
{
	const uint64_t other = HASH + 1;
	const struct r3ring_span one = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	channel.weight_version = 1;
	feed_begin(&channel, 9, "z", 2, 0);
	feed_whole_keys(&channel, 1, 2, &one, 1, &other, 1);
	gap();
	channel.weight_version = 2;
	feed_whole_keys(&channel, 3, 2, &one, 1, &other, 1);
	channel.weight_version = 3;
	computed(4, 3, "c");
	cached(5, 4, "d");
	assert_unknown(4, "d");
}

Test(assembler_hashes, what_ran_before_a_reader_came_may_be_found)
{
	computed(7, 1, "a");
	cached(8, 2, "b");
	assert_unknown(2, "b");
}

Test(assembler_hashes, what_ran_in_a_generation_that_this_one_goes_on_from_may_be_found)
{
	channel.generation = 2;
	channel.continues = 1;
	channel.seq = 0;
	feed_schema(&channel);
	computed(1, 1, "a");
	cached(2, 2, "b");
	assert_unknown(2, "b");
}

Test(assembler_hashes, what_ran_in_a_generation_of_another_engine_is_not_found)
{
	computed(1, 1, "a");
	gap();
	found_and_run_other(3, 9, "z", 10, HASH + 1);
	channel.generation = 2;
	channel.seq = 0;
	feed_schema(&channel);
	computed(1, 2, "b");
	cached(2, 3, "c");
	assert_found(3, "c", 1, 0);
}

Test(assembler_hashes, a_block_whose_hash_was_never_told_may_be_found)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .late_steps = 1};

	close_channel();
	open_with(&options);
	drafted(1, 1);
	computed(2, 2, "b");
	computed(3, 3, "c");
	cached(4, 4, "d");
	assert_unknown(4, "d");
}

Test(assembler_hashes, a_copy_that_was_lost_may_be_found)
{
	computed(1, 1, "a");
	feed_key_copy(&channel, HASH, HASH + 1);
	gap();
	cached(2, 2, "b");
	assert_unknown(2, "b");
}
