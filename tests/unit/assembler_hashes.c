/* SPDX-License-Identifier: Apache-2.0 */
/* Block hashes as keys: of two blocks of one hash nobody can tell which the cache finds. */
#include <stdio.h>

#include "tests/unit/hash_feed.h"

static struct feed channel;

static void open_channel(void)
{
	hash_create(&channel, NULL);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_hashes, .init = open_channel, .fini = close_channel);

static uint16_t as_in_step_1(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			     uint32_t k)
{
	(void)step;
	return feed_id(feed->salt, 1, row, layer, k);
}

/* ---- loaded, and run ------------------------------------------------------ */

Test(assembler_hashes, what_the_same_step_runs_is_found_where_nothing_was_loaded)
{
	hash_find_and_run(&channel, 1, 1, "a", 2);
	assert_found(&channel, 1, "a", 1, 1);
}

Test(assembler_hashes, failure_11_a_step_may_find_what_was_loaded_and_not_what_it_runs_itself)
{
	hash_load(&channel, 1, 1, "a");
	hash_find_and_run(&channel, 2, 2, "b", 3);
	hash_find(&channel, 3, 4, "d");
	assert_unknown(&channel, 2, "b");
	assert_found(&channel, 4, "d", 2, 1);
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
	hash_find(&channel, 2, 4, "d");
	assert_unknown(&channel, 3, "c");
	assert_found(&channel, 4, "d", 1, 0);
}

Test(assembler_hashes, failure_11_a_load_is_remembered_when_its_hash_is_forgotten)
{
	struct r3ring_assembler_options options = {.size = sizeof(options), .max_keys = 1};
	const struct r3ring_span other = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const uint64_t others = HASH + 1;

	close_channel();
	hash_create(&channel, &options);
	hash_load(&channel, 1, 1, "a");
	feed_begin(&channel, 9, "other", 2, 0);
	feed_whole_keys(&channel, 2, 2, &other, 1, &others, 1);
	hash_find_and_run(&channel, 3, 2, "b", 3);
	hash_find(&channel, 4, 4, "d");
	assert_unknown(&channel, 2, "b");
	assert_found(&channel, 4, "d", 3, 1);
}

Test(assembler_hashes, failure_11_a_load_is_remembered_when_who_ran_its_hash_is_not_known)
{
	const struct r3ring_span nobody = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	hash_load(&channel, 1, 1, "a");
	feed_whole_keys(&channel, 2, 2, &nobody, 1, &hash_name, 1);
	hash_find_and_run(&channel, 3, 2, "b", 3);
	hash_find_and_run_other(&channel, 4, 4, "d", 6, HASH + 1);
	assert_unknown(&channel, 2, "b");
	assert_found(&channel, 4, "d", 4, 1);
}

/* ---- told late ------------------------------------------------------------ */

Test(assembler_hashes, what_the_host_learns_later_is_found_from_then_on)
{
	const struct r3ring_span drafts = hash_draft(&channel, 1, 1);

	hash_find(&channel, 2, 2, "b");
	hash_accept(&channel, 1, drafts);
	hash_find(&channel, 3, 3, "c");
	assert_unknown(&channel, 2, "b");
	assert_found(&channel, 3, "c", 1, 0);
}

Test(assembler_hashes, what_was_run_before_may_be_found_until_then)
{
	struct r3ring_span drafts;

	hash_run(&channel, 1, 1, "a");
	drafts = hash_draft(&channel, 2, 2);
	hash_find(&channel, 3, 3, "c");
	hash_accept(&channel, 2, drafts);
	assert_conflict(&channel, 3, "c", 1, 2);
}

Test(assembler_hashes, failure_11_what_was_loaded_is_found_until_then)
{
	struct r3ring_span drafts;

	hash_load(&channel, 1, 1, "a");
	drafts = hash_draft(&channel, 2, 2);
	hash_find(&channel, 3, 3, "c");
	hash_accept(&channel, 2, drafts);
	hash_find(&channel, 4, 4, "d");
	assert_unknown(&channel, 3, "c");
	assert_found(&channel, 4, "d", 2, 0);
}

Test(assembler_hashes, what_another_runs_meanwhile_is_found_from_the_next_step_on)
{
	const struct r3ring_span drafts = hash_draft(&channel, 1, 1);

	hash_find_and_run(&channel, 2, 2, "b", 3);
	hash_find(&channel, 3, 4, "d");
	hash_accept(&channel, 1, drafts);
	assert_unknown(&channel, 2, "b");
	assert_conflict(&channel, 4, "d", 1, 2);
}

/* ---- run twice ------------------------------------------------------------ */

Test(assembler_hashes, two_passes_that_differ_under_one_hash_are_a_conflict_and_both_named)
{
	hash_run(&channel, 1, 1, "a");
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_conflict(&channel, 3, "c", 1, 2);
}

Test(assembler_hashes, of_three_passes_none_is_forgotten)
{
	hash_run(&channel, 1, 1, "a");
	channel.id = as_in_step_1;
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	channel.id = NULL;
	hash_run(&channel, 4, 4, "d");
	channel.id = as_in_step_1;
	hash_run(&channel, 5, 5, "e");
	hash_find(&channel, 6, 6, "f");
	assert_found(&channel, 3, "c", 1, 0);
	assert_conflict(&channel, 6, "f", 4, 5);
}

Test(assembler_hashes, a_pass_that_was_lost_does_not_hide_one_that_differs)
{
	const struct r3ring_span lost = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	hash_run(&channel, 1, 1, "a");
	feed_begin(&channel, 2, "b", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 2, 2, &lost, 1, &hash_name, 1);
	channel.flags = 0;
	feed_lost(&channel, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	hash_find(&channel, 3, 3, "c");
	hash_run(&channel, 4, 4, "d");
	hash_find(&channel, 5, 5, "e");
	assert_conflict(&channel, 5, "e", 1, 4);
	assert_cause(&channel, 3, "c", R3RING_CAUSE_BUFFER_FULL);
}

Test(assembler_hashes, of_more_passes_than_are_kept_nothing_is_known)
{
	for (uint64_t i = 1; i <= 80; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%u", (unsigned int)i);
		hash_run(&channel, i, i, id);
	}
	hash_find(&channel, 81, 81, "z");
	assert_unknown(&channel, 81, "z");
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
	feed_whole_keys(&channel, step + 1, 1, &rest, 1, &hash_name, 1);
}

/* Ends it: of which of its tokens the ids are known, and not. */
static void assert_causes(uint64_t request, const char *id, uint8_t first, uint8_t second)
{
	struct r3ring_assembled *got = hash_finish(&channel, request, id);

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
	hash_find(&channel, 3, 2, "b");
	got = hash_finish(&channel, 2, "b");
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
	hash_run(&channel, 3, 2, "b");
	hash_find(&channel, 4, 3, "c");
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
	hash_run(&channel, 2, 2, "b");
	feed_whole_keys(&channel, 3, 1, &rest, 1, &hash_name, 1);
	hash_find(&channel, 4, 3, "c");
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
	hash_run(&channel, 3, 2, "b");
	hash_find(&channel, 4, 3, "c");
	assert_causes(3, "c", R3RING_MISSING_UNKNOWN_KEY, 0);
}

/* New weights in place; the hash is salted. */
Test(assembler_hashes, what_was_run_again_is_behind_a_key_whatever_a_cache_had_found_before)
{
	const uint64_t salted = HASH + 1;
	const struct r3ring_span spans[] = {
		keyed_span(4, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(4, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
	};
	const struct r3ring_span again = keyed_span(3, R3RING_SPAN_COMPUTED, 0, 0, 1, 0);
	const struct r3ring_span rest = keyed_span(3, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);
	struct r3ring_assembled *got;

	channel.weight_version = 1;
	hash_run(&channel, 1, 1, "a");
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	channel.weight_version = 2;
	feed_whole(&channel, 4, 1, &again, 1);
	feed_whole_keys(&channel, 5, 1, &rest, 1, &salted, 1);
	feed_begin(&channel, 4, "d", 3, 0);
	feed_whole_keys(&channel, 6, 1, spans, 2, &salted, 1);
	got = hash_finish(&channel, 4, "d");
	assert_row(got, 0, 4, 0);
	assert_row(got, 1, 5, 0);
	r3ring_assembled_free(got);
}

Test(assembler_hashes, what_one_pass_lost_another_under_its_hash_does_not_fill)
{
	const struct r3ring_span lost = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 1, 2, &lost, 1, &hash_name, 1);
	channel.flags = 0;
	feed_lost(&channel, 1, 1, R3RING_CAUSE_BUFFER_FULL, 0);
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_cause(&channel, 3, "c", R3RING_CAUSE_BUFFER_FULL);
}

Test(assembler_hashes, a_layer_that_one_pass_lost_another_under_its_hash_does_not_fill)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	channel.id = as_in_step_1;
	feed_step(&channel, 1, 2, &one, 1, &hash_name, 1);
	feed_layers(&channel, 1, 2, 1, FEED_LAYERS);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_TOO_FEW_ROWS);
	hash_run(&channel, 2, 2, "b");
	channel.id = NULL;
	hash_find(&channel, 3, 3, "c");
	got = hash_finish(&channel, 3, "c");
	cr_assert_eq(cell_of(got, 0, 0, 0, 1, 0), R3RING_CAUSE_TOO_FEW_ROWS);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 1, 2, 0, 1, 1), 0);
	r3ring_assembled_free(got);
}

Test(assembler_hashes, what_nobody_s_span_ran_under_a_hash_may_be_found_later)
{
	const struct r3ring_span nobody = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_whole_keys(&channel, 1, 2, &nobody, 1, &hash_name, 1);
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_unknown(&channel, 3, "c");
}

Test(assembler_hashes, a_block_of_which_a_token_was_not_seen_to_run_may_be_found_later)
{
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 1, 1, &rest, 1, &hash_name, 1);
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_unknown(&channel, 3, "c");
}

Test(assembler_hashes, a_hash_that_is_told_before_its_block_is_full_is_known_once_it_is)
{
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 1);
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 1, 1, &first, 1, &hash_name, 1);
	feed_whole_keys(&channel, 2, 1, &rest, 1, &hash_name, 1);
	hash_find(&channel, 3, 2, "b");
	{
		struct r3ring_assembled *got = hash_finish(&channel, 2, "b");

		assert_row(got, 0, 1, 0);
		assert_row(got, 1, 2, 0);
		r3ring_assembled_free(got);
	}
}

Test(assembler_hashes, what_ran_before_a_load_may_be_found_after_what_runs_behind_it)
{
	hash_run(&channel, 1, 1, "a");
	hash_load(&channel, 2, 2, "b");
	hash_run(&channel, 3, 3, "c");
	hash_find(&channel, 4, 4, "d");
	assert_conflict(&channel, 4, "d", 1, 3);
}

Test(assembler_hashes,
     what_was_not_seen_to_run_before_a_load_may_be_found_after_what_runs_behind_it)
{
	const struct r3ring_span rest = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 1);

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 1, 1, &rest, 1, &hash_name, 1);
	hash_load(&channel, 2, 2, "b");
	hash_run(&channel, 3, 3, "c");
	hash_find(&channel, 4, 4, "d");
	assert_unknown(&channel, 4, "d");
}

Test(assembler_hashes, a_copy_is_of_either_of_two_passes)
{
	const uint64_t copy = HASH + 1;
	const struct r3ring_span spans[] = {
		keyed_span(3, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(3, R3RING_SPAN_COMPUTED, 2, 0, 1, 0),
	};

	hash_run(&channel, 1, 1, "a");
	hash_run(&channel, 2, 2, "b");
	feed_key_copy(&channel, HASH, copy);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_whole_keys(&channel, 3, 1, spans, 2, &copy, 1);
	assert_conflict(&channel, 3, "c", 1, 2);
}

Test(assembler_hashes, a_hash_that_is_told_too_late_is_not_known)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .late_steps = 1};
	struct r3ring_span drafts;

	close_channel();
	hash_create(&channel, &options);
	drafts = hash_draft(&channel, 1, 1);
	hash_find(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	hash_accept(&channel, 1, drafts);
	hash_run(&channel, 4, 4, "d");
	hash_find(&channel, 5, 5, "e");
	assert_unknown(&channel, 5, "e");
}
