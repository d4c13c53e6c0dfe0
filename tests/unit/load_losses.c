/* SPDX-License-Identifier: Apache-2.0 */
/* What was lost is in the snapshot, by cause, in rows times layers. */
#include <errno.h>
#include <stdio.h>

#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_losses, .init = open_load, .fini = load_close);

Test(load_losses, failure_20_rows_dropped_at_any_stage_are_in_the_snapshot_by_cause)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, 4, NULL, 0);
	/* A step that was dropped whole, and one of which a layer is missing. */
	load_feed.flags = R3RING_STEP_DROPPED;
	feed_step(&load_feed, 2, 64, NULL, 0, NULL, 0);
	load_feed.flags = 0;
	load_feed.lost_cells = 64 * FEED_LAYERS;
	feed_lost(&load_feed, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	feed_step(&load_feed, 3, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 3, 4, 0, 2);
	feed_step_end(&load_feed, 3, 2, R3RING_CAUSE_NOT_CAPTURED);
	expect_rows(&expected, 1, 0, 4);
	expect_rows(&expected, 3, 0, 4);
	memset(expected.counts[2], 0, sizeof(expected.counts[2]));
	for (uint32_t row = 0; row < 4; row++)
		for (uint32_t k = 0; k < FEED_TOP_K; k++)
			expected.counts[2][load_feed.id(NULL, 1, row, 2, k)]++;
	expected.rows[2] = 4;
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->accounts.lost[R3RING_CAUSE_BUFFER_FULL], 64 * FEED_LAYERS);
	cr_assert_eq(info->accounts.lost[R3RING_CAUSE_NOT_CAPTURED], 4);
	cr_assert_eq(info->accounts.counted, 4 * FEED_LAYERS + 4 * 2);
}

Test(load_losses, a_layer_that_the_steps_end_takes_back_is_not_load)
{
	struct expected expected = {0};

	feed_step(&load_feed, 1, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 4, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 1, R3RING_CAUSE_OVERLAP);
	expect_rows(&expected, 1, 0, 4);
	memset(expected.counts[1], 0, sizeof(expected.counts[1]));
	expected.rows[1] = 0;
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.lost[R3RING_CAUSE_OVERLAP], 4);
}

/* The reader's gap takes the last layer and STEP_END. */
Test(load_losses, of_a_step_whose_end_was_lost_the_layers_that_came_are_load)
{
	struct expected expected = {0};

	feed_step(&load_feed, 1, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 4, 0, FEED_LAYERS - 1);
	load_feed.seq += 2;
	load_feed.units += 4;
	feed_whole(&load_feed, 2, 3, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	memset(expected.counts[FEED_LAYERS - 1], 0, sizeof(expected.counts[FEED_LAYERS - 1]));
	expected.rows[FEED_LAYERS - 1] = 0;
	expect_rows(&expected, 2, 0, 3);
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.lost[R3RING_MISSING_GAP], 4);
}

static void leave_out(uint64_t seq, uint64_t units)
{
	const struct r3ring_view view = {
		.seq = seq, .units = units, .generation = 1, .type = R3RING_LAYER};

	load_feed.seq = seq;
	load_feed.units = units;
	cr_assert_eq(r3ring_load_skip(load_feed.load, 0, &view), 0);
}

Test(load_losses, what_a_recorder_was_to_leave_out_is_told_apart_from_gaps)
{
	const struct r3ring_load_info *info;

	feed_step(&load_feed, 1, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 4, 0, 1);
	leave_out(load_feed.seq + 1, load_feed.units + 4);
	/* One record, of layer 2, was not read at all. */
	leave_out(load_feed.seq + 2, load_feed.units + 8);
	feed_step_end(&load_feed, 1, -1, 0);
	info = read_load(0);
	cr_assert_eq(info->accounts.counted, 4);
	cr_assert_eq(info->accounts.lost[R3RING_MISSING_NOT_RECORDED], 4);
	cr_assert_eq(info->accounts.lost[R3RING_MISSING_GAP], 8);
	cr_assert_eq(info->accounts.gaps, 1);
}

Test(load_losses, a_record_that_came_twice_is_counted_once)
{
	struct expected expected = {0};

	feed_step(&load_feed, 1, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 4, 0, FEED_LAYERS);
	feed_layers(&load_feed, 1, 4, 0, 1);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 1, 0, 4);
	expect_load(&expected, 0);
}

Test(load_losses, failure_32_a_gap_in_the_records_is_noticed_and_its_cells_are_known)
{
	const struct r3ring_load_info *info;
	struct expected expected = {0};

	feed_whole(&load_feed, 1, 4, NULL, 0);
	/* A step of 9 rows and its 3 x 3 layer records, which this reader did not get. */
	load_feed.seq += 11;
	load_feed.units += 9 * FEED_LAYERS;
	feed_whole(&load_feed, 3, 4, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	expect_rows(&expected, 3, 0, 4);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->accounts.gaps, 1);
	cr_assert_eq(info->accounts.lost[R3RING_MISSING_GAP], 9 * FEED_LAYERS);
}

/* ---- told in records that were not read -------------------------------------------- */

/* What a channel lost by now, as its keyframe has it. */
static void feed_totals(uint64_t full_rows, uint64_t died_rows)
{
	load_feed.totals.lost_rows[R3RING_CAUSE_BUFFER_FULL] = full_rows;
	load_feed.totals.lost_rows[R3RING_CAUSE_PRODUCER_DIED] = died_rows;
	feed_keyframe(&load_feed, 0);
}

static void expect_lost(uint64_t full_cells, uint64_t died_cells)
{
	const struct r3ring_load_accounts *accounts = &read_load(0)->accounts;

	cr_expect_eq(accounts->lost[R3RING_CAUSE_BUFFER_FULL], full_cells);
	cr_expect_eq(accounts->lost[R3RING_CAUSE_PRODUCER_DIED], died_cells);
}

/* 5 rows were told and read; 20 and 7 in a gap. */
Test(load_losses, what_was_told_in_a_gap_is_lost_by_its_causes_from_the_next_keyframe_on)
{
	feed_whole(&load_feed, 1, 4, NULL, 0);
	load_feed.lost_rows = 5;
	load_feed.lost_cells = 5 * FEED_LAYERS;
	feed_lost(&load_feed, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	load_feed.seq += 2;
	feed_whole(&load_feed, 9, 4, NULL, 0);
	expect_lost(5 * FEED_LAYERS, 0);
	feed_totals(25, 7);
	expect_lost(25 * FEED_LAYERS, 7 * FEED_LAYERS);
	feed_totals(25, 7);
	expect_lost(25 * FEED_LAYERS, 7 * FEED_LAYERS);
}

Test(load_losses, what_a_channel_had_lost_before_its_reader_came_is_not_the_readers)
{
	load_close();
	feed_create_load(&load_feed, NULL);
	load_feed.experts = LOAD_EXPERTS;
	load_feed.seq = 1000;
	cr_assert_eq(r3ring_load_snapshot_create(&snapshot), 0);
	feed_schema(&load_feed);
	feed_whole(&load_feed, 9, 4, NULL, 0);
	feed_totals(25, 7);
	expect_lost(0, 0);
	load_feed.seq += 2;
	feed_totals(26, 7);
	feed_whole(&load_feed, 10, 4, NULL, 0);
	expect_lost(FEED_LAYERS, 0);
}

Test(load_losses, another_generations_totals_begin_at_nothing)
{
	feed_whole(&load_feed, 1, 4, NULL, 0);
	feed_totals(25, 7);
	expect_lost(25 * FEED_LAYERS, 7 * FEED_LAYERS);
	load_feed.generation = 2;
	load_feed.seq = 0;
	load_feed.units = 0;
	feed_schema(&load_feed);
	feed_totals(3, 0);
	feed_whole(&load_feed, 1, 4, NULL, 0);
	expect_lost(28 * FEED_LAYERS, 7 * FEED_LAYERS);
}

Test(load_losses, layers_of_a_step_whose_beginning_was_not_seen_are_lost)
{
	struct r3ring_load_stats stats;

	feed_whole(&load_feed, 1, 4, NULL, 0);
	load_feed.seq++;
	feed_layers(&load_feed, 2, 4, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 2, 0, R3RING_CAUSE_NONE);
	cr_assert_eq(read_load(0)->accounts.lost[R3RING_MISSING_GAP], 4 * FEED_LAYERS);
	cr_assert_eq(read_load(0)->steps, 1);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.steps_unknown, 1);
}

Test(load_losses, steps_in_front_of_a_first_schema_are_counted_as_unknown)
{
	struct feed late = feed_load_channel(&load_feed, "test/1");
	struct r3ring_load_stats stats;

	late.seq = 1000;
	feed_layers(&late, 6, 4, 1, FEED_LAYERS);
	feed_step_end(&late, 6, -1, 0);
	feed_whole(&late, 7, 4, NULL, 0);
	feed_schema(&late);
	feed_whole(&late, 8, 4, NULL, 0);
	cr_assert_eq(read_load(1)->accounts.counted, 4 * FEED_LAYERS);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.steps_unknown, 2);
}

Test(load_losses, a_reader_that_comes_late_has_lost_nothing)
{
	struct feed late = feed_load_channel(&load_feed, "test/1");

	late.seq = 1000;
	late.units = 5000;
	feed_schema(&late);
	feed_whole(&late, 7, 4, NULL, 0);
	cr_assert_eq(read_load(1)->accounts.gaps, 0);
	cr_assert_eq(read_load(1)->accounts.lost[R3RING_MISSING_GAP], 0);
}

Test(load_losses, what_is_lost_is_shown_though_no_step_follows)
{
	feed_whole(&load_feed, 1, 4, NULL, 0);
	load_feed.lost_cells = 12;
	feed_lost(&load_feed, 2, 5, R3RING_CAUSE_PRODUCER_DIED, 0);
	cr_assert_eq(read_load(0)->accounts.lost[R3RING_CAUSE_PRODUCER_DIED], 12);
}

Test(load_losses, layers_of_a_step_that_is_lost_before_its_end_are_not_load)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, 4, NULL, 0);
	feed_step(&load_feed, 2, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 2, 4, 0, FEED_LAYERS - 1);
	load_feed.lost_rows = 4;
	load_feed.lost_cells = 4 * FEED_LAYERS;
	feed_lost(&load_feed, 2, 2, R3RING_CAUSE_DAEMON_RESTART, 0);
	feed_whole(&load_feed, 3, 4, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	expect_rows(&expected, 3, 0, 4);
	info = read_load(0);
	expect_info(info, &expected);
	cr_expect_eq(info->accounts.counted, 8 * FEED_LAYERS);
	cr_expect_eq(info->accounts.lost[R3RING_CAUSE_DAEMON_RESTART], 4 * FEED_LAYERS);
}

Test(load_losses, a_generation_that_follows_goes_on_in_the_same_windows)
{
	struct expected expected = {0};

	feed_whole(&load_feed, 9, 4, NULL, 0);
	feed_closed(&load_feed);
	load_feed.generation = 2;
	load_feed.seq = 0;
	load_feed.units = 0;
	feed_schema(&load_feed);
	feed_whole(&load_feed, 1, 4, NULL, 0);
	expect_rows(&expected, 9, 0, 4);
	expect_rows(&expected, 1, 0, 4);
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.gaps, 0);
}

Test(load_losses, a_step_that_a_generation_left_open_counts_with_what_came_of_it)
{
	struct expected expected = {0};

	feed_step(&load_feed, 9, 4, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 9, 4, 0, FEED_LAYERS);
	load_feed.generation = 2;
	load_feed.seq = 0;
	load_feed.units = 0;
	feed_schema(&load_feed);
	expect_rows(&expected, 9, 0, 4);
	expect_load(&expected, 0);
}

/* One whose first layers are those of the other. */
Test(load_losses, a_schema_of_more_layers_is_another_one)
{
	struct feed grown = feed_load_channel(&load_feed, "test/1");
	const struct r3ring_layer_entry layers[FEED_LAYERS - 1] = {
		{.layer_id = 0, .kind = R3RING_LAYER_MOE},
		{.layer_id = 1, .kind = R3RING_LAYER_MOE}};
	const struct r3ring_view view = {.seq = 1, .generation = 1, .type = R3RING_SCHEMA};
	struct r3ring_record record = {.type = R3RING_SCHEMA};
	struct expected expected = {0};

	record.u.schema.head = (struct r3ring_schema_record){.layers = FEED_LAYERS - 1,
							     .experts = LOAD_EXPERTS,
							     .top_k = FEED_TOP_K,
							     .model = "small"};
	record.u.schema.layers = layers;
	cr_assert_eq(r3ring_load_feed(grown.load, grown.channel, &view, &record), 0);
	grown.generation = 2;
	feed_schema(&grown);
	feed_whole(&grown, 1, 4, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	expect_load(&expected, 1);
}

Test(load_losses, records_of_another_model_are_refused)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	const struct r3ring_layer_entry layer = {0};
	const struct r3ring_view view = {.seq = 1, .generation = 1, .type = R3RING_SCHEMA};
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	record.u.schema.head = (struct r3ring_schema_record){
		.layers = 1, .experts = 9, .top_k = FEED_TOP_K, .model = "small"};
	record.u.schema.layers = &layer;
	cr_assert_eq(r3ring_load_feed(other.load, other.channel, &view, &record), -EPROTO);
	cr_assert_eq(r3ring_load_feed(other.load, 2, &view, &record), -EINVAL);
	cr_assert_eq(r3ring_load_channel(load_feed.load, "no channel"), -EINVAL);
}

Test(load_losses, a_channel_that_is_asked_for_again_is_the_same)
{
	cr_expect_eq(r3ring_load_channel(load_feed.load, "test/1"), 1);
	cr_expect_eq(r3ring_load_channel(load_feed.load, "test/2"), 2);
	cr_expect_eq(r3ring_load_channel(load_feed.load, "test/1"), 1);
	cr_expect_eq(r3ring_load_channel(load_feed.load, "test/0"), 0);
}

Test(load_losses, options_of_another_size_are_refused)
{
	const struct r3ring_load_options options = {.size = sizeof(options) - 1};
	struct r3ring_load *load = NULL;
	struct r3ring_error err = {0};

	cr_expect_eq(r3ring_load_create(&load, &options, &err), -EINVAL);
	cr_expect(strstr(err.text, "size"), "%s", err.text);
	cr_expect_null(load);
}

/* ---- memory ------------------------------------------------------------------- */

Test(load_losses, each_channels_memory_is_told)
{
	/* A sum at least, and four of what fades. */
	const uint64_t least = 5 * FEED_LAYERS * LOAD_EXPERTS * sizeof(float);
	struct r3ring_load_stats one, two;
	struct feed other;

	r3ring_load_get_stats(load_feed.load, &one);
	other = feed_load_channel(&load_feed, "test/1");
	feed_schema(&other);
	r3ring_load_get_stats(load_feed.load, &two);
	cr_expect_geq(two.bytes, one.bytes + least);
	/* A place for each id, and what a channel of the same layers took. */
	cr_expect_eq(one.bytes - (two.bytes - one.bytes), 65536 * sizeof(uint32_t));
}

Test(load_losses, ids_of_drafts_that_just_fit_are_held)
{
	const uint64_t bytes = 4 * FEED_LAYERS * FEED_TOP_K * sizeof(uint16_t);
	const struct r3ring_load_options options = {.size = sizeof(options),
						    .max_held_bytes = bytes};
	const struct r3ring_span draft = load_draft(1, 10, 0, 4, R3RING_UNKNOWN_U32);
	struct r3ring_load_stats stats;

	load_close();
	load_open(&options);
	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_whole(&load_feed, 1, 6, &draft, 1);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.held_bytes, bytes);
}

Test(load_losses, memory_does_not_grow_with_steps_nor_requests)
{
	struct r3ring_load_stats before, after;
	struct feed bounded;
	const struct r3ring_load_options options = {.size = sizeof(options),
						    .window_steps = 16,
						    .max_requests = 10,
						    .max_held_bytes = 100};
	struct r3ring_span span;
	char id[16];

	feed_create_load(&bounded, &options);
	bounded.experts = LOAD_EXPERTS;
	bounded.id = load_feed.id;
	feed_schema(&bounded);
	for (uint32_t i = 1; i <= 200; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		feed_begin(&bounded, i, id, 4, 0);
		span = load_draft(i, 0, 0, 4, R3RING_UNKNOWN_U32);
		feed_whole(&bounded, i, 6, &span, 1);
		/* The windows have all that they are to have. */
		if (i == 100)
			r3ring_load_get_stats(bounded.load, &before);
	}
	r3ring_load_get_stats(bounded.load, &after);
	cr_assert_eq(after.bytes - after.held_bytes, before.bytes - before.held_bytes);
	cr_assert_eq(after.requests_watched, 10);
	cr_assert_eq(after.requests_forgotten, 190);
	cr_assert_leq(after.held_bytes, 100);
	cr_assert_eq(r3ring_load_read(bounded.load, 0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     0);
	/* Those that found no room are told of. */
	cr_assert_gt(r3ring_load_snapshot_info(snapshot)->accounts.lost[R3RING_MISSING_EVICTED], 0);
	feed_destroy(&bounded);
}
