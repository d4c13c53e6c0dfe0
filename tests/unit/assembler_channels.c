/* SPDX-License-Identifier: Apache-2.0 */
/* Several channels know of one request: stages, shards, copies; and of several of one id. */
#include <errno.h>

#include "tests/unit/key_feed.h"

static struct feed first, second;

static void open_channels(void)
{
	feed_create(&first, NULL);
	second = feed_channel(&first, "test/1");
}

static void close_channels(void)
{
	feed_destroy(&first);
}

TestSuite(assembler_channels, .init = open_channels, .fini = close_channels);

Test(assembler_channels, failure_9_pipeline_stages_are_merged_by_layer)
{
	const struct r3ring_assembled_info *info;
	struct r3ring_assembled *got;

	first.rank.pp = (struct r3ring_coordinate){0, 2};
	second.rank.pp = (struct r3ring_coordinate){1, 2};
	second.first_layer = FEED_LAYERS;
	second.salt = 1;
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 2, 0);
	feed_computed(&first, 1, 1, 0, 2, NULL, 0);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	cr_assert_null(r3ring_assembler_take(first.assembler), "the other stage is not done");
	feed_begin(&second, 5, "a", 2, 0);
	feed_computed(&second, 7, 5, 0, 2, NULL, 0);
	feed_end(&second, 5, R3RING_END_FINISHED, 0, 3);
	got = take(&first, "a");
	info = r3ring_assembled_get_info(got);
	cr_assert_eq(info->layers, 2 * FEED_LAYERS);
	cr_assert_eq(info->cells_valid, 2 * 2 * FEED_LAYERS);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		cr_assert_eq(info->layer[FEED_LAYERS + layer].layer_id,
			     (int32_t)(FEED_LAYERS + layer));
		for (uint32_t k = 0; k < FEED_TOP_K; k++) {
			uint16_t ids[FEED_TOP_K];
			const struct r3ring_assembled_rows rows = {.ids = ids};

			cr_assert_eq(
				r3ring_assembled_read(got, 1, 1, FEED_LAYERS + layer, 1, &rows), 0);
			cr_assert_eq(ids[k], feed_id(1, 7, 1, layer, k));
		}
		cr_assert_eq(cell_of(got, 1, layer, 0, 1, 1), 0);
	}
	r3ring_assembled_free(got);
}

/* Its engine died, and what that told last was not read. */
Test(assembler_channels, what_a_stage_had_behind_the_end_of_what_was_read_of_it_is_a_gap)
{
	struct r3ring_assembled *got;

	first.rank.pp = (struct r3ring_coordinate){0, 2};
	second.rank.pp = (struct r3ring_coordinate){1, 2};
	second.first_layer = FEED_LAYERS;
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 2, 0);
	feed_begin(&second, 1, "a", 2, 0);
	feed_computed(&first, 1, 1, 0, 2, NULL, 0);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	second.generation = 2;
	second.seq = 0;
	feed_schema(&second);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_row(got, 1, 1, 1);
	cr_assert_eq(cell_of(got, 1, FEED_LAYERS, 0, 1, 1), R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

/* It came late, and has the layers that the prefill's rank has not. */
Test(assembler_channels, a_stage_lost_an_attempt_that_another_one_of_its_engine_told_of)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 3};
	struct feed prefill, stage[2];
	struct r3ring_assembled *got;

	feed_create(&prefill, &options);
	prefill.first_layer = FEED_LAYERS;
	feed_schema(&prefill);
	feed_begin(&prefill, 1, "a", 2, 0);
	feed_computed(&prefill, 1, 1, 0, 2, NULL, 0);
	feed_end(&prefill, 1, R3RING_END_FINISHED, 0, 2);
	for (uint16_t i = 0; i < 2; i++) {
		stage[i] = feed_channel(&prefill, i ? "decode/1" : "decode/0");
		stage[i].rank.pp = (struct r3ring_coordinate){i, 2};
		stage[i].first_layer = i ? FEED_LAYERS : 0;
		feed_schema(&stage[i]);
		if (i)
			feed_begin(&stage[i], 5, "a", 2, 0);
		if (i)
			feed_end(&stage[i], 5, R3RING_END_PREEMPTED, 0, 2);
		feed_begin(&stage[i], 6, "a", 2, 1);
		feed_end(&stage[i], 6, R3RING_END_FINISHED, 1, 3);
	}
	got = take(&prefill, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->cells_valid, 2 * FEED_LAYERS);
	cr_assert_eq(cell_of(got, 0, 0, 0, 1, 0), R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Nothing was heard of the second stage before its engine's next generation: not the request of the id
 * that the first one had ended either. */
Test(assembler_channels,
     what_a_stage_ran_before_the_generation_that_it_is_heard_from_is_not_counted)
{
	first.rank.pp = (struct r3ring_coordinate){0, 2};
	second.rank.pp = (struct r3ring_coordinate){1, 2};
	second.first_layer = FEED_LAYERS;
	second.generation = 2;
	second.continues = 1;
	feed_schema(&first);
	feed_begin(&first, 1, "a", 2, 0);
	feed_computed(&first, 1, 1, 0, 2, NULL, 0);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	feed_schema(&second);
	feed_keyframe(&second, 1);
	feed_repeated_begin(&second, 2, "a", 2);
	feed_computed(&second, 1, 2, 0, 2, NULL, 0);
	feed_end(&second, 2, R3RING_END_FINISHED, 0, 3);
	cr_assert_null(r3ring_assembler_take(first.assembler), "they are two");
}

Test(assembler_channels, failure_9_layers_that_overlap_and_differ_are_a_conflict)
{
	struct r3ring_assembled *got;

	first.rank.pp = (struct r3ring_coordinate){0, 2};
	second.rank.pp = (struct r3ring_coordinate){1, 2};
	second.salt = 1;
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	feed_computed(&first, 1, 1, 0, 1, NULL, 0);
	feed_computed(&second, 1, 1, 0, 1, NULL, 0);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 2);
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&first, "a");
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
}

Test(assembler_channels, failure_8_shards_of_a_step_are_merged_by_row)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);
	struct r3ring_assembled *got;

	first.rank.sp = (struct r3ring_coordinate){0, 2};
	second.rank.sp = (struct r3ring_coordinate){1, 2};
	first.row_end = 4;
	second.row_begin = 4;
	second.row_end = 8;
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 8, 0);
	feed_begin(&second, 1, "a", 8, 0);
	feed_whole(&first, 1, 8, &one, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 9);
	feed_whole(&second, 1, 8, &one, 1);
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 9);
	got = take(&first, "a");
	for (uint32_t position = 0; position < 8; position++)
		assert_row(got, position, 1, position);
	r3ring_assembled_free(got);
}

Test(assembler_channels, failure_8_a_shard_that_is_absent_is_missing_and_not_taken_for_the_whole)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);
	struct r3ring_assembled *got;

	first.rank.sp = (struct r3ring_coordinate){0, 2};
	first.row_end = 4;
	feed_schema(&first);
	feed_begin(&first, 1, "a", 8, 0);
	feed_whole(&first, 1, 8, &one, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 9);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_row(got, 3, 1, 3);
	assert_missing(got, 4, R3RING_MISSING_OTHER_SHARDS);
	r3ring_assembled_free(got);
}

/* What lies behind the first attempt's rows the other shard may have run, which is no loss. */
Test(assembler_channels, rows_of_an_absent_shard_are_not_said_to_be_lost_where_a_request_ran_again)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);
	struct r3ring_span again = one;
	struct r3ring_assembled *got;

	again.attempt = 1;
	first.rank.sp = (struct r3ring_coordinate){1, 2};
	first.row_begin = 4;
	first.row_end = 8;
	feed_schema(&first);
	feed_begin(&first, 1, "a", 8, 0);
	feed_whole(&first, 1, 8, &one, 1);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 8);
	feed_begin(&first, 1, "a", 8, 1);
	feed_whole(&first, 2, 8, &again, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 1, 9);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_missing(got, 0, R3RING_MISSING_OTHER_SHARDS);
	assert_row(got, 4, 1, 4);
	r3ring_assembled_free(got);
}

/* What came before the loss may have run it, on any shard. */
Test(assembler_channels, what_may_be_lost_is_not_said_to_be_of_an_absent_shard)
{
	struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);
	struct r3ring_assembled *got;

	one.attempt = 1;
	first.rank.sp = (struct r3ring_coordinate){0, 2};
	first.row_end = 4;
	feed_schema(&first);
	r3ring_assembler_gap(first.assembler, first.channel);
	feed_begin(&first, 1, "a", 8, 1);
	feed_whole(&first, 2, 8, &one, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 1, 9);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_missing(got, 4, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

/* Nothing was lost of the shard that was heard: it was heard from then on. */
Test(assembler_channels,
     what_an_attempt_ran_that_nobody_heard_of_is_not_said_to_be_of_an_absent_shard)
{
	struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);
	struct r3ring_assembled *got;

	one.attempt = 1;
	first.rank.sp = (struct r3ring_coordinate){0, 2};
	first.row_end = 4;
	feed_schema(&first);
	feed_begin(&first, 1, "a", 8, 1);
	feed_whole(&first, 1, 8, &one, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 1, 9);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_missing(got, 4, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

/* Which rows it has is not known, but that something of it was lost is. */
Test(assembler_channels, a_shard_that_was_read_behind_a_loss_of_its_schema_is_not_said_to_be_absent)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);
	struct r3ring_assembled *got;

	first.rank.sp = (struct r3ring_coordinate){0, 2};
	first.row_end = 4;
	r3ring_assembler_gap(second.assembler, second.channel);
	feed_schema(&first);
	feed_begin(&first, 1, "a", 8, 0);
	feed_whole(&first, 1, 8, &one, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 9);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_row(got, 3, 1, 3);
	assert_missing(got, 4, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

Test(assembler_channels, failure_47_copies_of_tensor_parallel_ranks_are_left_out)
{
	struct r3ring_assembled *got;

	second.replica = 1;
	second.salt = 1;
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	feed_computed(&first, 1, 1, 0, 1, NULL, 0);
	feed_computed(&second, 1, 1, 0, 1, NULL, 0);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	cr_assert_eq(r3ring_assembled_get_info(got)->conflicts, 0);
	r3ring_assembled_free(got);
}

Test(assembler_channels, a_channel_of_another_model_is_refused)
{
	struct r3ring_layer_entry layer = {0};
	struct r3ring_record record = {.type = R3RING_SCHEMA};
	const struct r3ring_view view = {.seq = 1, .generation = 1, .type = R3RING_SCHEMA};

	feed_schema(&first);
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = 1, .experts = 8, .top_k = 2, .rows_per_record = 1, .model = "other"};
	record.u.schema.layers = &layer;
	cr_assert_eq(r3ring_assembler_feed(first.assembler, second.channel, &view, &record),
		     -EPROTO);
}

/* "a" is preempted on the first rank, and runs again on the second. */
static void go_on_at_another_rank(void)
{
	const struct r3ring_span again = {
		.request = 8, .rows = 3, .attempt = 1, .accepted = R3RING_UNKNOWN_U32};

	first.rank.dp = (struct r3ring_coordinate){0, 2};
	second.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 2, 0);
	feed_computed(&first, 1, 1, 0, 2, NULL, 0);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 3);
	feed_begin(&second, 8, "a", 3, 1);
	feed_whole(&second, 4, 3, &again, 1);
}

static void expect_rows_of_both(void)
{
	struct r3ring_assembled *got = take(&first, "a");

	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 4, 2);
	r3ring_assembled_free(got);
}

Test(assembler_channels, a_preempted_request_may_go_on_at_another_rank)
{
	go_on_at_another_rank();
	feed_end(&second, 8, R3RING_END_FINISHED, 1, 4);
	expect_rows_of_both();
}

/* Channels are read apart: that one may have been preempted there first, and be what goes on. */
Test(assembler_channels, it_is_mixed_where_another_of_its_id_begins_at_the_first_meanwhile)
{
	struct r3ring_assembled *got;

	go_on_at_another_rank();
	feed_begin(&first, 2, "a", 2, 0);
	got = take(&first, "a");
	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_MIXED);
	r3ring_assembled_free(got);
}

/* Two users' engines may count from 1, and so may two data-parallel ranks. */
static void expect_two(struct feed *one, struct feed *other)
{
	struct r3ring_assembled *got;

	other->salt = 5;
	feed_begin(one, 1, "a", 2, 0);
	feed_begin(other, 1, "a", 2, 0);
	feed_computed(one, 1, 1, 0, 2, NULL, 0);
	feed_computed(other, 1, 1, 0, 2, NULL, 0);
	feed_end(other, 1, R3RING_END_FINISHED, 0, 3);
	got = take(one, "a");
	cr_assert_eq(cell_of(got, 1, 0, 5, 1, 1), 0);
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, 0);
	r3ring_assembled_free(got);
	cr_assert_null(r3ring_assembler_take(one->assembler));
	feed_end(one, 1, R3RING_END_FINISHED, 0, 3);
	got = take(one, "a");
	assert_row(got, 1, 1, 1);
	cr_assert_eq(r3ring_assembled_get_info(got)->conflicts, 0);
	r3ring_assembled_free(got);
}

Test(assembler_channels, data_parallel_ranks_that_use_one_id_have_two_requests)
{
	first.rank.dp = (struct r3ring_coordinate){0, 2};
	second.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	expect_two(&first, &second);
}

Test(assembler_channels, instances_that_use_one_id_have_two_requests)
{
	struct feed other = feed_channel(&first, "other/0");

	feed_schema(&first);
	feed_schema(&other);
	expect_two(&first, &other);
}

Test(assembler_channels, of_three_requests_of_one_id_each_can_end_first)
{
	struct feed third = feed_channel(&first, "third/0"),
		    other = feed_channel(&first, "other/0");
	struct feed *const order[3] = {&other, &first, &third};

	feed_schema(&first);
	feed_schema(&other);
	feed_schema(&third);
	for (uint32_t i = 0; i < 3; i++) {
		order[(i + 1) % 3]->salt = i + 1;
		feed_begin(order[(i + 1) % 3], 1, "a", 2, 0);
		feed_computed(order[(i + 1) % 3], 1, 1, 0, 2, NULL, 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct r3ring_assembled *got;

		feed_end(order[i], 1, R3RING_END_FINISHED, 0, 3);
		got = take(&first, "a");
		cr_assert_eq(cell_of(got, 0, 0, order[i]->salt, 1, 0), 0);
		r3ring_assembled_free(got);
	}
}

static void two_shards(void)
{
	first.rank.sp = (struct r3ring_coordinate){0, 2};
	second.rank.sp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&first, 1, "a", 2, 0);
	feed_begin(&second, 1, "a", 2, 0);
}

static void end_both(void)
{
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 3);
}

/* New weights run a token again, and its row falls to the other shard. */
Test(assembler_channels, failure_8_the_first_pass_counts_whatever_shard_it_was_in)
{
	const struct r3ring_span both = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 2, 0);
	struct r3ring_assembled *got;
	uint64_t weights;
	const struct r3ring_assembled_rows rows = {.weight_version = &weights};

	two_shards();
	first.row_end = second.row_begin = 1;
	second.row_end = 2;
	feed_whole(&first, 1, 2, &both, 1);
	feed_whole(&second, 1, 2, &both, 1);
	first.weight_version = second.weight_version = 1;
	feed_whole(&first, 2, 2, &one, 1);
	feed_whole(&second, 2, 2, &one, 1);
	end_both();
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	cr_assert_eq(r3ring_assembled_read(got, 1, 1, 0, 0, &rows), 0);
	cr_assert_eq(weights, 0);
	r3ring_assembled_free(got);
}

/* One shard's part of the cached prefix is not the other's to know. */
Test(assembler_channels, weights_are_told_of_the_shard_that_has_the_row)
{
	const struct r3ring_span own = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 0);
	struct r3ring_span none = keyed_span(1, R3RING_SPAN_CACHED, 0, 0, 1, 0);
	struct r3ring_assembled *got;
	uint64_t weights;
	const struct r3ring_assembled_rows rows = {.weight_version = &weights};

	two_shards();
	first.weight_version = 7;
	feed_whole(&first, 1, 1, &own, 1);
	second.row_begin = 1;
	second.row_end = 1;
	feed_whole(&second, 1, 1, &none, 1);
	end_both();
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	cr_assert_eq(r3ring_assembled_read(got, 0, 1, 0, 0, &rows), 0);
	cr_assert_eq(weights, 7);
	r3ring_assembled_free(got);
}

/* A layer that the pass that counts lacks is not another pass's to fill. */
Test(assembler_channels, passes_of_different_weights_are_not_mixed)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 0);
	struct r3ring_assembled *got;

	two_shards();
	feed_step(&first, 1, 1, &one, 1, NULL, 0);
	feed_layers(&first, 1, 1, 0, 1);
	feed_step_end(&first, 1, 1, R3RING_CAUSE_TOO_FEW_ROWS);
	second.weight_version = 1;
	feed_whole(&second, 2, 1, &one, 1);
	end_both();
	got = take(&first, "a");
	cr_assert_eq(cell_of(got, 0, 0, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), R3RING_CAUSE_TOO_FEW_ROWS);
	r3ring_assembled_free(got);
}

/* Of the shard that lost the first pass the second one is all that is known: another shard's
 * row of the first tells that they differ. */
Test(assembler_channels, a_contradiction_is_told_where_the_channel_lost_the_first_pass)
{
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 0);
	const struct r3ring_assembled_info *info;
	struct r3ring_assembled *got;

	two_shards();
	feed_whole(&first, 1, 1, &one, 1);
	second.flags = R3RING_STEP_DROPPED;
	feed_step(&second, 1, 1, &one, 1, NULL, 0);
	feed_lost(&second, 1, 1, R3RING_CAUSE_RING_FULL, 0);
	second.flags = 0;
	feed_whole(&second, 2, 1, &one, 1);
	end_both();
	got = take(&first, "a");
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	info = r3ring_assembled_get_info(got);
	cr_assert_eq(info->conflict[0].channel[0], 0);
	cr_assert_eq(info->conflict[0].channel[1], 1);
	cr_assert_eq(info->conflict[0].step[1], 2);
	r3ring_assembled_free(got);
}
