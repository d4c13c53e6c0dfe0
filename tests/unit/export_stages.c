/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that lack stages of a pipeline: their layers are not taken for ones that do not route. */
#include <errno.h>
#include <string.h>

#include "tests/unit/export_fixture.h"

#define EXPERTS 256u

TestSuite(export_stages, .init = trial_open, .fini = trial_close);

/* ---- ranks of an engine --------------------------------------------------- */

struct rank {
	const char *name;
	struct feed feed;
};

static int fed; /* what the exporter said first that was not 0 */

static void give(void *ctx, const struct r3ring_view *view)
{
	const struct rank *rank = ctx;
	const struct archive_item item = {
		.kind = ARCHIVE_RECORD, .view = *view, .time_ns = trial.now_ns, .name = rank->name};

	if (!fed)
		fed = export_feed(trial.exporter, &item, &trial.err);
}

static void open_in(const char *format)
{
	fed = 0;
	trial.feed.experts = EXPERTS;
	trial.options.format = format;
	trial.options.out = trial.out;
	cr_assert_eq(export_open(&trial.exporter, &trial.options, &trial.err), 0, "%s",
		     trial.err.text);
}

/* Tells of a stage that has layers [first, first + FEED_LAYERS) of the model. */
static void begin_rank(struct rank *rank, uint16_t dp, uint16_t stage, uint16_t stages,
		       int32_t first)
{
	rank->feed = (struct feed){
		.generation = 1,
		.first_layer = first,
		.experts = EXPERTS,
		.rank = {.dp = {dp, 2}, .pp = {stage, stages}},
		.record = give,
		.ctx = rank,
	};
	feed_schema(&rank->feed);
}

/* Three tokens of prompt, one more that is kept. */
static void run(struct rank *rank, const char *id)
{
	const struct r3ring_span prompt = trial_span(1, 0, 3);

	feed_begin(&rank->feed, 1, id, 3, 0);
	feed_whole(&rank->feed, 1, 3, &prompt, 1);
	feed_end(&rank->feed, 1, R3RING_END_FINISHED, 0, 4);
}

/* Of a pipeline of two stages, three layers each, this one alone. */
static void record_stage(const char *format, uint16_t stage)
{
	struct rank rank = {.name = "test/0"};

	open_in(format);
	begin_rank(&rank, 0, stage, 2, stage * 3);
	run(&rank, "a");
}

static void expect_refused(const char *why)
{
	cr_assert_eq(fed, 0, "%s", trial.err.text);
	trial_refused(-ENODATA, why);
}

/* ---- which are refused ------------------------------------------------------ */

static const char *const trainers[] = {"verl", "nemo-rl", "skyrl", "prime-rl", "slime", "miles"};

Test(export_stages, trainers_formats_refuse_an_archive_without_the_first_stage)
{
	for (size_t i = 0; i < sizeof(trainers) / sizeof(*trainers); i++) {
		record_stage(trainers[i], 1);
		expect_refused("pipeline stage 0 of 2 (counted from 0) was not recorded");
	}
}

/* The model would look as if it ended there. */
Test(export_stages, trainers_formats_refuse_an_archive_without_the_last_stage)
{
	for (size_t i = 0; i < sizeof(trainers) / sizeof(*trainers); i++) {
		record_stage(trainers[i], 0);
		expect_refused("pipeline stage 1 of 2 (counted from 0) was not recorded");
	}
}

Test(export_stages, layers_that_nobody_knows_are_not_filled)
{
	trial.options.missing = EXPORT_FILL_ZEROS;
	record_stage("verl", 1);
	expect_refused("they would be padded as if they did not route");
}

Test(export_stages, the_number_of_the_models_layers_does_not_say_which_of_them_route)
{
	trial.options.model_layers = 6;
	record_stage("verl", 0);
	expect_refused("pipeline stage 1 of 2");
}

Test(export_stages, other_formats_refuse_it_too_and_name_the_layers_that_are_there)
{
	record_stage("safetensors", 1);
	expect_refused("take the layers that are here: --layers 3:6");
}

Test(export_stages, all_stages_that_are_missing_are_named)
{
	struct rank rank[2] = {{.name = "test/0"}, {.name = "test/1"}};

	open_in("safetensors");
	begin_rank(&rank[0], 0, 1, 8, 3);
	begin_rank(&rank[1], 0, 3, 8, 9);
	run(&rank[0], "a");
	expect_refused("pipeline stage 0, 2, 4 to 7 of 8");
}

/* ---- layers that are known ---------------------------------------------------- */

Test(export_stages, layers_of_the_stage_that_is_there_are_written)
{
	trial.options.layer_first = 3;
	trial.options.layer_end = 6;
	record_stage("safetensors", 1);
	cr_assert_eq(fed, 0);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], FEED_LAYERS);
	for (uint32_t row = 0; row < 3; row++)
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
			cr_assert(trial_is("routes", row, layer, 1, row, layer));
}

Test(export_stages, layers_that_reach_into_a_stage_that_is_not_there_are_refused)
{
	trial.options.layer_first = 2;
	trial.options.layer_end = 6;
	record_stage("safetensors", 1);
	expect_refused("pipeline stage 0 of 2");
	trial.options.layer_first = 0;
	trial.options.layer_end = 4;
	record_stage("safetensors", 0);
	expect_refused("pipeline stage 1 of 2");
}

Test(export_stages, dense_layers_are_not_padded_beside_a_stage_that_is_not_there)
{
	trial.options.layer_first = 3;
	trial.options.layer_end = 6;
	trial.options.layers = EXPORT_LAYERS_ALL;
	record_stage("safetensors", 1);
	expect_refused("they would be padded");
}

Test(export_stages, layers_of_multi_token_prediction_are_not_lacking_with_the_last_stage)
{
	trial.options.layer_first = 0;
	trial.options.layer_end = 3;
	trial.options.mtp = true;
	record_stage("safetensors", 0);
	expect_refused("pipeline stage 1 of 2");
}

/* Layers 3 to 5 lie between the first two stages of three, and route nothing. */
Test(export_stages, dense_layers_between_two_stages_are_known_to_be_that)
{
	struct rank rank[2] = {{.name = "test/0"}, {.name = "test/1"}};

	trial.options.layer_first = 0;
	trial.options.layer_end = 9;
	open_in("safetensors");
	begin_rank(&rank[0], 0, 0, 3, 0);
	begin_rank(&rank[1], 0, 1, 3, 6);
	run(&rank[0], "a");
	run(&rank[1], "a");
	cr_assert_eq(fed, 0);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 2 * FEED_LAYERS);
}

/* Another data-parallel rank has the stage, so that its layers are known. */
Test(export_stages, known_layers_of_a_stage_that_is_not_there_are_missing)
{
	struct rank rank[3] = {{.name = "test/0"}, {.name = "test/1"}, {.name = "test/2"}};

	trial.options.missing = EXPORT_FILL_ZEROS;
	open_in("verl");
	begin_rank(&rank[0], 0, 0, 2, 0);
	begin_rank(&rank[1], 1, 0, 2, 0);
	begin_rank(&rank[2], 1, 1, 2, 3);
	run(&rank[0], "half");
	run(&rank[1], "whole");
	run(&rank[2], "whole");
	cr_assert_eq(fed, 0);
	trial_finish();
	cr_assert_eq(trial.summary.layers, 2 * FEED_LAYERS);
	cr_assert_eq(trial.summary.filled[R3RING_MISSING_OTHER_LAYERS], 4 * FEED_LAYERS);
}

/* ---- when requests ended ------------------------------------------------------- */

/* The other stage would tell it, too, which it never does. */
Test(export_stages, requests_of_part_of_a_pipeline_are_not_chosen_by_the_end_of_the_archive)
{
	trial.options.layer_first = 3;
	trial.options.layer_end = 6;
	trial.options.since_ns = trial.now_ns + 1;
	record_stage("safetensors", 1);
	expect_refused("--since: 1 ranks of the engine were not recorded");
}

Test(export_stages, requests_of_part_of_a_pipeline_end_when_as_many_channels_as_are_there_say_so)
{
	trial.options.layer_first = 3;
	trial.options.layer_end = 6;
	trial.options.min_ends = 1;
	trial.options.since_ns = trial.now_ns;
	record_stage("safetensors", 1);
	cr_assert_eq(fed, 0);
	trial_finish();
	cr_assert_eq(trial.summary.requests, 1);
	trial.options.since_ns = trial.now_ns + 1;
	record_stage("safetensors", 1);
	cr_assert_eq(fed, 0);
	cr_assert_eq(export_finish(trial.exporter, &trial.summary, &trial.err), -ENOENT);
	cr_assert_not_null(strstr(trial.err.text, "1 ended at other times"), "%s", trial.err.text);
}
