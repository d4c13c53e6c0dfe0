/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are counted where they lie, and sums that are made while a step runs. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "consumer/load/load.h"
#include "tests/unit/load_fixture.h"
#include "tests/unit/ring_fixture.h"

#define ROWS 4u
#define IDS (ROWS * FEED_TOP_K)
#define CLOSE 1e-4

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_view, .init = open_load, .fini = load_close);

/* A LAYER record of all of a step's rows. */
static union {
	uint64_t words[16];
	struct {
		struct r3ring_layer_record head;
		uint16_t ids[IDS];
	} layer;
} payload;

#define PAYLOAD_BYTES (sizeof(struct r3ring_layer_record) + IDS * sizeof(uint16_t))

static struct r3ring_view view_of(uint64_t step, uint16_t layer, const uint16_t ids[IDS])
{
	payload.layer.head = (struct r3ring_layer_record){.step = step,
							  .layer_id = layer,
							  .layer_index = layer,
							  .rows = ROWS,
							  .total_rows = ROWS,
							  .valid_rows = ROWS,
							  .top_k = FEED_TOP_K};
	memcpy(payload.layer.ids, ids, sizeof(payload.layer.ids));
	return (struct r3ring_view){.seq = ++load_feed.seq,
				    .units = load_feed.units += ROWS,
				    .generation = load_feed.generation,
				    .type = R3RING_LAYER,
				    .data = &payload,
				    .len = PAYLOAD_BYTES};
}

static int intact(void *calls)
{
	++*(uint32_t *)calls;
	return 0;
}

/* The writer has come by. */
static int overwritten(void *calls)
{
	++*(uint32_t *)calls;
	memset(&payload, 0x5A, sizeof(payload));
	return -EOVERFLOW;
}

/* Its bytes are another's by now; nobody may look at them again. */
static int intact_until_now(void *calls)
{
	memset(&payload, 0x5A, sizeof(payload));
	return intact(calls);
}

static void take_layer(uint64_t step, uint16_t layer, const uint16_t ids[IDS],
		       r3ring_load_intact check, int result)
{
	struct r3ring_view view = view_of(step, layer, ids);
	uint32_t calls = 0;

	cr_assert_eq(r3ring_load_feed_view(load_feed.load, 0, &view, check, &calls), result);
	cr_assert_eq(calls, 1);
}

static const uint16_t known[IDS] = {0, 1, 1, 2, 7, 0, 3, 1};
static const uint16_t strange[IDS] = {8, 1, 15, 16, 0xFFFF, 0, 40000, 9};

static void expect_known(struct expected *expected, uint32_t layer)
{
	expected->rows[layer] += ROWS;
	for (uint32_t i = 0; i < IDS; i++)
		if (known[i] < LOAD_EXPERTS)
			expected->counts[layer][known[i]]++;
}

Test(load_view, a_record_that_was_overwritten_meanwhile_counts_nothing_and_leaves_nothing)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_step(&load_feed, 1, ROWS, NULL, 0, NULL, 0);
	take_layer(1, 0, strange, overwritten, -EOVERFLOW);
	take_layer(1, 1, known, intact, 0);
	take_layer(1, 2, known, overwritten, -EOVERFLOW);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_known(&expected, 1);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->accounts.lost[R3RING_MISSING_GAP], 2 * ROWS);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		cr_assert_float_eq(info->no_expert[layer], 0, CLOSE);
}

Test(load_view, ids_are_read_before_the_check_and_never_again)
{
	struct expected expected = {0};

	feed_step(&load_feed, 1, ROWS, NULL, 0, NULL, 0);
	for (uint16_t layer = 0; layer < FEED_LAYERS; layer++) {
		take_layer(1, layer, known, intact_until_now, 0);
		expect_known(&expected, layer);
	}
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_load(&expected, 0);
}

Test(load_view, ids_that_are_no_experts_are_counted_apart_and_only_in_their_layer)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	/* Of a step that is the only one, and of one behind a step that waits. */
	for (uint64_t step = 1; step <= 2; step++) {
		feed_step(&load_feed, step, ROWS, NULL, 0, NULL, 0);
		take_layer(step, 0, strange, intact, 0);
		take_layer(step, 1, known, intact, 0);
		take_layer(step, 2, strange, intact, 0);
		feed_step_end(&load_feed, step, 0, R3RING_CAUSE_NONE);
		expect_known(&expected, 1);
		for (uint32_t layer = 0; layer <= 2; layer += 2) {
			expected.rows[layer] += ROWS;
			expected.counts[layer][0]++;
			expected.counts[layer][1]++;
		}
		info = read_load(0);
		expect_info(info, &expected);
		cr_assert_float_eq(info->no_expert[0], 6.0 * (double)step, CLOSE);
		cr_assert_float_eq(info->no_expert[1], 0, CLOSE);
		cr_assert_float_eq(info->no_expert[2], 6.0 * (double)step, CLOSE);
	}
}

Test(load_view, a_step_behind_one_that_waits_is_counted_in_place_too)
{
	struct r3ring_span draft = load_draft(1, 10, 0, ROWS, R3RING_UNKNOWN_U32);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_step(&load_feed, 1, ROWS, &draft, 1, NULL, 0);
	take_layer(1, 0, known, intact_until_now, 0);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	feed_step(&load_feed, 2, ROWS, NULL, 0, NULL, 0);
	take_layer(2, 1, known, intact_until_now, 0);
	take_layer(2, 2, strange, intact, 0);
	feed_step_end(&load_feed, 2, 0, R3RING_CAUSE_NONE);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     -ENODATA);
	draft.accepted = ROWS;
	feed_spans(&load_feed, 1, &draft, 1);
	expect_known(&expected, 0);
	expect_known(&expected, 1);
	expected.rows[2] = ROWS;
	expected.counts[2][0] = expected.counts[2][1] = 1;
	expect_load(&expected, 0);
	cr_assert_float_eq(read_load(0)->no_expert[2], 6, CLOSE);
}

Test(load_view, a_channel_that_was_not_announced_is_refused_before_anything_is_read)
{
	struct r3ring_view view = view_of(1, 0, known);
	uint32_t calls = 0;

	cr_assert_eq(r3ring_load_feed_view(load_feed.load, 7, &view, intact, &calls), -EINVAL);
	cr_assert_eq(calls, 0);
}

Test(load_view, what_is_no_such_record_is_refused_and_its_view_is_closed)
{
	struct r3ring_view view = view_of(1, 0, known);
	uint32_t calls = 0;

	view.len -= 2;
	cr_assert_eq(r3ring_load_feed_view(load_feed.load, 0, &view, intact, &calls), -EBADMSG);
	cr_assert_eq(calls, 1);
}

/* ---- a ring that laps ------------------------------------------------------------ */

static int check_cursor(void *cursor)
{
	return r3ring_cursor_check(cursor);
}

/* So much is published behind the record that its bytes are another's. */
static int check_lapped(void *ctx)
{
	void **ring_and_cursor = ctx;

	ring_fixture_put_many(ring_and_cursor[0], 200, 4000);
	return r3ring_cursor_check(ring_and_cursor[1]);
}

Test(load_view, a_ring_that_laps_its_reader_counts_nothing_of_the_record_at_hand)
{
	struct ring_fixture ring;
	struct r3ring_record_spec spec = {.type = R3RING_LAYER, .len = PAYLOAD_BYTES};
	struct expected expected = {0};
	struct r3ring_cursor *cursor;
	struct r3ring_view view;
	void *both[2];

	ring_fixture_open(&ring, 1024, 1 << 18);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_FIRST, 0);
	feed_step(&load_feed, 1, ROWS, NULL, 0, NULL, 0);
	for (uint16_t layer = 0; layer < 2; layer++) {
		struct r3ring_view place = view_of(1, layer, known);

		cr_assert_eq(r3ring_writer_put(ring.writer, &spec, &payload), 0);
		cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
		place.data = view.data;
		both[0] = &ring;
		both[1] = cursor;
		cr_assert_eq(
			layer ? r3ring_load_feed_view(load_feed.load, 0, &place, check_lapped, both)
			      : r3ring_load_feed_view(load_feed.load, 0, &place, check_cursor,
						      cursor),
			layer ? -EOVERFLOW : 0);
	}
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_known(&expected, 0);
	expect_load(&expected, 0);
	r3ring_cursor_close(cursor);
	ring_fixture_close(&ring);
}

/* ---- sums that are made while a step runs -------------------------------------------- */

/* The average, added up from all steps: those of which @lost is a layer had no such layer. */
static void expect_average(uint64_t steps, const uint32_t *lost)
{
	const double decay = exp2(-1.0 / 64);
	double counts[FEED_LAYERS][LOAD_EXPERTS] = {{0}}, weight = 0;
	const struct r3ring_load_info *info;

	for (uint64_t step = 1; step <= steps; step++) {
		weight = weight * decay + 1;
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
			for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
				counts[layer][e] *= decay;
			for (uint32_t i = 0; lost[step - 1] != layer && i < IDS; i++)
				counts[layer][load_feed.id(NULL, step, i / FEED_TOP_K, layer,
							   i % FEED_TOP_K)]++;
		}
	}
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_AVERAGE, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     0);
	info = r3ring_load_snapshot_info(snapshot);
	for (uint32_t i = 0; i < FEED_LAYERS * LOAD_EXPERTS; i++) {
		double expected = counts[i / LOAD_EXPERTS][i % LOAD_EXPERTS] / weight;

		cr_assert_float_eq(info->counts[i], expected, CLOSE, "%u: %g, not %g", i,
				   info->counts[i], expected);
	}
}

Test(load_view, a_layer_that_is_taken_back_is_in_no_average_either)
{
	static const uint32_t lost[] = {9, 1, 0, 9, 2};

	for (uint64_t step = 1; step <= 5; step++) {
		feed_step(&load_feed, step, ROWS, NULL, 0, NULL, 0);
		feed_layers(&load_feed, step, ROWS, 0, FEED_LAYERS);
		feed_step_end(&load_feed, step, (int32_t)lost[step - 1],
			      lost[step - 1] < FEED_LAYERS ? R3RING_CAUSE_OVERLAP
							   : R3RING_CAUSE_NONE);
	}
	expect_average(5, lost);
}

static struct load_board *board(void)
{
	return load_board_now(load_feed.load->channel[0]);
}

Test(load_view, with_all_places_being_read_steps_are_shown_later_and_none_is_missing)
{
	static const uint32_t none[] = {9, 9, 9, 9, 9, 9};
	struct expected expected = {0};
	struct r3ring_load_stats stats;

	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		cr_assert(hold_enter(&board()->image[i].hold));
	for (uint64_t step = 2; step <= 4; step++)
		feed_whole(&load_feed, step, ROWS, NULL, 0);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.snapshots_put_off, 3);
	cr_assert_eq(read_load(0)->to_step, 1);
	hold_leave(&board()->image[LOAD_IMAGES - 1].hold);
	feed_whole(&load_feed, 5, ROWS, NULL, 0);
	cr_assert_eq(read_load(0)->to_step, 5);
	for (uint32_t i = 0; i < LOAD_IMAGES - 1; i++)
		hold_leave(&board()->image[i].hold);
	feed_whole(&load_feed, 6, ROWS, NULL, 0);
	for (uint64_t step = 1; step <= 6; step++)
		expect_rows(&expected, step, 0, ROWS);
	expect_load(&expected, 0);
	expect_average(6, none);
}

Test(load_view, places_that_come_free_only_at_a_steps_end_are_used)
{
	static const uint32_t none[] = {9, 9, 9};
	struct expected expected = {0};

	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		cr_assert(hold_enter(&board()->image[i].hold));
	feed_whole(&load_feed, 2, ROWS, NULL, 0);
	feed_step(&load_feed, 3, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 3, ROWS, 0, FEED_LAYERS);
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		hold_leave(&board()->image[i].hold);
	feed_step_end(&load_feed, 3, 0, R3RING_CAUSE_NONE);
	for (uint64_t step = 1; step <= 3; step++)
		expect_rows(&expected, step, 0, ROWS);
	expect_load(&expected, 0);
	expect_average(3, none);
}

Test(load_view, what_is_lost_while_a_step_runs_is_told_without_any_of_the_step)
{
	static const uint32_t none[] = {9, 9};
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	feed_step(&load_feed, 2, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 2, ROWS, 0, 2);
	load_feed.lost_cells = 11;
	feed_lost(&load_feed, 0, 0, R3RING_CAUSE_QUEUE_FULL, 0);
	expect_rows(&expected, 1, 0, ROWS);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->accounts.lost[R3RING_CAUSE_QUEUE_FULL], 11);
	feed_layers(&load_feed, 2, ROWS, 2, 3);
	feed_step_end(&load_feed, 2, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 2, 0, ROWS);
	expect_load(&expected, 0);
	expect_average(2, none);
}

Test(load_view, a_step_that_is_given_up_for_other_layers_leaves_nothing_in_the_sums)
{
	struct expected expected = {0};

	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	feed_step(&load_feed, 2, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 2, ROWS, 0, 2);
	load_feed.first_layer = 10;
	feed_schema(&load_feed);
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
	load_feed.first_layer = 0;
	feed_schema(&load_feed);
	feed_step(&load_feed, 4, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 4, ROWS, 1, FEED_LAYERS);
	feed_layers(&load_feed, 4, ROWS, 0, 1);
	feed_step_end(&load_feed, 4, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 1, 0, ROWS);
	expect_rows(&expected, 4, 0, ROWS);
	expect_load(&expected, 0);
}
