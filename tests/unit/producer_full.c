/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that find no room: dropped, and counted exactly by cause. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/producer_fixture.h"

TestSuite(producer_full, .init = start_closed, .fini = stop, .timeout = 30);

/* Begins and ends steps of @rows until one is dropped for @cause; how many were not. */
static uint64_t fill(uint32_t rows, enum r3ring_cause cause)
{
	uint64_t before = stats_now().steps;

	while (!stats_now().dropped_steps[cause]) {
		struct r3ring_step step = step_of(rows);

		cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
		cr_assert_eq(r3ring_step_end(producer, NULL), 0);
		cr_assert_lt(stats_now().steps, before + 100000);
	}
	return stats_now().steps - before - 1;
}

Test(producer_full, failure_20_a_full_queue_drops_steps_and_counts_them_exactly)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_step step = step_of(5);
	struct r3ring_record record;
	struct lane_step lane_step;
	uint64_t fitted;

	options.queue_bytes = 128 << 10;
	open_with(options);
	fitted = fill(1, R3RING_CAUSE_QUEUE_FULL);
	for (int i = 0; i < 9; i++) {
		cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
		cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	}
	cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_QUEUE_FULL], 10);
	cr_assert_eq(stats_now().dropped_rows[R3RING_CAUSE_QUEUE_FULL], 1 + 9 * 5);
	cr_assert_eq(stats_now().steps, fitted + 10);

	for (uint64_t i = 1; i <= fitted; i++) {
		next_step(&record);
		cr_assert_eq(record.u.step.head.step, i);
	}
	assert_nothing_announced();
	cr_assert_eq(pages_read_begun(&service.pages).step, fitted + 10);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), (int64_t)fitted + 11);
	lane_step = next_step(&record);
	cr_assert_eq(record.u.step.head.step, fitted + 11, "the jump says how many were lost");
	cr_assert_eq(lane_step.rows_before, fitted + 1 + 9 * 5, "and how many rows");
}

Test(producer_full, failure_20_a_full_buffer_drops_steps_and_counts_them_exactly)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_record record;
	uint64_t fitted;

	service.rows_per_record = 1000;
	options.buffer_bytes = 2 * producer_extent_bound(&options);
	open_with(options);
	fitted = fill(64, R3RING_CAUSE_BUFFER_FULL);
	cr_assert_eq(fitted, 2);
	cr_assert_eq(stats_now().dropped_rows[R3RING_CAUSE_BUFFER_FULL], 64);

	cr_assert_eq(next_step(&record).cause, 0);
	cr_assert_eq(next_step(&record).cause, 0);
	{
		struct lane_step dropped = next_step(&record);

		cr_assert_eq(dropped.extent_offset, EXTENT_NONE);
		cr_assert_eq(dropped.cause, R3RING_CAUSE_BUFFER_FULL);
		cr_assert_eq(record.u.step.head.step, 3);
	}
	fake_service_release(&service, 1);
	{
		struct r3ring_step step = step_of(64);

		cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 4);
		cr_assert_eq(next_step(&record).cause, 0);
		cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_BUFFER_FULL], 1);
	}
}

Test(producer_full, slots_are_used_again_only_after_release)
{
	struct r3ring_record record;
	struct r3ring_step step = step_of(0);

	open_with(fake_service_options(&service));
	cr_assert_leq(fill(0, R3RING_CAUSE_BUFFER_FULL), PAGES_SLOTS);
	cr_assert_eq(next_step(&record).slot, 0);
	fake_service_release(&service, 1);
	cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
	while (record.u.step.head.step < stats_now().steps) {
		struct lane_step lane_step = next_step(&record);

		if (record.u.step.head.step == stats_now().steps)
			cr_assert_neq(lane_step.extent_offset, EXTENT_NONE);
	}
}

Test(producer_full, spans_that_the_queue_never_takes_are_too_big)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	static uint64_t request[2000];
	static uint32_t zero[2000];
	struct r3ring_step step = step_of(1);

	options.queue_bytes = 128 << 10;
	open_with(options);
	step.spans = 2000;
	step.span_request = request;
	step.span_position = zero;
	step.span_rows = zero;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EMSGSIZE);
	assert_says("raise queue_bytes");
	assert_nothing_announced();
	cr_assert_eq(pages_read_begun(&service.pages).step, 1);
	cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_TOO_BIG], 1);
}

Test(producer_full, a_dropped_step_captures_nothing)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	static int64_t ids[64 * 2];
	struct r3ring_topk topk = {
		.ids = ids, .type = R3RING_INT64, .rows = 64, .columns = 2, .row_stride = 2};
	struct r3ring_step step = step_of(64);
	static uint8_t before[1 << 20];

	service.rows_per_record = 1000;
	options.buffer_bytes = producer_extent_bound(&options);
	open_with(options);
	cr_assert_eq(fill(64, R3RING_CAUSE_BUFFER_FULL), 1);
	cr_assert_leq(service.hello.buffer_bytes, sizeof(before));
	memcpy(before, service.buffer, service.hello.buffer_bytes);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 3);
	for (int i = 0; i < 64 * 2; i++)
		ids[i] = 7;
	for (uint32_t layer = 0; layer < 4; layer++)
		cr_assert_eq(r3ring_capture_layer(producer, layer, &topk, NULL), 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	cr_assert_arr_eq(before, service.buffer, service.hello.buffer_bytes);
}
