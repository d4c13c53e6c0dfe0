/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests, rows and layers an output has, and what stands where a route is missing. */
#include <stdio.h>
#include <string.h>

#include "archive/export/join.h"
#include "tests/unit/export_fixture.h"

TestSuite(export_options, .init = trial_open, .fini = trial_close);

static uint64_t rows(void)
{
	return safetensors_tensor(&trial.file, "routes").shape[0];
}

static const char *ids(void)
{
	return safetensors_metadata(&trial.file, "request_ids");
}

static uint8_t valid(uint64_t row, uint32_t layer)
{
	const struct safetensors_tensor tensor = safetensors_tensor(&trial.file, "valid");

	return ((const uint8_t *)tensor.data)[row * tensor.shape[1] + layer];
}

static void expect_row(uint64_t row, int64_t first, int64_t second)
{
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		cr_assert_eq(trial_id("routes", row, layer, 0), first);
		cr_assert_eq(trial_id("routes", row, layer, 1), second);
		cr_assert_eq(valid(row, layer), 0);
	}
}

/* ---- which requests ----------------------------------------------------- */

Test(export_options, only_requests_that_are_asked_for_by_id_are_written)
{
	static const char *const asked[] = {"c", "a"};

	trial.options.request = asked;
	trial.options.requests = 2;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_request(3, "c", 5);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\",\"c\"]");
	cr_assert(trial_is("routes", 4, 0, 5, 0, 0));
	cr_assert_eq(trial.summary.not_asked, 1);
}

Test(export_options, only_requests_that_ended_in_time_are_written)
{
	static const char *const id[] = {"a", "b", "c", "d"};

	trial.options.since_ns = 200;
	trial.options.until_ns = 400;
	trial_begin("safetensors");
	for (uint32_t i = 0; i < 4; i++) {
		trial_request(i + 1, id[i], i * 2 + 1);
		trial.now_ns = (i + 1) * 100;
		cr_assert_eq(trial_take(), 0);
	}
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"b\",\"c\"]");
}

static void three_of_a_kind(void)
{
	const struct r3ring_span one = trial_span(1, 0, 2), two = trial_span(2, 0, 2);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "aborted", 2, 0);
	feed_whole(&trial.feed, 1, 2, &one, 1);
	feed_end(&trial.feed, 1, R3RING_END_ABORTED, 0, 3);
	feed_begin(&trial.feed, 2, "guessed", 2, 0);
	feed_whole(&trial.feed, 2, 2, &two, 1);
	feed_end(&trial.feed, 2, R3RING_END_FINISHED, 0, R3RING_UNKNOWN_U32);
	trial_request(3, "whole", 3);
	feed_begin(&trial.feed, 4, "unfinished", 2, 0);
}

Test(export_options, requests_without_a_good_end_are_left_out_and_counted)
{
	three_of_a_kind();
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"whole\"]");
	cr_assert_eq(trial.summary.aborted, 1);
	cr_assert_eq(trial.summary.guessed, 1);
	cr_assert_eq(trial.summary.unfinished, 1);
}

Test(export_options, requests_without_a_good_end_are_written_where_they_are_asked_for)
{
	trial.options.include = EXPORT_INCLUDE_ABORTED | EXPORT_INCLUDE_GUESSED |
				EXPORT_INCLUDE_UNFINISHED;
	three_of_a_kind();
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"aborted\",\"guessed\",\"whole\",\"unfinished\"]");
	cr_assert(trial_is("routes", 0, 0, 1, 0, 0));
}

/* ---- which rows --------------------------------------------------------- */

Test(export_options, failure_17_rows_past_what_was_kept_are_cut)
{
	const struct r3ring_span all = trial_span(1, 0, 6);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 3, 0);
	feed_whole(&trial.feed, 1, 6, &all, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 5);
	trial_finish();
	trial_read();
	cr_assert_eq(rows(), 4);
}

Test(export_options, failure_16_a_prefill_of_any_length_is_written_whole)
{
	const struct r3ring_span all = trial_span(1, 0, 50000);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "long", 50000, 0);
	feed_whole(&trial.feed, 1, 50000, &all, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 50001);
	trial_finish();
	trial_read();
	cr_assert_eq(rows(), 50000);
	for (uint32_t row = 0; row < 50000; row += 777)
		cr_assert(trial_is("routes", row, 2, 1, row, 2), "%u", row);
}

Test(export_options, full_rows_have_one_for_the_last_token_which_nothing_is_known_of)
{
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(rows(), 5);
	expect_row(4, 0xFFFF, 0xFFFF);
	cr_assert_eq(trial.summary.padded, FEED_LAYERS);
	cr_assert_eq(trial.summary.filled[R3RING_MISSING_NOT_FED], 0);
}

Test(export_options, failure_21_a_range_of_positions_and_layers_is_all_that_is_written)
{
	trial.feed.first_layer = 10;
	trial.options.position_first = 1;
	trial.options.position_end = 3;
	trial.options.layer_first = 11;
	trial.options.layer_end = 12;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_finish();
	trial_read();
	cr_assert_eq(rows(), 4);
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 1);
	cr_assert(trial_is("routes", 0, 0, 1, 1, 1));
	cr_assert(trial_is("routes", 3, 0, 3, 2, 1));
}

Test(export_options, a_request_that_ends_before_the_range_has_no_rows)
{
	const struct r3ring_span prompt = trial_span(2, 0, 8);

	trial.options.position_first = 6;
	trial_begin("safetensors");
	trial_request(1, "short", 1);
	feed_begin(&trial.feed, 2, "long", 8, 0);
	feed_whole(&trial.feed, 3, 8, &prompt, 1);
	feed_end(&trial.feed, 2, R3RING_END_FINISHED, 0, 9);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"short\",\"long\"]");
	cr_assert_eq(rows(), 2);
	cr_assert(trial_is("routes", 1, 0, 3, 7, 0));
}

Test(export_options, a_loss_outside_of_the_range_is_no_loss)
{
	trial.options.position_end = 3;
	trial_begin("safetensors");
	trial_gapped_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(rows(), 3);
}

Test(export_options, the_latest_pass_counts_where_it_is_asked_for)
{
	const struct r3ring_span prompt = trial_span(1, 0, 2);

	trial.options.policy = R3RING_ROWS_LATEST;
	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &prompt, 1);
	trial.feed.weight_version = 2;
	feed_whole(&trial.feed, 2, 2, &prompt, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 3);
	trial_finish();
	trial_read();
	cr_assert(trial_is("routes", 1, 0, 2, 1, 0));
	cr_assert_str_eq(safetensors_metadata(&trial.file, "policy"), "latest");
}

/* ---- which layers ------------------------------------------------------- */

static int64_t layer_id(size_t place)
{
	int64_t value;

	memcpy(&value, (const int64_t *)safetensors_tensor(&trial.file, "layer_ids").data + place,
	       sizeof(value));
	return value;
}

Test(export_options, failure_34_dense_layers_have_a_place_where_all_layers_are_asked_for)
{
	trial.feed.first_layer = 2;
	trial.options.layers = EXPORT_LAYERS_ALL;
	trial.options.model_layers = 6;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 6);
	for (uint32_t layer = 0; layer < 6; layer++) {
		bool routes = layer >= 2 && layer < 5;

		cr_assert_eq(layer_id(layer), layer);
		cr_assert_eq(valid(0, layer), routes);
		if (routes)
			cr_assert(trial_is("routes", 1, layer, 1, 1, layer - 2));
		else
			cr_assert_eq(trial_id("routes", 1, layer, 0), 0xFFFF);
	}
	cr_assert_str_eq(safetensors_metadata(&trial.file, "layer_kinds"),
			 "[\"dense\",\"dense\",\"moe\",\"moe\",\"moe\",\"dense\"]");
}

Test(export_options, failure_34_layer_numbers_travel_with_layers_that_route_alone)
{
	trial.feed.first_layer = 2;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], FEED_LAYERS);
	cr_assert_eq(layer_id(0), 2);
	cr_assert_str_eq(safetensors_metadata(&trial.file, "layers"), "moe");
}

/* Layers 0 and 1, and a prediction layer whose number is 2. */
static const uint8_t with_mtp[] = {R3RING_LAYER_HASH, R3RING_LAYER_MOE, R3RING_LAYER_MTP};

Test(export_options, failure_35_prediction_layers_are_no_layers_of_the_model)
{
	trial.feed.kinds = with_mtp;
	trial.options.layers = EXPORT_LAYERS_ALL;
	trial.options.model_layers = 3;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 3);
	cr_assert_eq(valid(0, 2), 0);
	cr_assert_eq(trial_id("routes", 0, 2, 0), 0xFFFF);
}

Test(export_options, failure_35_prediction_layers_come_behind_the_others_where_asked_for)
{
	trial.feed.kinds = with_mtp;
	trial.options.mtp = true;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 3);
	cr_assert(trial_is("routes", 0, 2, 1, 0, 2));
	cr_assert_str_eq(safetensors_metadata(&trial.file, "layer_kinds"),
			 "[\"hash\",\"moe\",\"mtp\"]");
	cr_expect_eq(trial.summary.mtp_layers, 1);
}

Test(export_options, that_a_model_has_none_is_in_the_summary)
{
	trial.options.mtp = true;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	cr_expect_gt(trial.summary.layers, 0);
	cr_expect_eq(trial.summary.mtp_layers, 0);
}

Test(export_options, layers_that_are_left_out_between_others_leave_no_trace)
{
	trial.feed.kinds = with_mtp;
	trial.options.mtp = true;
	trial.options.layer_end = 1;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 2);
	cr_assert(trial_is("routes", 1, 0, 1, 1, 0));
	cr_assert(trial_is("routes", 1, 1, 1, 1, 2));
}

Test(export_options, failure_9_layers_of_pipeline_stages_are_joined_by_number)
{
	const struct r3ring_span prompt = trial_span(1, 0, 2);
	struct feed second;

	trial.feed.rank.pp.size = 2;
	trial_begin("safetensors");
	second = feed_channel(&trial.feed, "test/1");
	second.rank.pp = (struct r3ring_coordinate){.index = 1, .size = 2};
	second.first_layer = FEED_LAYERS;
	second.salt = 5;
	feed_schema(&second);
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_begin(&second, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &prompt, 1);
	feed_whole(&second, 1, 2, &prompt, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 3);
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 3);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 2 * FEED_LAYERS);
	cr_assert(trial_is("routes", 1, 2, 1, 1, 2));
	trial.feed.salt = 5;
	cr_assert(trial_is("routes", 1, 3, 1, 1, 0));
}

/* ---- types and fills ---------------------------------------------------- */

Test(export_options, failure_24_an_id_above_255_keeps_its_value_in_each_type_that_has_it)
{
	static const enum export_dtype dtypes[] = {EXPORT_U16, EXPORT_I16, EXPORT_I32, EXPORT_I64};

	trial.feed.experts = 384;
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
		trial.options.dtype = dtypes[i];
		trial_begin("safetensors");
		trial_request(1, "a", 1);
		trial_finish();
		trial_read();
		for (uint32_t row = 0; row < 3; row++)
			cr_assert(trial_is("routes", row, 1, 1, row, 1));
		safetensors_free(&trial.file);
	}
}

Test(export_options, failure_25_all_of_an_output_is_of_the_type_that_the_model_asks_for)
{
	trial.feed.experts = 200;
	trial.options.dtype = EXPORT_U8;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_finish();
	trial_read();
	cr_assert_str_eq(safetensors_tensor(&trial.file, "routes").dtype, "U8");
	cr_assert(trial_is("routes", 6, 0, 3, 2, 0));
}

static void fill_with(enum export_fill fill, enum export_dtype dtype)
{
	trial.options.missing = fill;
	trial.options.dtype = dtype;
	trial_begin("safetensors");
	trial_gapped_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(trial.summary.filled[R3RING_CAUSE_RING_FULL], FEED_LAYERS);
}

Test(export_options, failure_36_what_is_missing_is_minus_one_where_that_is_chosen)
{
	fill_with(EXPORT_FILL_MINUS_ONE, EXPORT_I32);
	expect_row(3, -1, -1);
	cr_assert_str_eq(safetensors_metadata(&trial.file, "missing"), "-1");
}

Test(export_options, failure_26_minus_one_as_u16_is_ffff_which_is_no_expert)
{
	fill_with(EXPORT_FILL_MINUS_ONE, EXPORT_U16);
	expect_row(3, 0xFFFF, 0xFFFF);
}

Test(export_options, failure_36_what_is_missing_is_zero_where_that_is_chosen)
{
	fill_with(EXPORT_FILL_ZEROS, EXPORT_U16);
	expect_row(3, 0, 0);
}

Test(export_options, failure_36_what_is_missing_is_distinct_experts_where_that_is_chosen)
{
	fill_with(EXPORT_FILL_ARANGE, EXPORT_I64);
	expect_row(3, 0, 1);
	cr_assert_eq(valid(2, 0), 1);
}

Test(export_options, what_was_lost_and_what_never_was_are_filled_apart)
{
	trial.options.rows = EXPORT_ROWS_FULL;
	trial.options.pad = EXPORT_FILL_ARANGE;
	trial.feed.experts = 300;
	fill_with(EXPORT_FILL_MINUS_ONE, EXPORT_I16);
	expect_row(3, -1, -1);
	expect_row(4, 0, 1);
}

/* ---- turns of a session -------------------------------------------------- */

/* The second turn's prompt: the first's five tokens and two of its own. */
static void second_turn(uint64_t weight_version)
{
	const struct r3ring_span prompt = trial_span(2, 0, 7);

	trial.feed.weight_version = weight_version;
	feed_begin(&trial.feed, 2, "turn-2", 7, 0);
	feed_whole(&trial.feed, 3, 7, &prompt, 1);
	feed_end(&trial.feed, 2, R3RING_END_FINISHED, 0, 8);
}

static void two_turns(uint64_t weight_version)
{
	trial.feed.session = "s";
	trial.options.join = true;
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_begin("safetensors");
	trial_request(1, "turn-1", 1);
	cr_assert_eq(trial_take(), 0);
	second_turn(weight_version);
	trial_finish();
	trial_read();
}

Test(export_options, the_last_token_of_a_turn_has_the_row_of_the_turn_that_consumed_it)
{
	two_turns(0);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		cr_assert(trial_is("routes", 4, layer, 3, 4, layer));
		cr_assert_eq(valid(4, layer), 1);
	}
	cr_assert_eq(valid(12, 0), 0);
	cr_assert_eq(trial.summary.joined, 1);
	cr_assert_eq(trial.summary.padded, FEED_LAYERS);
}

Test(export_options, a_turn_under_other_weights_supplies_nothing)
{
	two_turns(9);
	expect_row(4, 0xFFFF, 0xFFFF);
	cr_assert_eq(trial.summary.joined, 0);
	cr_assert_eq(trial.summary.padded, 2 * FEED_LAYERS);
}

Test(export_options, a_turn_of_another_session_supplies_nothing)
{
	trial.feed.session = "s";
	trial.options.join = true;
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_begin("safetensors");
	trial_request(1, "turn-1", 1);
	trial.feed.session = "t";
	second_turn(0);
	trial_finish();
	trial_read();
	expect_row(4, 0xFFFF, 0xFFFF);
}

Test(export_options, turns_that_wait_are_forgotten_beyond_a_bound_and_that_is_told)
{
	struct export_sessions *sessions = export_sessions_create();
	struct export_turn turn = {.tokens = 1};
	char name[16];

	for (uint32_t i = 0; i < EXPORT_SESSIONS_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		turn.row = i;
		cr_assert_eq(export_sessions_put(sessions, name, &turn), 0);
	}
	cr_assert_eq(export_sessions_put(sessions, "0", &turn), 0);
	cr_assert_eq(export_sessions_put(sessions, "more", &turn), 1);
	cr_assert_eq(export_sessions_take(sessions, "0", &turn), 0);
	cr_assert_eq(export_sessions_take(sessions, "1", &turn), 1);
	cr_assert_eq(turn.row, 1);
	cr_assert_eq(export_sessions_take(sessions, "1", &turn), 0);
	export_sessions_destroy(sessions);
}
