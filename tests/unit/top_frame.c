/* SPDX-License-Identifier: Apache-2.0 */
/* What stands where in a frame of `r3ring top`. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/top_stage.h"

#define QUIET                                                                                      \
	"{\"daemon\":{\"pid\":7},\"channels\":[{\"channel\":\"a/0\",\"model\":\"m\","              \
	"\"state\":\"live\",\"generation\":3,\"steps\":10,\"bound_layers\":[3,4]}]}"

static struct top_stage stage;

static void free_stage(void)
{
	top_stage_free(&stage);
}

TestSuite(top_frame, .fini = free_stage);

static void expect(const char *part)
{
	cr_expect(strstr(stage.text, part), "no \"%s\" in\n%s", part, stage.text);
}

static void expect_not(const char *part)
{
	cr_expect_not(strstr(stage.text, part), "\"%s\" in\n%s", part, stage.text);
}

static enum grid_style style_at(uint32_t row, uint32_t column)
{
	return grid_at(&stage.grid, row, column)->style;
}

/* ---- what is lost ---------------------------------------------------------- */

Test(top_frame, nothing_lost_is_said_in_green)
{
	top_stage_make(&stage, QUIET);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_GOOD);
	expect("no load to show: no step was seen yet");
}

/* 13 steps of two causes, two that lack layers, five ids; of the last second's 100 steps. */
static void make_lossy(void)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{"
			       "\"ring_full\":{\"steps\":12,\"rows\":48},"
			       "\"producer_died\":{\"steps\":1,\"rows\":4}},"
			       "\"steps_partial\":2,\"ids_out_of_range\":5}]}");
	stage.losses.newest_ns = stage.picture->taken_ns;
	stage.losses.seconds[0] = (struct losses_second){
		.second = stage.picture->taken_ns / 1000000000u,
		.sum = {.steps = 100, .lost = 1, .partial = 2},
	};
	stage.losses.seconds[0].sum.steps_of[R3RING_CAUSE_RING_FULL] = 1;
}

Test(top_frame, what_was_lost_before_is_not_said_to_be_of_now)
{
	make_lossy();
	stage.losses.newest_ns = 0;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "lost 15 steps, before this | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_WARN);
	cr_expect_eq(style_at(2, 0), GRID_WARN);
}

Test(top_frame, what_is_being_lost_is_told_by_its_share_and_worst_cause_in_red)
{
	make_lossy();
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "LOSING 3.0 % of steps (layers missing, +1) | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_BAD);
	cr_expect_str_eq(
		top_stage_row(&stage, 2),
		"lost: ring_full 12 steps (48 rows); producer_died 1 step (4 rows); 2 steps");
	cr_expect_str_eq(top_stage_row(&stage, 3), "  incomplete; 5 ids out of range");
	cr_expect_eq(style_at(3, 2), GRID_BAD);
}

Test(top_frame, a_loss_of_a_while_ago_is_told_with_its_age)
{
	make_lossy();
	stage.frame.now_ns += 60000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "lost 15 steps, none for 60 s | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_WARN);
}

Test(top_frame, readers_show_their_kind_place_and_lag)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"ring\":{\"tail_seq\":"
		       "100},\"readers\":[{\"pid\":7,\"label\":\"serve:load\",\"mode\":"
		       "\"lossless\",\"lag_records\":3,"
		       "\"lag_bytes\":2048},{\"pid\":8,\"mode\":\"lossy\",\"lost\":4},"
		       "{\"pid\":9,\"mode\":\"lossy\",\"demoted\":true}]}]}");
	stage.frame.own_pid = 8;
	top_stage_draw(&stage, 24, 80);
	expect("reader 7 serve:load lossless, 3 records (2.0 KiB) behind, at 98\n");
	expect_not("reader 8");
	expect("reader 9 DEMOTED lossy, 0 records (0 B) behind, at 101\n");
	cr_expect_str_eq(top_stage_row(&stage, 0), "A LOSSLESS READER LOSES | no load yet");
	cr_expect_str_eq(top_stage_row(&stage, 2),
			 "lost: 1 reader demoted; readers came too late for 4 records");
	stage.frame.page = TOP_TABLE;
	top_stage_draw(&stage, 24, 80);
	expect("reader 8 lost 4 (this one) lossy, 0 records (0 B) behind, at 101\n");
}

Test(top_frame, a_daemon_that_is_gone_is_waited_for_in_words)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[]}");
	stage.picture->state = PICTURE_NO_DAEMON;
	snprintf(stage.picture->error, sizeof(stage.picture->error), "no daemon: tried /x");
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "waiting: no daemon | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_BAD);
	cr_expect_str_eq(top_stage_row(&stage, 2), "no daemon: tried /x");
	cr_expect_eq(style_at(2, 0), GRID_BAD);
}

Test(top_frame, failure_23_layers_that_nobody_bound_are_told_above_the_table)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"state\":\"live\","
		       "\"bound_layers\":[3],\"unbound_layers\":[4,5]}]}");
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost (layers unbound) | no load yet");
	cr_expect_str_eq(top_stage_row(&stage, 2), "1 channel with layers that nobody bound");
	expect("   1/3  ");
}

Test(top_frame, lost_steps_of_a_channel_are_whole_numbers)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{"
			       "\"ring_full\":{\"steps\":38}}},{\"channel\":\"a/1\",\"lost\":{"
			       "\"ring_full\":{\"steps\":123456}}}]}");
	top_stage_draw(&stage, 24, 80);
	expect(" 38\n");
	expect(" 123k\n");
}

/* ---- load ------------------------------------------------------------------ */

/* Layer 3 of 4 experts is even, 4 has half of its ids with expert 1. */
static const double two_layers[2][4] = {{1000, 1000, 1000, 1000}, {400, 2000, 1200, 400}};

Test(top_frame, failure_29_the_uneven_layer_is_named_with_its_max_over_its_mean)
{
	double counts[2][8] = {{0}};

	for (int expert = 0; expert < 8; expert++)
		counts[0][expert] = counts[1][expert] = 1000;
	counts[1][6] = 9000;
	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 2, 8, counts[0]);
	top_stage_draw(&stage, 24, 80);
	/* 9000 of 16000 over 8 experts: a mean of 2000. */
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | worst layer 4: 4.50x mean, 1 of 2 UNEVEN");
	cr_expect_eq(style_at(0, 15), GRID_BAD);
	expect("hottest: layer 4 e6 4.50x, layer 3 e0 1.00x");
	expect("|4.50x e6\n");
	expect("|1.00x e0\n");
}

Test(top_frame, even_layers_are_said_to_be_even)
{
	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 2, 4, two_layers[0]);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | layers even; worst layer 4: 2.00x mean");
	cr_expect_eq(style_at(0, 15), GRID_GOOD);
}

Test(top_frame, a_few_tokens_are_not_called_uneven)
{
	const double counts[4] = {1, 4, 0, 0};

	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 1, 4, counts);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "nothing lost | too few tokens to call a layer uneven");
}

/* A mean of 1 in layer 3, all level 4 of 8 where 2 is the most; each expert takes 17
 * columns: 80 less "3", two bars, and "1.00x e0", by 4. */
Test(top_frame, cells_are_as_wide_as_there_is_room_and_coloured_by_the_scale)
{
	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 2, 4, two_layers[0]);
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
	expect("log to 2.00x");
	cr_expect_eq(style_at(5, 2), GRID_HEAT + 7, "1 is half of 2");
	cr_expect_eq(style_at(6, 2), GRID_HEAT + 6,
		     "0.4 is less than a quarter, more than an eighth");
}

static double *many(uint32_t layers, uint32_t experts)
{
	double *counts = calloc((size_t)layers * experts, sizeof(*counts));

	for (size_t i = 0; i < (size_t)layers * experts; i++)
		counts[i] = 100;
	counts[(size_t)(layers - 1) * experts + experts - 1] = 100000;
	return counts;
}

/* 896 experts in 80 less "85-91", two bars and "1.00x e895": 62 columns: 15 each, 60 used;
 * 92 layers in 16 rows: 6 each, 16 used. */
Test(top_frame, kimi_k3_fits_80_by_24_and_the_fold_is_said)
{
	double *counts = many(92, 896);

	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.keys = true;
	top_stage_draw(&stage, 24, 80);
	expect("max of 6 layers x 15 experts; linear to");
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

Test(top_frame, the_heatmaps_head_has_room_for_an_age_and_its_tokens_at_80_columns)
{
	double *counts = many(92, 896);

	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.now_ns += 720000000000ull;
	expect_head("OLD: 12 min ago; max of 6 layers x ");
	stage.frame.ended = true;
	expect_head("ENDED: 12 min ago; max of 6 layers x ");
	free(counts);
}

Test(top_frame, gpus_without_room_are_counted)
{
	double counts[32];

	for (size_t i = 0; i < 32; i++)
		counts[i] = 1000;
	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 3, 1, 32, counts);
	top_stage_gpus(&stage, 8);
	top_stage_draw(&stage, 24, 80);
	expect("; by GPU: 1.00x 1.00x 1.00x 1.00x +4\n");
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

Test(top_frame, every_key_has_room_at_80_columns_whatever_the_scale)
{
	top_stage_make(&stage, QUIET);
	stage.frame.keys = true;
	top_stage_draw(&stage, 24, 80);
	expect(" l log p pause r reset");
	stage.frame.logarithmic = true;
	stage.frame.paused_ns = stage.frame.now_ns;
	top_stage_draw(&stage, 24, 80);
	expect(" l lin p go on r reset");
}

Test(top_frame, wide_terminals_show_every_layer_and_expert)
{
	double *counts = many(92, 896);

	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	top_stage_draw(&stage, top_frame_rows(&stage.frame, 920), 920);
	expect("layers by experts;");
	cr_expect(strstr(top_stage_row(&stage, 5 + 91), "92|"));
	free(counts);
}

Test(top_frame, a_long_model_name_cuts_nothing_but_itself_and_is_known_without_a_daemon)
{
	struct daemon_picture gone = {.state = PICTURE_NO_DAEMON, .error = "no daemon"};

	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"model\":"
			       "\"an/organisation-with-a-name-that-alone-is-wider-than-"
			       "80-columns-of-a-terminal-are\"}]}");
	top_stage_load(&stage, 3, 2, 4, two_layers[0]);
	stage.frame.picture = &gone;
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 1),
			 "  a 2x4 top-4  last 5 s  an/organisation-with-a-name"),
		  "%s", stage.text);
}

Test(top_frame, of_ranks_of_two_models_the_one_that_is_shown_is_named_and_who_is_left_out)
{
	static const struct follower_left_out left_out = {"a/0", "one"};

	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"model\":\"one\"},"
		       "{\"channel\":\"a/1\",\"model\":\"another\"}]}");
	top_stage_load(&stage, 3, 2, 4, two_layers[0]);
	snprintf(stage.frame.follower.model, sizeof(stage.frame.follower.model), "another");
	stage.frame.left_out = &left_out;
	stage.frame.left_outs = 1;
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 1), "  a 2x4 top-4  last 5 s  another"), "%s",
		  stage.text);
	cr_expect(strstr(top_stage_row(&stage, 2),
			 "RANKS OF DIFFERENT MODELS: another is shown; left out: a/0 (one)"),
		  "%s", stage.text);
}

/* ---- room ------------------------------------------------------------------ */

static void make_crowd(unsigned int channels)
{
	char *json = NULL;
	size_t length;
	FILE *out = open_memstream(&json, &length);

	fputs("{\"daemon\":{},\"channels\":[", out);
	for (unsigned int i = 0; i < channels; i++)
		fprintf(out, "%s{\"channel\":\"%s/%u\",\"readers\":[{\"pid\":%u}]}", i ? "," : "",
			i % 2 ? "a" : "b", i, 100 + i);
	fputs("]}", out);
	fclose(out);
	top_stage_make(&stage, json);
	free(json);
}

Test(top_frame, the_followed_engines_channels_come_first_and_the_rest_is_counted)
{
	make_crowd(8);
	top_stage_load(&stage, 3, 2, 4, two_layers[0]);
	top_stage_draw(&stage, 15, 80);
	cr_expect_eq(strncmp(top_stage_row(&stage, 3), "a/1 ", 4), 0, "%s", stage.text);
	/* 15 rows less two, "hottest", and three for the load: 9, of which 17 lines get 8. */
	cr_expect_str_eq(top_stage_row(&stage, 10), "+9 channels and readers");
	cr_expect_eq(strncmp(top_stage_row(&stage, 11), "layers by experts", 17), 0);
	stage.frame.page = TOP_TABLE;
	top_stage_draw(&stage, 24, 80);
	expect("b/6 ");
	expect_not("channels and readers");
}

Test(top_frame, any_size_holds_what_it_can)
{
	double *counts = many(92, 896);

	make_crowd(8);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.keys = true;
	for (uint32_t rows = 1; rows < 30; rows++) {
		for (uint32_t columns = 1; columns < 130; columns += 3) {
			for (enum top_page page = TOP_MAIN; page <= TOP_HELP; page++) {
				stage.frame.page = page;
				top_stage_draw(&stage, rows, columns);
			}
		}
	}
	free(counts);
}

Test(top_frame, a_pause_and_the_help_are_shown)
{
	top_stage_make(&stage, QUIET);
	stage.frame.paused_ns = stage.frame.now_ns - 12000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 1), "PAUSED 12 s"));
	stage.frame.page = TOP_HELP;
	top_stage_draw(&stage, 24, 80);
	expect("q          quit; from another page");
	expect("Nothing that is done here is noticed");
}

/* ---- nothing is cut in silence ---------------------------------------------- */

/* Losses of every cause: 101 steps for the first, 102 for the next... */
static void make_all_lost(void)
{
	char *json = NULL;
	size_t length;
	FILE *out = open_memstream(&json, &length);

	fputs("{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{", out);
	for (uint32_t cause = 1; cause < R3RING_CAUSE_COUNT; cause++)
		fprintf(out, "%s\"%s\":{\"steps\":%u,\"rows\":%u}", cause > 1 ? "," : "",
			r3ring_cause_name(cause), 100 + cause, 1000 + cause);
	fputs("},\"steps_partial\":7}]}", out);
	fclose(out);
	top_stage_make(&stage, json);
	free(json);
}

/* Without line ends, and what rows are indented by. */
static const char *joined(void)
{
	static char text[1 << 16];
	size_t used = 0;

	for (const char *c = stage.text; *c && used < sizeof(text) - 1; c++) {
		char next = *c == '\n' ? ' ' : *c;

		if (next != ' ' || (used && text[used - 1] != ' '))
			text[used++] = next;
	}
	text[used] = '\0';
	return text;
}

/* Of what is shown and what is said to have no room. */
static uint64_t steps_accounted(void)
{
	const char *text = joined(), *more = strstr(text, " more: ");
	uint64_t steps = strstr(text, "7 steps incomplete") ? 7 : 0;

	for (uint32_t cause = 1; cause < R3RING_CAUSE_COUNT; cause++) {
		char shown[64];

		snprintf(shown, sizeof(shown), " %s %u steps (%u rows);", r3ring_cause_name(cause),
			 100 + cause, 1000 + cause);
		steps += strstr(text, shown) ? 100 + cause : 0;
	}
	return steps + (more ? strtoul(more + strlen(" more: "), NULL, 10) : 0);
}

Test(top_frame, causes_without_room_are_counted_with_their_steps)
{
	uint64_t all = 7;

	for (uint32_t cause = 1; cause < R3RING_CAUSE_COUNT; cause++)
		all += 100 + cause;
	make_all_lost();
	stage.frame.keys = true;
	for (uint32_t rows = 10; rows < 60; rows += 7) {
		for (uint32_t columns = 40; columns < 200; columns += 7) {
			top_stage_draw(&stage, rows, columns);
			cr_expect_eq(steps_accounted(), all, "%s", stage.text);
		}
	}
	top_stage_draw(&stage, 10, 40);
	expect("lost: +12 more: 1173 steps (key d)");
}

Test(top_frame, the_page_of_losses_says_what_each_means_and_what_to_do)
{
	make_all_lost();
	stage.frame.page = TOP_LOSSES;
	top_stage_draw(&stage, 60, 80);
	expect("ring_full: 102 steps (1002 rows) in a/0 102\n    a lossless reader held the ring");
	cr_expect(strstr(joined(), "a lossless reader held the ring back, with `--lossless-policy "
				   "drop`; a larger ring, a faster reader"));
	expect("incomplete: 7 steps in a/0 7\n");
	expect_not("no losses");
	expect_not("enlarge");
	top_stage_draw(&stage, 24, 80);
	expect(" rows: enlarge the terminal\n");
}

Test(top_frame, the_page_of_losses_says_since_when_there_were_none)
{
	top_stage_make(&stage, QUIET);
	stage.frame.page = TOP_LOSSES;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 2), "no losses since the channels began");
	stage.frame.losses_since_ns = stage.frame.now_ns - 12000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 2), "no losses since the reset, 12 s ago");
	stage.losses.unbound = 1;
	top_stage_draw(&stage, 24, 80);
	expect("no losses since the reset, 12 s ago\nnot bound: 1 channel");
	stage.losses.seen = false;
	top_stage_draw(&stage, 24, 80);
	expect("not known: no daemon has answered yet");
	expect_not("no losses");
}

Test(top_frame, a_remedy_is_whole_on_the_smallest_of_terminals)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[]}");
	stage.picture->state = PICTURE_NO_DAEMON;
	snprintf(stage.picture->error, sizeof(stage.picture->error),
		 "no daemon: tried /tmp/of-somebody/with-a-long-name/r3ring.sock; start r3ringd "
		 "or set R3RING_RUNTIME_DIR");
	top_stage_draw(&stage, 10, 40);
	/* The path is wider than a row. */
	cr_expect(strstr(joined(), "no daemon: tried /tmp/of-somebody/with-a-long-name/r3ri "
				   "ng.sock; start r3ringd or set R3RING_RUNTIME_DIR"),
		  "%s", stage.text);
}

Test(top_frame, what_goes_on_beyond_a_terminal_says_so)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[]}");
	stage.picture->state = PICTURE_NO_DAEMON;
	memset(stage.picture->error, 'a', sizeof(stage.picture->error) - 1);
	top_stage_draw(&stage, 10, 40);
	expect("~ enlarge the terminal\n");
}

Test(top_frame, a_narrow_table_keeps_losses_and_the_rank_of_a_long_name)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"an-instance-of-a-long-name/"
		       "1234\",\"state\":\"live\",\"lost\":{\"too_big\":{\"steps\":321}}}]}");
	stage.frame.page = TOP_TABLE;
	top_stage_draw(&stage, 24, 40);
	expect("LOST\n");
	expect("321\n");
	expect("~/1234 live");
	expect_not("REC/S");
}

Test(top_frame, what_a_small_terminal_leaves_out_is_said)
{
	double *counts = many(92, 896);

	top_stage_make(&stage, QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.keys = true;
	top_stage_draw(&stage, 7, 40);
	expect("too small for: hottest\n");
	free(counts);
}

/* ---- strangers' names ------------------------------------------------------ */

Test(top_frame, names_of_strangers_never_steer_the_terminal)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/\\u001b[2J\",\"model\":"
		       "\"\\u001b]0;x\\u0007\\u009b\\u202e\",\"state\":\"\\n\\r\"}]}");
	top_stage_draw(&stage, 24, 80);
	expect("a/\\x1b[2J");
	for (const char *c = stage.text; *c; c++)
		cr_expect((unsigned char)*c >= 32 || *c == '\n');
	expect_not("\xc2\x9b");
	expect_not("\xe2\x80\xae");
}
