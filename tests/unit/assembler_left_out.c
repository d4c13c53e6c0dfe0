/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that a recorder was told to leave out are missing for that, and nothing else is. */
#include <errno.h>

#include "tests/unit/record_feed.h"

static struct feed channel;

static void open_channel(void)
{
	feed_create(&channel, NULL);
	feed_schema(&channel);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_left_out, .init = open_channel, .fini = close_channel);

/* A step of two rows, of which layers from @came on are to come. */
static void begin(uint32_t came)
{
	const struct r3ring_span span = {.request = 1, .rows = 2, .accepted = R3RING_UNKNOWN_U32};

	feed_begin(&channel, 1, "a", 2, 0);
	feed_step(&channel, 1, 2, &span, 1, NULL, 0);
	feed_layers(&channel, 1, 2, 0, came);
}

/* One more record of step 1 that a recorder of layers [0, @kept) left out. */
static void leave_out(uint32_t kept)
{
	const struct r3ring_view view = {
		.seq = ++channel.seq, .step = 1, .generation = 1, .type = R3RING_LAYER};

	cr_assert_eq(r3ring_assembler_skip(channel.assembler, 0, &view, 0, kept), 0);
}

static struct r3ring_assembled *finish(void)
{
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	return take(&channel, "a");
}

static void expect_causes(uint8_t first, uint8_t second, uint8_t third)
{
	const uint8_t expected[FEED_LAYERS] = {first, second, third};
	struct r3ring_assembled *got = finish();

	for (uint32_t row = 0; row < 2; row++)
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
			cr_expect_eq(
				cell_of(got, row, layer, 0, 1, row), expected[layer],
				"row %u, layer %u: %s", row, layer,
				r3ring_missing_cause_name(cell_of(got, row, layer, 0, 1, row)));
	r3ring_assembled_free(got);
}

Test(assembler_left_out, a_layer_that_was_left_out_is_missing_as_not_recorded)
{
	begin(1);
	leave_out(1);
	leave_out(1);
	feed_step_end(&channel, 1, -1, 0);
	expect_causes(0, R3RING_MISSING_NOT_RECORDED, R3RING_MISSING_NOT_RECORDED);
}

Test(assembler_left_out, where_fewer_were_left_out_than_the_step_has_nobody_knows_which_were_lost)
{
	begin(1);
	leave_out(1);
	channel.seq++;
	r3ring_assembler_gap(channel.assembler, 0);
	feed_step_end(&channel, 1, -1, 0);
	expect_causes(0, R3RING_MISSING_GAP, R3RING_MISSING_GAP);
}

Test(assembler_left_out, a_kept_layer_that_was_lost_beside_them_is_a_gap)
{
	begin(1);
	channel.seq++;
	r3ring_assembler_gap(channel.assembler, 0);
	leave_out(2);
	feed_step_end(&channel, 1, -1, 0);
	expect_causes(0, R3RING_MISSING_GAP, R3RING_MISSING_NOT_RECORDED);
}

Test(assembler_left_out, what_the_step_s_end_says_of_such_a_layer_is_told_instead)
{
	begin(1);
	leave_out(1);
	feed_step_end(&channel, 1, 2, R3RING_CAUSE_NOT_CAPTURED);
	expect_causes(0, R3RING_MISSING_NOT_RECORDED, R3RING_CAUSE_NOT_CAPTURED);
}

Test(assembler_left_out, records_of_steps_and_generations_that_nobody_announced_are_passed_over)
{
	struct r3ring_view view = {.seq = 9, .step = 7, .generation = 1, .type = R3RING_LAYER};

	begin(FEED_LAYERS);
	cr_assert_eq(r3ring_assembler_skip(channel.assembler, 0, &view, 0, 1), 0);
	view.generation = 2;
	view.step = 1;
	cr_assert_eq(r3ring_assembler_skip(channel.assembler, 0, &view, 0, 1), 0);
	cr_assert_eq(r3ring_assembler_skip(channel.assembler, 1, &view, 0, 1), -EINVAL);
	feed_step_end(&channel, 1, -1, 0);
	expect_causes(0, 0, 0);
}
