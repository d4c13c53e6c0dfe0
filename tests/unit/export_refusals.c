/* SPDX-License-Identifier: Apache-2.0 */
/* What is not exported: said with its reason and remedy, and nothing is left of it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_refusals, .init = trial_open, .fini = trial_close);

/* ---- what is missing ---------------------------------------------------- */

Test(export_refusals, what_is_missing_is_named_with_request_positions_and_cause)
{
	trial_begin("safetensors");
	trial_request(1, "whole", 1);
	trial_gapped_request(2, "holed", 3);
	trial_refused(-ENODATA,
		      "request 'holed': positions 3 to 3 of layer 0 are missing: ring_full");
}

Test(export_refusals, only_fills_that_the_format_takes_are_offered)
{
	trial.feed.experts = 300;
	trial_begin("verl");
	trial_gapped_request(1, "holed", 3);
	trial_refused(-ENODATA, "nothing is written. --missing zeros or arange fills them");
}

Test(export_refusals, every_fill_is_offered_where_all_are_taken)
{
	trial_begin("safetensors");
	trial_gapped_request(1, "holed", 3);
	trial_refused(-ENODATA, "--missing -1 or zeros or arange fills them, --positions");
}

/* Four rows of three layers: the fifth token was never fed back. */
Test(export_refusals, of_what_is_missing_only_what_would_be_written_is_counted)
{
	trial_begin("safetensors");
	trial_gapped_request(1, "holed", 3);
	trial_refused(-ENODATA, "(of the 12 cells to be written 3 are missing for that)");
}

Test(export_refusals, positions_that_are_not_asked_for_are_not_counted)
{
	trial.options.position_first = 2;
	trial.options.position_end = 4;
	trial_begin("safetensors");
	trial_gapped_request(1, "holed", 3);
	trial_refused(-ENODATA, "(of the 6 cells to be written 3 are missing for that)");
}

Test(export_refusals, a_last_row_that_is_padded_is_written_and_not_missing)
{
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_begin("safetensors");
	trial_gapped_request(1, "holed", 3);
	trial_refused(-ENODATA, "(of the 15 cells to be written 3 are missing for that)");
}

/* More rows than the buffers take at once, and losses in many of them. */
Test(export_refusals, what_is_missing_is_counted_to_the_end_of_a_long_request)
{
	struct r3ring_span part = trial_span(1, 0, 30000);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "long", 30000, 0);
	feed_whole(&trial.feed, 1, 30000, &part, 1);
	for (uint32_t i = 0; i < 20; i++) {
		part.position = 30000 * (i + 1);
		if (i % 2)
			feed_whole(&trial.feed, i + 2, 30000, &part, 1);
		else
			feed_lost(&trial.feed, i + 2, i + 2, R3RING_CAUSE_RING_FULL, 0);
	}
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 630001);
	trial_refused(-ENODATA, "(of the 1890000 cells to be written 900000 are missing for that)");
}

/* Routes of a prefix that another machine ran. */
Test(export_refusals, failure_11_what_was_loaded_from_elsewhere_is_missing)
{
	struct r3ring_span spans[2] = {trial_span(1, 0, 2), trial_span(1, 2, 1)};

	spans[0].kind = R3RING_SPAN_EXTERNAL;
	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 3, 0);
	spans[1].row = 0;
	feed_whole(&trial.feed, 1, 1, spans, 2);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 4);
	trial_refused(-ENODATA, "positions 0 to 1 of layer 0 are missing: external");
}

Test(export_refusals, failure_15_rows_behind_a_key_that_nobody_knows_are_missing)
{
	struct r3ring_span span = trial_span(1, 0, 2);
	const uint64_t key = 77;

	span.kind = R3RING_SPAN_CACHED;
	span.keys = 1;
	trial.feed.key_kind = R3RING_KEYS_SLOT;
	trial.feed.tokens_per_key = 2;
	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole_keys(&trial.feed, 1, 0, &span, 1, &key, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 3);
	trial_refused(-ENODATA, "positions 0 to 1 of layer 0 are missing: unknown_key");
}

Test(export_refusals, failure_45_rows_behind_the_key_of_a_dropped_step_are_missing)
{
	struct r3ring_span span = trial_span(1, 0, 2);
	const uint64_t key = 77;

	span.keys = 1;
	trial.feed.key_kind = R3RING_KEYS_SLOT;
	trial.feed.tokens_per_key = 2;
	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "first", 2, 0);
	feed_whole_keys(&trial.feed, 1, 2, &span, 1, &key, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 3);
	cr_assert_eq(trial_take(), 0);
	/* The slot's next owner ran in a step that was dropped. */
	span.request = 2;
	feed_begin(&trial.feed, 2, "second", 2, 0);
	trial.feed.flags = R3RING_STEP_DROPPED;
	feed_step(&trial.feed, 2, 2, &span, 1, &key, 1);
	feed_lost(&trial.feed, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	trial.feed.flags = 0;
	span = trial_span(3, 0, 2);
	span.kind = R3RING_SPAN_CACHED;
	span.keys = 1;
	feed_begin(&trial.feed, 3, "third", 2, 0);
	feed_whole_keys(&trial.feed, 3, 0, &span, 1, &key, 1);
	feed_end(&trial.feed, 3, R3RING_END_FINISHED, 0, 3);
	trial_refused(-ENODATA, "request 'third': positions 0 to 1 of layer 0 are missing: "
				"buffer_full");
}

Test(export_refusals, failure_8_a_shard_is_not_taken_for_the_whole)
{
	const struct r3ring_span all = trial_span(1, 0, 4);

	trial.feed.rank.sp.size = 2;
	trial_begin("safetensors");
	trial.feed.row_end = 2;
	feed_begin(&trial.feed, 1, "a", 4, 0);
	feed_whole(&trial.feed, 1, 4, &all, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 5);
	trial_refused(-ENODATA, "request 'a': positions 2 to 3 of layer 0 are missing");
}

Test(export_refusals, failure_49_nothing_is_attributed_before_a_keyframe)
{
	const struct r3ring_span all = trial_span(1, 0, 4);

	trial_begin("safetensors");
	feed_whole(&trial.feed, 1, 4, &all, 1);
	trial_refused(-ENOENT, "no request is there to be exported");
}

/* ---- types -------------------------------------------------------------- */

Test(export_refusals, failure_24_a_type_that_does_not_hold_every_expert_is_refused)
{
	trial.feed.experts = 384;
	trial.options.dtype = EXPORT_U8;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ERANGE, "384 experts: ids up to 383 do not fit u8");
}

Test(export_refusals, failure_24_a_signed_type_holds_half_as_many)
{
	trial.feed.experts = 40000;
	trial.options.dtype = EXPORT_I16;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ERANGE, "do not fit i16");
}

Test(export_refusals, failure_26_minus_one_is_refused_where_it_would_read_as_expert_255)
{
	trial.feed.experts = 200;
	trial.options.dtype = EXPORT_U8;
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ERANGE, "--missing -1: u8 has no -1");
}

Test(export_refusals, failure_26_so_is_a_last_row_of_it)
{
	trial.feed.experts = 200;
	trial.options.dtype = EXPORT_U8;
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ERANGE, "--pad -1: u8 has no -1");
}

/* ---- fills --------------------------------------------------------------- */

Test(export_refusals, failure_36_a_fill_that_a_trainer_cannot_take_is_refused)
{
	static const char *const strict[] = {"verl", "skyrl", "prime-rl", "slime"};

	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	for (size_t i = 0; i < sizeof(strict) / sizeof(*strict); i++) {
		trial_not_opened(strict[i], -EINVAL, "--missing -1: ");
		cr_assert_not_null(strstr(trial.err.text, strict[i]), "%s", trial.err.text);
	}
	trial.options.missing = EXPORT_FILL_ZEROS;
	trial_not_opened("skyrl", -EINVAL, "--missing zeros: skyrl needs distinct experts");
}

static void expect_warning(const char *format, enum export_fill fill, const char *warning)
{
	trial.options.missing = fill;
	trial.feed.experts = 100;
	trial_begin(format);
	trial_gapped_request(1, "a", 1);
	trial_finish();
	cr_assert_eq(trial.summary.warning != NULL, warning != NULL, "%s", format);
	if (warning)
		cr_assert_not_null(strstr(trial.summary.warning, warning), "%s: %s", format,
				   trial.summary.warning);
}

Test(export_refusals, failure_36_of_a_fill_that_is_taken_for_routes_it_is_warned)
{
	expect_warning("verl", EXPORT_FILL_ZEROS, "replays expert 0");
	expect_warning("nemo-rl", EXPORT_FILL_MINUS_ONE, NULL);
	expect_warning("nemo-rl", EXPORT_FILL_ZEROS, "-1 leaves it to the model");
	expect_warning("skyrl", EXPORT_FILL_ARANGE, "replays experts 0, 1");
	expect_warning("prime-rl", EXPORT_FILL_ARANGE, "replays experts 0, 1");
	expect_warning("slime", EXPORT_FILL_ZEROS, "at most 64 rows");
	expect_warning("miles", EXPORT_FILL_MINUS_ONE, "routes all of them anew");
	expect_warning("npy", EXPORT_FILL_ZEROS, "no mask");
	expect_warning("npy", EXPORT_FILL_MINUS_ONE, NULL);
	expect_warning("safetensors", EXPORT_FILL_ZEROS, NULL);
}

/* ---- options that do not fit -------------------------------------------- */

Test(export_refusals, a_format_that_nobody_knows_is_refused)
{
	trial_not_opened("parquet", -EINVAL, "--format parquet: there is no such format");
}

Test(export_refusals, a_trainers_type_is_not_changed)
{
	trial.options.dtype = EXPORT_U8;
	trial_not_opened("slime", -EINVAL, "--dtype u8: slime is always i32");
}

Test(export_refusals, a_trainers_rule_of_rows_is_not_changed)
{
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_not_opened("miles", -EINVAL, "--rows full: miles has its own rule");
}

/* What refuses a type is not to be told to give one. */
Test(export_refusals, a_signed_type_that_is_too_narrow_is_to_be_left_out)
{
	trial.feed.experts = 300;
	trial.options.dtype = EXPORT_I8;
	trial_begin("nemo-rl");
	trial_request(1, "a", 1);
	trial_refused(-ERANGE, "ids up to 299 do not fit i8, which ends at 127; leave --dtype out");
}

Test(export_refusals, a_padding_that_a_trainer_takes_for_experts_is_refused)
{
	static const char *const strict[] = {"verl", "skyrl", "prime-rl", "slime"};

	trial.options.pad = EXPORT_FILL_MINUS_ONE;
	for (size_t i = 0; i < sizeof(strict) / sizeof(*strict); i++)
		trial_not_opened(strict[i], -EINVAL, "--pad -1: ");
	trial.options.pad = EXPORT_FILL_ZEROS;
	trial_not_opened("skyrl", -EINVAL, "--pad zeros: skyrl takes it neither there");
}

Test(export_refusals, what_goes_by_the_places_of_layers_takes_no_part_of_them)
{
	static const char *const all[] = {"verl", "skyrl", "prime-rl", "slime", "miles"};

	trial.options.layers = EXPORT_LAYERS_MOE;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		trial_not_opened(all[i], -EINVAL, "--moe-layers: ");
	trial.options.layers = EXPORT_LAYERS_DEFAULT;
	trial.options.position_first = 1;
	trial_not_opened("nemo-rl", -EINVAL, "--positions: nemo-rl takes all");
}

/* Whose rule of rows cannot be changed either. */
Test(export_refusals, turns_are_not_joined_for_a_trainer_that_has_no_last_row)
{
	trial.options.join = true;
	trial_not_opened("skyrl", -EINVAL,
			 "--join-turns: skyrl has no row for the last token; leave it out");
}

Test(export_refusals, turns_are_joined_only_where_there_is_a_last_row)
{
	trial.options.join = true;
	trial_not_opened("safetensors", -EINVAL, "give --rows full");
}

Test(export_refusals, turns_are_joined_only_in_what_can_be_rewritten)
{
	trial.options.join = true;
	trial.options.rows = EXPORT_ROWS_FULL;
	trial_not_opened(
		"jsonl", -EINVAL,
		"--join-turns: jsonl cannot be rewritten; export safetensors with --rows full");
}

Test(export_refusals, an_empty_range_is_refused)
{
	trial.options.layer_first = 4;
	trial.options.layer_end = 4;
	trial_not_opened("npy", -EINVAL, "--layers 4:4: no layer is in that range");
	trial.options.layer_end = 0;
	trial.options.position_first = 9;
	trial.options.position_end = 8;
	trial_not_opened("npy", -EINVAL, "--positions 9:8: no position is in that range");
}

Test(export_refusals, layers_that_the_model_does_not_have_are_refused)
{
	trial.options.layer_first = 7;
	trial.options.layer_end = 9;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ENOENT, "--layers 7:9: small has none of them");
}

Test(export_refusals, positions_that_no_request_has_are_refused)
{
	trial.options.position_first = 4;
	trial.options.position_end = 9;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ENOENT, "--positions 4:9: no request has a row there, the longest has 4");
}

Test(export_refusals, a_model_of_fewer_layers_than_route_is_refused)
{
	trial.options.layers = EXPORT_LAYERS_ALL;
	trial.options.model_layers = 1;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-EINVAL,
		      "--model-layers 1: small has a layer 2 that routes, so it has 3 at least");
}

/* ---- requests ----------------------------------------------------------- */

Test(export_refusals, a_request_that_is_not_there_is_named)
{
	static const char *const asked[] = {"a", "z"};

	trial.options.request = asked;
	trial.options.requests = 2;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ENOENT, "request 'z' is not in the archive");
}

Test(export_refusals, a_request_that_is_left_out_is_named_with_what_takes_it)
{
	static const char *const asked[] = {"a"};
	const struct r3ring_span one = trial_span(1, 0, 2);

	trial.options.request = asked;
	trial.options.requests = 1;
	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &one, 1);
	feed_end(&trial.feed, 1, R3RING_END_ABORTED, 0, 3);
	trial_refused(-ENOENT, "request 'a' was aborted: --include aborted takes it");
}

Test(export_refusals, a_second_request_is_refused_where_one_has_room)
{
	trial_begin("npy");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_refused(-EFBIG, "npy holds one request, and 'b' is a second; nothing is written. "
			      "Choose one with --request ID");
}

Test(export_refusals, two_requests_are_refused_at_once_where_one_has_room)
{
	static const char *const asked[] = {"a", "b"};

	trial.options.request = asked;
	trial.options.requests = 2;
	trial_not_opened("npy", -EINVAL, "--request: npy holds one request, and 2 are asked for");
}

/* ---- the output --------------------------------------------------------- */

static void write_old(void)
{
	FILE *file = fopen(trial.out, "w");

	cr_assert_not_null(file);
	fputs("old", file);
	fclose(file);
}

static bool is_old(void)
{
	char text[8] = "";
	FILE *file = fopen(trial.out, "r");
	size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	return got == 3 && !strcmp(text, "old");
}

Test(export_refusals, an_output_that_was_there_stays_until_the_new_one_is_whole)
{
	write_old();
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	cr_assert_eq(trial_take(), 0);
	cr_assert(is_old());
	trial_finish();
	cr_assert(!is_old());
	trial_read();
}

Test(export_refusals, an_output_that_was_there_stays_where_the_new_one_fails)
{
	write_old();
	trial_begin("safetensors");
	trial_gapped_request(1, "a", 1);
	cr_assert_eq(trial_take(), -ENODATA);
	export_close(trial.exporter);
	trial.exporter = NULL;
	cr_assert(is_old());
	cr_assert_eq(trial_files(), 1);
}

Test(export_refusals, nothing_is_left_of_an_export_that_is_given_up)
{
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	cr_assert_eq(trial_take(), 0);
	cr_assert_eq(trial_files(), 0, "a kill now would leave files");
}

Test(export_refusals, a_directory_that_is_not_there_is_named_before_anything_is_read)
{
	char out[128];

	snprintf(out, sizeof(out), "%s/none/out", trial.dir);
	trial.options.out = out;
	trial_not_opened("safetensors", -ENOENT, "/none/out: directory of the output");
}

Test(export_refusals, what_is_no_file_is_not_replaced)
{
	trial.options.out = trial.dir;
	trial_not_opened("safetensors", -EISDIR, "is there and is no file");
	trial.options.out = "/dev/null";
	trial_not_opened("npy", -EINVAL, "is there and is no file");
}

Test(export_refusals, a_file_system_that_takes_no_more_is_named)
{
	const struct rlimit limit = {100000, 100000};
	const struct r3ring_span all = trial_span(1, 0, 20000);

	signal(SIGXFSZ, SIG_IGN);
	trial_begin("safetensors");
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	feed_begin(&trial.feed, 1, "long", 20000, 0);
	feed_whole(&trial.feed, 1, 20000, &all, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 20001);
	trial_refused(-EFBIG, "/out: write: File too large");
}
