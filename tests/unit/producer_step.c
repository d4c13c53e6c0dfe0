/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: how they are announced, refused, dropped, counted and ended. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <r3ring/host_stream.h>

#include "producer/token_map.h"
#include "tests/unit/producer_fixture.h"

TestSuite(producer_step, .init = start, .fini = stop, .timeout = 30);

/* ---- announcing ------------------------------------------------------- */

Test(producer_step, steps_are_numbered_from_one_with_the_rows_before_them)
{
	uint64_t rows = 0;

	for (int64_t i = 1; i <= 5; i++) {
		struct r3ring_step step = step_of((uint32_t)i * 3);
		struct r3ring_record record;
		struct lane_step lane_step;

		cr_assert_eq(r3ring_step_begin(producer, &step, NULL), i);
		cr_assert_eq(r3ring_step_end(producer, NULL), 0);
		lane_step = next_step(&record);
		cr_assert_eq(record.u.step.head.step, (uint64_t)i);
		cr_assert_eq(lane_step.rows_before, rows);
		cr_assert_eq(lane_step.cause, 0);
		rows += (uint64_t)i * 3;
		cr_assert_eq(pages_read_begun(&service.pages).step, (uint64_t)i);
		cr_assert_eq(pages_read_begun(&service.pages).rows, rows);
	}
	cr_assert_eq(stats_now().steps, 5);
	cr_assert_eq(stats_now().rows, rows);
}

Test(producer_step, the_token_map_arrives_as_it_was_given)
{
	const uint64_t request[] = {11, 12, 13};
	const uint32_t position[] = {100, 200, 300}, row[] = {0, 4, 0}, rows[] = {4, 6, 64};
	const uint32_t accepted[] = {R3RING_UNKNOWN_U32, 2, 0}, keys[] = {1, 0, 2};
	const uint16_t attempt[] = {0, 1, 2};
	const uint8_t kind[] = {R3RING_SPAN_COMPUTED, R3RING_SPAN_COMPUTED, R3RING_SPAN_CACHED};
	const uint8_t flags[] = {0, R3RING_SPAN_DRAFT, 0};
	const uint64_t key[] = {1001, 1002, 1003};
	struct r3ring_step step = step_of(12);
	struct r3ring_record record;

	step.row_begin = 2;
	step.row_end = 11;
	step.valid_end = 10;
	step.flags = R3RING_STEP_WARMUP | R3RING_STEP_SPANS_FOLLOW;
	step.weight_version = 5;
	step.eplb_epoch = 6;
	step.spans = 3;
	step.keys = 3;
	step.tokens_per_key = 32;
	step.key_kind = R3RING_KEYS_BLOCK_HASH;
	step.span_request = request;
	step.span_position = position;
	step.span_row = row;
	step.span_rows = rows;
	step.span_accepted = accepted;
	step.span_keys = keys;
	step.span_attempt = attempt;
	step.span_kind = kind;
	step.span_flags = flags;
	step.key = key;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	next_step(&record);

	cr_assert_eq(record.u.step.head.total_rows, 12);
	cr_assert_eq(record.u.step.head.row_begin, 2);
	cr_assert_eq(record.u.step.head.row_end, 11);
	cr_assert_eq(record.u.step.head.valid_end, 10);
	cr_assert_eq(record.u.step.head.flags, step.flags);
	cr_assert_eq(record.u.step.head.weight_version, 5);
	cr_assert_eq(record.u.step.head.eplb_epoch, 6);
	cr_assert_eq(record.u.step.head.tokens_per_key, 32);
	cr_assert_gt(record.u.step.head.host_ns, 0);
	for (int i = 0; i < 3; i++) {
		const struct r3ring_span *span = &record.u.step.spans[i];

		cr_assert_eq(span->request, request[i]);
		cr_assert_eq(span->position, position[i]);
		cr_assert_eq(span->row, row[i]);
		cr_assert_eq(span->rows, rows[i]);
		cr_assert_eq(span->accepted, accepted[i]);
		cr_assert_eq(span->keys, keys[i]);
		cr_assert_eq(span->attempt, attempt[i]);
		cr_assert_eq(span->kind, kind[i]);
		cr_assert_eq(span->flags, flags[i]);
		cr_assert_eq(record.u.step.keys[i], key[i]);
	}
	cr_assert_eq(stats_now().rows, 8, "valid rows of this rank: [2,10)");
}

Test(producer_step, arrays_that_are_left_out_read_as_their_defaults)
{
	const uint64_t request[] = {1};
	const uint32_t position[] = {7}, rows[] = {5};
	struct r3ring_step step = step_of(5);
	struct r3ring_record record;

	step.spans = 1;
	step.span_request = request;
	step.span_position = position;
	step.span_rows = rows;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	next_step(&record);
	cr_assert_eq(record.u.step.spans[0].row, 0);
	cr_assert_eq(record.u.step.spans[0].accepted, R3RING_UNKNOWN_U32);
	cr_assert_eq(record.u.step.spans[0].keys, 0);
	cr_assert_eq(record.u.step.spans[0].attempt, 0);
	cr_assert_eq(record.u.step.spans[0].kind, R3RING_SPAN_COMPUTED);
	cr_assert_eq(record.u.step.spans[0].flags, 0);
}

Test(producer_step, failure_16_steps_of_no_row_and_of_the_most_rows_get_an_extent)
{
	const uint32_t rows[] = {0, 1, 16, 17, 64};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct r3ring_step step = step_of(rows[i]);
		struct r3ring_record record;
		struct lane_step lane_step;

		cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
		cr_assert_eq(r3ring_step_end(producer, NULL), 0);
		lane_step = next_step(&record);
		cr_assert_neq(lane_step.extent_offset, EXTENT_NONE);
		cr_assert_leq(lane_step.extent_offset + extent_bytes(&producer->geometry, rows[i]),
			      service.hello.buffer_bytes);
		fake_service_release(&service, 1);
	}
}

/* ---- refusing --------------------------------------------------------- */

static void assert_step_refused(const struct r3ring_step *step, const char *says)
{
	cr_assert_eq(r3ring_step_begin(producer, step, NULL), -EINVAL);
	assert_says(says);
	cr_assert_eq(stats_now().steps, 0, "it must get no number");
	assert_nothing_announced();
}

Test(producer_step, rows_that_do_not_fit_each_other_are_refused)
{
	struct r3ring_step step = step_of(8);

	step.size = 4;
	assert_step_refused(&step, "size");
	step = step_of(8);
	step.row_begin = 9;
	assert_step_refused(&step, "row_begin");
	step = step_of(8);
	step.row_end = 9;
	assert_step_refused(&step, "row_end");
	step = step_of(8);
	step.valid_end = 9;
	assert_step_refused(&step, "valid_end");
	step = step_of(8);
	step.flags = R3RING_STEP_DROPPED;
	assert_step_refused(&step, "flags");
}

Test(producer_step, spans_that_do_not_fit_the_step_are_refused)
{
	const uint64_t request[] = {1};
	uint32_t position[] = {0}, row[] = {4}, rows[] = {5}, accepted[] = {6}, keys[] = {0};
	uint8_t kind[] = {0}, flags[] = {0};
	struct r3ring_step step = step_of(8);

	step.spans = 1;
	assert_step_refused(&step, "span_request");
	step.span_request = request;
	step.span_position = position;
	step.span_rows = rows;
	step.span_row = row;
	step.span_kind = kind;
	step.span_flags = flags;
	step.span_accepted = accepted;
	step.span_keys = keys;
	assert_step_refused(&step, "rows outside of the step");
	row[0] = 3;
	position[0] = UINT32_MAX - 2;
	assert_step_refused(&step, "beyond the last position");
	position[0] = 0;
	kind[0] = 3;
	assert_step_refused(&step, "unknown kind");
	kind[0] = 0;
	flags[0] = 2;
	assert_step_refused(&step, "flag");
	flags[0] = R3RING_SPAN_DRAFT;
	assert_step_refused(&step, "more accepted than drafted");
	accepted[0] = 5;
	keys[0] = 1;
	assert_step_refused(&step, "sum of span_keys");
	keys[0] = 0;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
}

Test(producer_step, rows_outside_of_the_step_are_refused_whatever_arrays_are_there)
{
	const uint64_t request[65] = {0};
	const uint32_t zero[65] = {0};
	const uint8_t computed[65] = {0}, cached[65] = {R3RING_SPAN_CACHED, R3RING_SPAN_CACHED};
	uint32_t row[65] = {0}, rows[65] = {0};
	struct r3ring_step step = step_of(8);

	step.spans = 65;
	step.span_request = request;
	step.span_position = zero;
	step.span_rows = rows;
	for (uint32_t at = 0; at < 65; at += 64) {
		rows[at] = 9;
		step.span_row = NULL;
		assert_step_refused(&step, "rows outside of the step");
		step.span_kind = computed;
		assert_step_refused(&step, "rows outside of the step");
		step.span_kind = NULL;
		step.span_row = row;
		assert_step_refused(&step, "rows outside of the step");
		rows[at] = 1;
		row[at] = 8;
		assert_step_refused(&step, "rows outside of the step");
		row[at] = UINT32_MAX;
		assert_step_refused(&step, "rows outside of the step");
		step.span_kind = computed;
		assert_step_refused(&step, "rows outside of the step");
		step.span_kind = NULL;
		row[at] = rows[at] = 0;
	}
	rows[0] = 9;
	step.span_kind = cached;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1, "cached ones have no rows");
}

Test(producer_step, failure_51_two_requests_for_one_row_are_refused_wherever_they_are)
{
	uint64_t request[130];
	uint32_t position[130] = {0}, row[130], rows[130];
	uint8_t kind[130] = {0};
	struct r3ring_step step = step_of(64);

	step.spans = 130;
	step.span_request = request;
	step.span_position = position;
	step.span_rows = rows;
	step.span_row = row;
	for (uint32_t i = 0; i < 130; i++) {
		request[i] = i + 1;
		row[i] = i / 4;
		rows[i] = i % 4 == 0;
	}
	for (uint32_t at = 4; at < 130; at += 4) {
		row[at]--;
		assert_step_refused(&step, "spans overlap");
		step.span_kind = kind;
		assert_step_refused(&step, "spans overlap");
		kind[at] = R3RING_SPAN_CACHED;
		cr_assert_null(token_map_write(&step, 64, NULL));
		kind[at] = R3RING_SPAN_COMPUTED;
		step.span_kind = NULL;
		row[at]++;
	}
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
}

Test(producer_step, keys_without_kind_size_or_array_are_refused)
{
	const uint64_t request[] = {1}, key[] = {9};
	const uint32_t zero[] = {0}, one[] = {1};
	struct r3ring_step step = step_of(1);

	step.spans = 1;
	step.span_request = request;
	step.span_position = zero;
	step.span_rows = one;
	step.span_keys = one;
	step.keys = 1;
	assert_step_refused(&step, "key is NULL");
	step.key = key;
	assert_step_refused(&step, "key_kind is none");
	step.key_kind = 3;
	assert_step_refused(&step, "key_kind is unknown");
	step.key_kind = R3RING_KEYS_SLOT;
	assert_step_refused(&step, "tokens_per_key is 0");
	step.tokens_per_key = 1;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
}

Test(producer_step, a_step_with_too_many_rows_is_counted_and_announced_as_lost)
{
	struct r3ring_step step = step_of(65);
	struct r3ring_record record;
	struct lane_step lane_step;

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EMSGSIZE);
	cr_assert_not_null(
		strstr(r3ring_producer_error(producer), "total_rows is 65, max_rows 64"));
	cr_assert_eq(r3ring_step_end(producer, NULL), -EINVAL, "no step is open");
	lane_step = next_step(&record);
	cr_assert_eq(record.u.step.head.step, 1);
	cr_assert_eq(record.u.step.head.total_rows, 65);
	cr_assert_eq(lane_step.extent_offset, EXTENT_NONE);
	cr_assert_eq(lane_step.cause, R3RING_CAUSE_TOO_BIG);
	cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_TOO_BIG], 1);
	cr_assert_eq(stats_now().dropped_rows[R3RING_CAUSE_TOO_BIG], 65);

	step = step_of(64);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 2);
	cr_assert_eq(next_step(&record).rows_before, 65);
}

Test(producer_step, rows_that_no_record_can_say_are_a_gap_in_the_numbers)
{
	struct r3ring_step step = step_of(R3RING_ROWS_MAX + 1);

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EMSGSIZE);
	assert_nothing_announced();
	cr_assert_eq(pages_read_begun(&service.pages).step, 1);
	cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_TOO_BIG], 1);
}

Test(producer_step, failure_20_the_next_entry_says_why_steps_before_it_have_none)
{
	struct r3ring_step step = step_of(R3RING_ROWS_MAX + 1);
	struct r3ring_record record;
	struct lane_step lane_step;

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EMSGSIZE);
	step = step_of(4);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 2);
	lane_step = next_step(&record);
	cr_assert_eq(lane_step.gap.too_big_steps, 1);
	cr_assert_eq(lane_step.gap.too_big_rows, R3RING_ROWS_MAX + 1);
	cr_assert_eq(lane_step.gap.restart_steps, 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 3);
	cr_assert_eq(next_step(&record).gap.too_big_steps, 0, "said once");
}

Test(producer_step, an_entry_says_how_many_extents_are_free_once_its_own_is)
{
	struct r3ring_step step = step_of(65);
	struct r3ring_record record;

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EMSGSIZE);
	cr_assert_eq(next_step(&record).extents, 0);
	step = step_of(4);
	for (uint64_t taken = 1; taken <= 3; taken++) {
		cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
		cr_assert_eq(next_step(&record).extents, taken);
		cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	}
}

/* ---- streams ---------------------------------------------------------- */

Test(producer_step, a_step_still_open_on_the_same_stream_ends)
{
	struct r3ring_step step = step_of(4);
	struct extent_slot *slots[2];

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	slots[0] = pages_slot(&service.pages, 0);
	slots[1] = pages_slot(&service.pages, 1);
	cr_assert_eq(slots[0]->begin_step, 1);
	cr_assert_eq(slots[0]->end_step, 0);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 2);
	cr_assert_eq(slots[0]->end_step, 1);
	cr_assert_eq(slots[1]->begin_step, 2);
	cr_assert_eq(slots[1]->end_step, 0);
}

Test(producer_step, a_step_open_on_another_stream_is_busy_and_stays_open)
{
	struct r3ring_step step = step_of(4);
	struct r3ring_host_stream *stream;

	cr_assert_eq(r3ring_host_stream_create(&stream), 0);
	cr_assert_eq(r3ring_step_begin(producer, &step, stream), 1);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EBUSY);
	cr_assert_eq(r3ring_step_end(producer, NULL), -EBUSY);
	cr_assert_eq(r3ring_step_end(producer, stream), 0);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 2);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	r3ring_host_stream_synchronize(stream);
	r3ring_host_stream_destroy(stream);
}

Test(producer_step, ending_without_a_step_is_refused)
{
	cr_assert_eq(r3ring_step_end(producer, NULL), -EINVAL);
	assert_says("no step is open");
}

static bool is_capturing(struct device *device, void *stream)
{
	(void)device;
	(void)stream;
	return true;
}

Test(producer_step, steps_do_not_begin_or_end_under_stream_capture)
{
	struct device_ops ops = device_host_ops;
	struct r3ring_step step = step_of(4);

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	ops.stream_capturing = is_capturing;
	producer->ops = &ops;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EINVAL);
	cr_assert_eq(r3ring_step_end(producer, NULL), -EINVAL);
	producer->ops = &device_host_ops;
	cr_assert_eq(r3ring_step_end(producer, NULL), 0, "the step before it is still open");
}

static int refuse_begin(struct device *device, void *stream, const struct kernel_begin_args *args)
{
	(void)device;
	(void)stream;
	(void)args;
	return -EIO;
}

Test(producer_step, a_step_that_the_device_refuses_is_ended_by_the_host)
{
	struct device_ops ops = device_host_ops;
	struct r3ring_step step = step_of(4);

	ops.launch_begin = refuse_begin;
	producer->ops = &ops;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), -EIO);
	cr_assert_eq(pages_slot(&service.pages, 0)->end_step, 1);
	cr_assert_eq(pages_bell(pages_slot(&service.pages, 0), 0)->step, 0);
	producer->ops = &device_host_ops;
	cr_assert_eq(r3ring_step_end(producer, NULL), -EINVAL, "no step is open");
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 2);
}
