/* SPDX-License-Identifier: Apache-2.0 */
/* The heatmap in a frame of `r3ring top`, and what is said of the load that it shows. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/top_shown.h"

TestSuite(top_heatmap, .fini = top_shown_free);

Test(top_heatmap, failure_29_the_uneven_layer_is_named_with_its_max_over_its_mean)
{
	double counts[2][8] = {{0}};

	for (int expert = 0; expert < 8; expert++)
		counts[0][expert] = counts[1][expert] = 1000;
	counts[1][6] = 9000;
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 2, 8, counts[0]);
	top_stage_draw(&stage, 24, 80);
	/* 9000 of 16000 over 8 experts: a mean of 2000. */
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | worst layer 4: 4.50x mean, 1 of 2 UNEVEN");
	cr_expect_eq(style_at(0, 15), GRID_BAD);
	expect_shown("hottest: layer 4 e6 4.50x, layer 3 e0 1.00x");
	expect_shown("|4.50x e6\n");
	expect_shown("|1.00x e0\n");
}

Test(top_heatmap, even_layers_are_said_to_be_even)
{
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | layers even; worst layer 4: 2.00x mean");
	cr_expect_eq(style_at(0, 15), GRID_GOOD);
}

Test(top_heatmap, a_few_tokens_are_not_called_uneven)
{
	const double counts[4] = {1, 4, 0, 0};

	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 1, 4, counts);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | too few tokens to call a layer uneven");
}

/* A mean of 1 in layer 3, all level 4 of 8 where 2 is the most; each expert takes 17
 * columns: 80 less "3", two bars, and "1.00x e0", by 4. */
Test(top_heatmap, cells_are_as_wide_as_there_is_room_and_coloured_by_the_scale)
{
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 4),
			 "layers by experts; linear to 2.00x; 1000 tokens");
	cr_expect_eq(style_at(5, 2), GRID_HEAT + 4);
	cr_expect_eq(style_at(6, 2), GRID_HEAT + 2);
	cr_expect_eq(style_at(6, 2 + 16), GRID_HEAT + 2);
	cr_expect_eq(style_at(6, 2 + 17), GRID_HEAT + 8);
	cr_expect_eq(style_at(6, 2 + 34), GRID_HEAT + 5, "1.2 of 2 is more than 4/8");
	stage.frame.logarithmic = true;
	top_stage_draw(&stage, 24, 80);
	expect_shown("log to 2.00x");
	cr_expect_eq(style_at(5, 2), GRID_HEAT + 7, "1 is half of 2");
	cr_expect_eq(style_at(6, 2), GRID_HEAT + 6,
		     "0.4 is less than a quarter, more than an eighth");
}

/* 896 experts in 80 less "85-91", two bars and "1.00x e895": 62 columns: 15 each, 60 used;
 * 92 layers in 16 rows: 6 each, 16 used. */
Test(top_heatmap, kimi_k3_fits_80_by_24_and_the_fold_is_said)
{
	double *counts = top_many(92, 896);

	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.keys = true;
	top_stage_draw(&stage, 24, 80);
	expect_shown("max of 6 layers x 15 experts; linear to");
	cr_expect_eq(strncmp(top_stage_row(&stage, 5), "  1-6|", 6), 0, "%s", stage.text);
	cr_expect(strstr(top_stage_row(&stage, 20), "91-92|"), "%s", stage.text);
	cr_expect(strstr(top_stage_row(&stage, 20), "█|"), "the hot one is not folded away");
	cr_expect_eq(strncmp(top_stage_row(&stage, 22), "hottest: layer 92 e895", 22), 0);
	cr_expect_eq(strncmp(top_stage_row(&stage, 23), "q quit", 6), 0);
	free(counts);
}

static void expect_head(const char *begin)
{
	const char *row, *tokens;

	top_stage_draw(&stage, 24, 80);
	row = strstr(stage.text, begin);
	cr_assert(row, "no \"%s\" in\n%s", begin, stage.text);
	tokens = strstr(row, " tokens\n");
	cr_expect(tokens && tokens < strchr(row, '\n'), "%s", stage.text);
}

Test(top_heatmap, the_heatmaps_head_has_room_for_an_age_and_its_tokens_at_80_columns)
{
	double *counts = top_many(92, 896);

	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.now_ns += 720000000000ull;
	expect_head("OLD: 12 min ago; max of 6 layers x ");
	stage.frame.ended = true;
	expect_head("ENDED: 12 min ago; max of 6 layers x ");
	free(counts);
}

Test(top_heatmap, gpus_without_room_are_counted)
{
	double counts[32];

	for (size_t i = 0; i < 32; i++)
		counts[i] = 1000;
	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 3, 1, 32, counts);
	top_stage_gpus(&stage, 8);
	top_stage_draw(&stage, 24, 80);
	expect_shown("; by GPU: 1.00x 1.00x 1.00x 1.00x +4\n");
	for (uint32_t columns = 70; columns < 120; columns++) {
		unsigned int shown = 0, more = 0;

		top_stage_draw(&stage, 24, columns);
		for (const char *at = strstr(stage.text, "by GPU:"); *at != '\n'; at++) {
			shown += *at == 'x';
			if (*at == '+')
				more = (unsigned int)atoi(at + 1);
		}
		cr_expect_eq(shown + more, 8, "%u columns:\n%s", columns, stage.text);
	}
}

Test(top_heatmap, wide_terminals_show_every_layer_and_expert)
{
	double *counts = top_many(92, 896);

	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	top_stage_draw(&stage, top_frame_rows(&stage.frame, 920), 920);
	expect_shown("layers by experts;");
	cr_expect(strstr(top_stage_row(&stage, 5 + 91), "92|"));
	free(counts);
}

Test(top_heatmap, a_long_model_name_cuts_nothing_but_itself_and_is_known_without_a_daemon)
{
	struct daemon_picture gone = {.state = PICTURE_NO_DAEMON, .error = "no daemon"};

	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"model\":"
			       "\"an/organisation-with-a-name-that-alone-is-wider-than-"
			       "80-columns-of-a-terminal-are\"}]}");
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	stage.frame.picture = &gone;
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 1),
			 "  a 2x4 top-4  last 5 s  an/organisation-with-a-name"),
		  "%s", stage.text);
}

Test(top_heatmap, of_ranks_of_two_models_the_one_that_is_shown_is_named_and_who_is_left_out)
{
	static const struct follower_left_out left_out = {"a/0", "one"};

	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"model\":\"one\"},"
		       "{\"channel\":\"a/1\",\"model\":\"another\"}]}");
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	snprintf(stage.frame.follower.model, sizeof(stage.frame.follower.model), "another");
	stage.frame.left_out = &left_out;
	stage.frame.left_outs = 1;
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 1), "  a 2x4 top-4  last 5 s  another"), "%s",
		  stage.text);
	cr_expect_str_eq(top_stage_row(&stage, 2),
			 "RANKS OF DIFFERENT MODELS: another is shown; left out: a/0 (one)");
	stage.picture->channels[1].rank.pp = (struct r3ring_coordinate){0, 2};
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 3),
			 "NO CHANNEL HERE: pipeline stage 1 of 2, counted from 0, of a");
}
