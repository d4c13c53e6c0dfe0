/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame of `r3ring top` has room for: nothing is cut in silence. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/top_shown.h"

TestSuite(top_room, .fini = top_shown_free);

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

Test(top_room, the_followed_engines_channels_come_first_and_the_rest_is_counted)
{
	make_crowd(8);
	top_stage_load(&stage, 3, 2, 4, top_two_layers[0]);
	top_stage_draw(&stage, 15, 80);
	cr_expect_eq(strncmp(top_stage_row(&stage, 3), "a/1 ", 4), 0, "%s", stage.text);
	/* 15 rows less two, "hottest", and three for the load: 9, of which 17 lines get 8. */
	cr_expect_str_eq(top_stage_row(&stage, 10), "+9 channels and readers");
	cr_expect_eq(strncmp(top_stage_row(&stage, 11), "layers by experts", 17), 0);
	stage.frame.page = TOP_TABLE;
	top_stage_draw(&stage, 24, 80);
	expect_shown("b/6 ");
	expect_not_shown("channels and readers");
}

Test(top_room, any_size_holds_what_it_can)
{
	double *counts = top_many(92, 896);

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

Test(top_room, every_key_has_room_at_80_columns_whatever_the_scale)
{
	top_stage_make(&stage, TOP_QUIET);
	stage.frame.keys = true;
	top_stage_draw(&stage, 24, 80);
	expect_shown(" l log p pause r reset");
	stage.frame.logarithmic = true;
	stage.frame.paused_ns = stage.frame.now_ns;
	top_stage_draw(&stage, 24, 80);
	expect_shown(" l lin p go on r reset");
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

Test(top_room, causes_without_room_are_counted_with_their_steps)
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
	expect_shown("lost: +12 more: 1173 steps (key d)");
}

Test(top_room, the_page_of_losses_says_what_each_means_and_what_to_do)
{
	make_all_lost();
	stage.frame.page = TOP_LOSSES;
	top_stage_draw(&stage, 60, 80);
	expect_shown(
		"ring_full: 102 steps (1002 rows) in a/0 102\n    a lossless reader held the ring");
	cr_expect(strstr(joined(), "a lossless reader held the ring back, with `--lossless-policy "
				   "drop`; a larger ring, a faster reader"));
	expect_shown("incomplete: 7 steps in a/0 7\n");
	expect_not_shown("no losses");
	expect_not_shown("enlarge");
	top_stage_draw(&stage, 24, 80);
	expect_shown(" rows: enlarge the terminal\n");
}

Test(top_room, the_page_of_losses_says_since_when_there_were_none)
{
	top_stage_make(&stage, TOP_QUIET);
	stage.frame.page = TOP_LOSSES;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 2), "no losses since the channels began");
	stage.frame.losses_since_ns = stage.frame.now_ns - 12000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 2), "no losses since the reset, 12 s ago");
	stage.losses.unbound = 1;
	top_stage_draw(&stage, 24, 80);
	expect_shown("no losses since the reset, 12 s ago\nnot bound: 1 channel");
	stage.losses.seen = false;
	top_stage_draw(&stage, 24, 80);
	expect_shown("not known: no daemon has answered yet");
	expect_not_shown("no losses");
}

Test(top_room, a_remedy_is_whole_on_the_smallest_of_terminals)
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

Test(top_room, what_goes_on_beyond_a_terminal_says_so)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[]}");
	stage.picture->state = PICTURE_NO_DAEMON;
	memset(stage.picture->error, 'a', sizeof(stage.picture->error) - 1);
	top_stage_draw(&stage, 10, 40);
	expect_shown("~ enlarge the terminal\n");
}

Test(top_room, a_narrow_table_keeps_losses_and_the_rank_of_a_long_name)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"an-instance-of-a-long-name/"
		       "1234\",\"state\":\"live\",\"lost\":{\"too_big\":{\"steps\":321}}}]}");
	stage.frame.page = TOP_TABLE;
	top_stage_draw(&stage, 24, 40);
	expect_shown("LOST\n");
	expect_shown("321\n");
	expect_shown("~/1234 live");
	expect_not_shown("REC/S");
}

Test(top_room, what_a_small_terminal_leaves_out_is_said)
{
	double *counts = top_many(92, 896);

	top_stage_make(&stage, TOP_QUIET);
	top_stage_load(&stage, 1, 92, 896, counts);
	stage.frame.keys = true;
	top_stage_draw(&stage, 7, 40);
	expect_shown("too small for: hottest\n");
	free(counts);
}
