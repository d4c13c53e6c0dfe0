/* SPDX-License-Identifier: Apache-2.0 */
/* What trainers cannot take, since they go by places or count holes, is refused. */
#include <errno.h>
#include <string.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_whole, .init = trial_open, .fini = trial_close);

static const char *const by_place[] = {"verl", "nemo-rl", "skyrl", "prime-rl", "slime", "miles"};
#define FORMATS (sizeof(by_place) / sizeof(*by_place))

Test(export_whole, failure_36_a_trainer_that_goes_by_layer_is_given_all)
{
	trial.options.layer_first = 3;
	trial.options.layer_end = 9;
	for (size_t i = 0; i < FORMATS; i++) {
		trial_not_opened(by_place[i], -EINVAL, "--layers: ");
		cr_assert_not_null(strstr(trial.err.text, "leave it out"), "%s", trial.err.text);
	}
}

Test(export_whole, failure_36_a_trainer_that_goes_by_position_is_given_all)
{
	trial.options.position_first = 600;
	for (size_t i = 0; i < FORMATS; i++)
		trial_not_opened(by_place[i], -EINVAL, "--positions: ");
	trial.options.position_first = 0;
	trial.options.position_end = 7;
	trial_not_opened("slime", -EINVAL, "rows from position 0 on");
}

Test(export_whole, failure_36_nemo_rl_is_given_no_type_without_a_minus_one)
{
	static const enum export_dtype none[] = {EXPORT_U8, EXPORT_U16, EXPORT_I64};

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		trial.options.dtype = none[i];
		trial_not_opened("nemo-rl", -EINVAL, "nemo-rl takes int8, int16 or int32");
	}
	trial.options.dtype = EXPORT_I32;
	trial_begin("nemo-rl");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(safetensors_tensor(&trial.file, "routed_experts").dtype, "I32");
}

/* ---- holes that slime tolerates ----------------------------------------- */

/* A request of @rows, the first @lost of which were run elsewhere. */
static void ask_slime(uint32_t rows, uint32_t lost)
{
	struct r3ring_span spans[2] = {trial_span(1, 0, lost), trial_span(1, lost, rows - lost)};

	spans[0].kind = R3RING_SPAN_EXTERNAL;
	trial.options.missing = EXPORT_FILL_ZEROS;
	trial_begin("slime");
	feed_begin(&trial.feed, 1, "a", rows, 0);
	feed_whole(&trial.feed, 1, rows - lost, lost ? spans : spans + 1, lost ? 2 : 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, rows + 1);
}

Test(export_whole, failure_36_slime_is_given_64_rows_of_zeros)
{
	ask_slime(1013, 64);
	trial_finish();
}

Test(export_whole, failure_36_slime_is_not_given_65_rows_of_zeros)
{
	ask_slime(1013, 65);
	trial_refused(-ENODATA, "request 'a': 65 of its 1013 rows are missing, and slime takes at "
				"most 64 as zeros; nothing is written");
}

Test(export_whole, failure_36_slime_is_given_one_row_in_a_hundred)
{
	ask_slime(10099, 100);
	trial_finish();
}

Test(export_whole, failure_36_slime_is_not_given_more_than_one_row_in_a_hundred)
{
	ask_slime(10099, 101);
	trial_refused(-ENODATA, "101 of its 10099 rows are missing, and slime takes at most 100");
}

Test(export_whole, failure_36_slime_is_not_given_zeros_alone)
{
	ask_slime(20, 20);
	trial_refused(-ENODATA, "20 of its 20 rows are missing, and slime takes at most 64 as "
				"zeros, and not all");
}

Test(export_whole, failure_36_slime_is_not_given_rows_of_which_some_layers_are)
{
	const struct r3ring_span prompt = trial_span(1, 0, 3), next = trial_span(1, 3, 2);

	trial.options.missing = EXPORT_FILL_ZEROS;
	trial_begin("slime");
	feed_begin(&trial.feed, 1, "a", 3, 0);
	feed_whole(&trial.feed, 1, 3, &prompt, 1);
	feed_step(&trial.feed, 2, 2, &next, 1, NULL, 0);
	feed_layers(&trial.feed, 2, 2, 1, FEED_LAYERS);
	feed_step_end(&trial.feed, 2, 1, R3RING_CAUSE_NOT_CAPTURED);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 6);
	trial_refused(-ENODATA, "request 'a': slime refuses zeros in some layers only, which stand "
				"in 2 rows, the first at position 3");
}
