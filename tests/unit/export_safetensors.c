/* SPDX-License-Identifier: Apache-2.0 */
/* What a safetensors output holds. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_safetensors, .init = trial_open, .fini = trial_close);

static int64_t number(const char *name, size_t place)
{
	const struct safetensors_tensor tensor = safetensors_tensor(&trial.file, name);
	int64_t value;

	cr_assert_eq(tensor.rank, 1);
	cr_assert_lt(place, tensor.shape[0]);
	memcpy(&value, (const int64_t *)tensor.data + place, sizeof(value));
	return value;
}

Test(export_safetensors, each_row_is_the_one_that_the_request_ran)
{
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[0], 8);
	cr_assert_str_eq(safetensors_tensor(&trial.file, "routes").dtype, "U16");
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		for (uint32_t row = 0; row < 3; row++) {
			cr_assert(trial_is("routes", row, layer, 1, row, layer));
			cr_assert(trial_is("routes", row + 4, layer, 3, row, layer));
		}
		cr_assert(trial_is("routes", 3, layer, 2, 0, layer));
		cr_assert(trial_is("routes", 7, layer, 4, 0, layer));
	}
}

Test(export_safetensors, requests_rows_and_layers_can_be_told_apart)
{
	trial.feed.first_layer = 3;
	trial.feed.weight_version = 7;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_finish();
	trial_read();
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(number("cu_seqlens", i), (int64_t)i * 4);
	for (size_t i = 0; i < 8; i++) {
		cr_assert_eq(number("positions", i), (int64_t)i % 4);
		cr_assert_eq(number("weight_version", i), 7);
	}
	for (size_t i = 0; i < FEED_LAYERS; i++)
		cr_assert_eq(number("layer_ids", i), (int64_t)i + 3);
	cr_assert_eq(number("prompt_tokens", 1), 3);
	cr_assert_str_eq(safetensors_metadata(&trial.file, "request_ids"), "[\"a\",\"b\"]");
	cr_assert_str_eq(safetensors_metadata(&trial.file, "model"), "small");
	cr_assert_str_eq(safetensors_metadata(&trial.file, "id_space"), "logical");
	cr_assert_str_eq(safetensors_metadata(&trial.file, "rows"), "minus-one");
	cr_assert_str_eq(safetensors_metadata(&trial.file, "missing"), "error");
}

Test(export_safetensors, the_mask_says_which_cells_are_true)
{
	const uint8_t *valid;

	trial.options.missing = EXPORT_FILL_ZEROS;
	trial_begin("safetensors");
	trial_gapped_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(safetensors_tensor(&trial.file, "valid").dtype, "BOOL");
	valid = safetensors_tensor(&trial.file, "valid").data;
	for (size_t cell = 0; cell < (size_t)4 * FEED_LAYERS; cell++)
		cr_assert_eq(valid[cell], cell < (size_t)3 * FEED_LAYERS);
}

static void expect_aligned(const char *name, size_t bytes)
{
	cr_assert_eq(safetensors_tensor(&trial.file, name).offset % bytes, 0, "%s", name);
}

/* 12 bytes a row: of an odd number of rows the next tensor would begin in the middle. */
Test(export_safetensors, numbers_are_aligned_in_the_file_whatever_the_number_of_rows)
{
	trial.options.position_first = 0;
	trial.options.position_end = 3;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	expect_aligned("routes", 2);
	expect_aligned("positions", 8);
	expect_aligned("cu_seqlens", 8);
	for (uint32_t row = 0; row < 3; row++)
		cr_assert(trial_is("routes", row, 2, 1, row, 2));
}

Test(export_safetensors, more_ids_than_there_was_room_for_have_room_all_the_same)
{
	char id[R3RING_TEXT_ID_MAX + 1];
	json_t *ids;

	trial_begin("safetensors");
	for (uint32_t i = 0; i < 400; i++) {
		snprintf(id, sizeof(id), "%0250u", i);
		trial_request(i + 1, id, i * 2 + 1);
		cr_assert_eq(trial_take(), 0);
	}
	trial_finish();
	trial_read();
	cr_assert_gt(trial.file.begin, 65536);
	ids = json_loads(safetensors_metadata(&trial.file, "request_ids"), 0, NULL);
	cr_assert_eq(json_array_size(ids), 400);
	for (uint32_t i = 0; i < 400; i++) {
		snprintf(id, sizeof(id), "%0250u", i);
		cr_assert_str_eq(json_string_value(json_array_get(ids, i)), id);
		cr_assert(trial_is("routes", i * 4 + 2, 1, i * 2 + 1, 2, 1));
	}
	json_decref(ids);
}

Test(export_safetensors, an_id_may_have_any_letters)
{
	static const char *const id[] = {"\"quoted\" \\ slashed", "tab\tline\n",
					 "\xC3\xA9t\xC3\xA9", "not\xFFutf8"};
	json_t *ids;

	trial_begin("safetensors");
	for (uint32_t i = 0; i < 4; i++) {
		trial_request(i + 1, id[i], i * 2 + 1);
		cr_assert_eq(trial_take(), 0);
	}
	trial_finish();
	trial_read();
	ids = json_loads(safetensors_metadata(&trial.file, "request_ids"), 0, NULL);
	cr_assert_not_null(ids);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_str_eq(json_string_value(json_array_get(ids, i)), id[i]);
	cr_assert_str_eq(json_string_value(json_array_get(ids, 3)), "not\xEF\xBF\xBDutf8");
	json_decref(ids);
}

Test(export_safetensors, failure_33_a_sample_takes_as_many_bytes_as_its_ids)
{
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").bytes,
		     4 * FEED_LAYERS * FEED_TOP_K * sizeof(uint16_t));
	cr_assert_eq(trial.summary.bytes, trial.file.bytes);
}
