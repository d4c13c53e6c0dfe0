/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, late spans, maps and key copies; their order; what waits for room. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/producer_fixture.h"

TestSuite(producer_announce, .init = start, .fini = stop, .timeout = 30);
TestSuite(producer_spill, .init = start_small, .fini = stop, .timeout = 60);

/* ---- requests --------------------------------------------------------- */

Test(producer_announce, a_request_arrives_with_all_its_texts)
{
	const struct r3ring_request request = {
		.size = sizeof(request),
		.id = "chat-1",
		.session = "s",
		.sample = "a sample",
		.prompt_tokens = 77,
		.attempt = 2,
	};
	struct r3ring_record record;

	cr_assert_eq(r3ring_request_begin(producer, &request), 1);
	next_record(R3RING_REQUEST, &record);
	cr_assert_eq(record.u.request.head.handle, 1);
	cr_assert_eq(record.u.request.head.event, R3RING_REQUEST_BEGIN);
	cr_assert_eq(record.u.request.head.prompt_tokens, 77);
	cr_assert_eq(record.u.request.head.attempt, 2);
	cr_assert_eq(record.u.request.head.accepted_tokens, R3RING_UNKNOWN_U32);
	cr_assert_eq(record.u.request.head.id_len, 6);
	cr_assert_arr_eq(record.u.request.id, "chat-1", 6);
	cr_assert_arr_eq(record.u.request.session, "s", 1);
	cr_assert_eq(record.u.request.head.turn_len, 0);
	cr_assert_arr_eq(record.u.request.sample, "a sample", 8);
}

Test(producer_announce, failure_17_the_end_carries_the_accepted_length)
{
	struct r3ring_record record;

	cr_assert_eq(begin_request("r"), 1);
	cr_assert_eq(r3ring_request_end(producer, 1, R3RING_END_PREEMPTED, 3, 42), 0);
	next_record(R3RING_REQUEST, &record);
	next_record(R3RING_REQUEST, &record);
	cr_assert_eq(record.u.request.head.event, R3RING_REQUEST_END);
	cr_assert_eq(record.u.request.head.reason, R3RING_END_PREEMPTED);
	cr_assert_eq(record.u.request.head.attempt, 3);
	cr_assert_eq(record.u.request.head.accepted_tokens, 42);
}

Test(producer_announce, a_request_ends_once)
{
	struct r3ring_record record;

	cr_assert_eq(begin_request("r"), 1);
	cr_assert_eq(begin_request("s"), 2);
	cr_assert_eq(r3ring_request_end(producer, 1, R3RING_END_FINISHED, 0, 4), 0);
	cr_assert_eq(r3ring_request_end(producer, 1, R3RING_END_FINISHED, 0, 4), -EALREADY);
	assert_says("handle 1 has ended");
	cr_assert_eq(r3ring_request_end(producer, 2, R3RING_END_ABORTED, 0, 4), 0);
	for (int i = 0; i < 3; i++)
		next_record(R3RING_REQUEST, &record);
	cr_expect_eq(record.u.request.head.event, R3RING_REQUEST_END);
	next_record(R3RING_REQUEST, &record);
	cr_expect_eq(record.u.request.head.handle, 2, "nothing was announced between");
}

Test(producer_announce, the_handle_of_a_preempted_attempt_is_over)
{
	cr_assert_eq(begin_request("r"), 1);
	cr_assert_eq(r3ring_request_end(producer, 1, R3RING_END_PREEMPTED, 0, 4), 0);
	cr_assert_eq(r3ring_request_end(producer, 1, R3RING_END_FINISHED, 1, 9), -EALREADY);
	assert_says("a later attempt begins with another");
	cr_assert_eq(begin_request("r"), 2);
	cr_assert_eq(r3ring_request_end(producer, 2, R3RING_END_FINISHED, 1, 9), 0);
}

Test(producer_announce, a_text_too_long_is_named)
{
	char text[R3RING_TEXT_ID_MAX + 2];
	struct r3ring_request request = {.size = sizeof(request), .id = text};

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(r3ring_request_begin(producer, &request), -ENAMETOOLONG);
	assert_says("id \"xxxx");
	assert_says("longer than 256 bytes");
	request.id = "r";
	request.turn = text;
	cr_assert_eq(r3ring_request_begin(producer, &request), -ENAMETOOLONG);
	assert_says("turn \"xxxx");
	text[R3RING_TEXT_ID_MAX] = '\0';
	cr_assert_eq(r3ring_request_begin(producer, &request), 1, "256 bytes are allowed");
}

Test(producer_announce, a_request_without_id_or_with_bad_numbers_is_refused)
{
	struct r3ring_request request = {.size = sizeof(request), .id = ""};

	cr_assert_eq(r3ring_request_begin(producer, &request), -EINVAL);
	request.id = NULL;
	cr_assert_eq(r3ring_request_begin(producer, &request), -EINVAL);
	assert_says("id is missing");
	request.id = "r";
	request.attempt = 65536;
	cr_assert_eq(r3ring_request_begin(producer, &request), -EINVAL);
	assert_says("attempt is 65536");
	request.attempt = 0;
	request.size = 8;
	cr_assert_eq(r3ring_request_begin(producer, &request), -EINVAL);
	cr_assert_eq(r3ring_request_end(producer, 1, R3RING_END_FINISHED, 0, 0), -EINVAL);
	assert_says("handle 1 was never given");
	cr_assert_eq(begin_request("r"), 1);
	cr_assert_eq(r3ring_request_end(producer, 1, (enum r3ring_end_reason)4, 0, 0), -EINVAL);
	assert_says("reason is 4");
}

/* ---- spans, maps, keys ------------------------------------------------ */

Test(producer_announce, null_in_place_of_what_is_announced_is_refused)
{
	const struct r3ring_eplb_record head = {.layers = 1};
	const uint16_t map[1] = {0};

	cr_expect_eq(r3ring_request_begin(producer, NULL), -EINVAL);
	assert_says("request is NULL");
	cr_expect_eq(r3ring_step_spans(producer, 1, NULL), -EINVAL);
	assert_says("spans is NULL");
	cr_expect_eq(r3ring_eplb(producer, NULL, map), -EINVAL);
	cr_expect_eq(r3ring_eplb(producer, &head, NULL), -EINVAL);
	assert_says("map is NULL");
	cr_expect_eq(r3ring_key_copy(producer, R3RING_KEYS_SLOT, 1, NULL, 1), -EINVAL);
	assert_says("pairs is NULL");
}

Test(producer_announce, late_spans_replace_those_of_their_step)
{
	const uint64_t request[] = {1};
	const uint32_t position[] = {9}, rows[] = {4}, accepted[] = {2};
	const uint8_t flags[] = {R3RING_SPAN_DRAFT};
	const struct r3ring_step spans = {
		.spans = 1,
		.span_request = request,
		.span_position = position,
		.span_rows = rows,
		.span_accepted = accepted,
		.span_flags = flags,
	};
	struct r3ring_record record;

	cr_assert_eq(r3ring_step_spans(producer, 1, &spans), -EINVAL);
	assert_says("step 1 has not begun");
	run_step();
	cr_assert_eq(r3ring_step_spans(producer, 1, &spans), 0);
	next_step(&record);
	next_record(R3RING_SPANS, &record);
	cr_assert_eq(record.u.spans.head.step, 1);
	cr_assert_eq(record.u.spans.head.flags, R3RING_SPANS_REPLACE);
	cr_assert_eq(record.u.spans.spans[0].accepted, 2);
}

Test(producer_announce, a_map_arrives_whole_or_is_refused)
{
	uint16_t map[4 * 16 * 2];
	struct r3ring_eplb_record head = {
		.epoch = 3,
		.first_step = 7,
		.layers = 4,
		.experts = 16,
		.replicas = 2,
		.physical = 32,
		.gpus = 4,
	};
	struct r3ring_record record;

	for (uint16_t i = 0; i < 4 * 16 * 2; i++)
		map[i] = i % 32;
	cr_assert_eq(r3ring_eplb(producer, &head, map), 0);
	next_record(R3RING_EPLB, &record);
	cr_assert_eq(record.u.eplb.head.epoch, 3);
	cr_assert_arr_eq(record.u.eplb.map, map, sizeof(map));

	map[5] = 32;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("32");
	map[5] = 4;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("layer 0: expert 2 is said to be at place 4, which another has");
	map[5] = 5;
	map[3 * 16 * 2] = R3RING_MISSING;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("layer 3: expert 0 has no place");
	head.gpus = 3;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("gpus does not divide physical");
	head.gpus = 4;
	head.replicas = 33;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("replicas is not 1 to physical");
	head.replicas = 2;
	head.first_layer = 1;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("beyond the schema's layers");
	head.first_layer = 0;
	head.experts = 8;
	cr_assert_eq(r3ring_eplb(producer, &head, map), -EINVAL);
	assert_says("experts");
}

Test(producer_spill, a_map_larger_than_the_queue_is_too_big)
{
	const struct r3ring_eplb_record head = {
		.layers = 4, .experts = 16, .replicas = 500, .physical = 500, .gpus = 1};
	static uint16_t map[4 * 16 * 500];

	cr_assert_eq(r3ring_eplb(producer, &head, map), -EMSGSIZE);
	assert_says("raise queue_bytes");
}

Test(producer_announce, a_key_copy_comes_before_the_next_step)
{
	const struct r3ring_key_pair pairs[] = {{1, 2}, {3, 4}};
	struct r3ring_record record;

	run_step();
	cr_assert_eq(r3ring_key_copy(producer, R3RING_KEYS_SLOT, 1, pairs, 2), 0);
	run_step();
	next_step(&record);
	next_record(R3RING_KEY_COPY, &record);
	cr_assert_eq(record.u.key_copy.head.step, 2);
	cr_assert_eq(record.u.key_copy.pairs[1].to, 4);
	next_step(&record);
	cr_assert_eq(r3ring_key_copy(producer, 9, 1, pairs, 2), -EINVAL);
}

Test(producer_announce, steps_and_requests_merge_in_the_order_of_submission)
{
	struct r3ring_record record;
	int64_t handle = 0;
	uint64_t sides = 0;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < round % 4; i++)
			run_step();
		handle = begin_request("r");
		run_step();
		cr_assert_eq(r3ring_request_end(producer, handle, R3RING_END_FINISHED, 0, 1), 0);
	}
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < round % 4; i++) {
			next_step(&record);
			cr_assert_eq(service.entry.after, sides);
		}
		next_record(R3RING_REQUEST, &record);
		sides++;
		cr_assert_eq(record.u.request.head.event, R3RING_REQUEST_BEGIN);
		next_step(&record);
		cr_assert_eq(service.entry.after, sides);
		next_record(R3RING_REQUEST, &record);
		sides++;
		cr_assert_eq(record.u.request.head.event, R3RING_REQUEST_END);
		cr_assert_eq(record.u.request.head.handle, (uint64_t)round + 1);
	}
}

Test(producer_announce, failure_23_what_is_bound_is_announced)
{
	const uint8_t bound[] = {1, 0, 1, 1};
	struct r3ring_record record;

	producer_note_bound(producer, bound);
	cr_assert_eq(stats_now().bound_layers, 3);
	next_record(R3RING_SCHEMA, &record);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(record.u.schema.layers[i].bound, bound[i]);
	cr_assert_gt(record.u.schema.head.bound_since_ns, 0);
	producer_note_bound(producer, NULL);
	next_record(R3RING_SCHEMA, &record);
	cr_assert_eq(record.u.schema.layers[0].bound, 0);
	cr_assert_eq(record.u.schema.head.bound_since_ns, 0);
	cr_assert_eq(stats_now().bound_layers, 0);
}

/* ---- the spill -------------------------------------------------------- */

static void begin_numbered(int number)
{
	char id[100];

	snprintf(id, sizeof(id), "%080d", number);
	cr_assert_eq(begin_request(id), number);
}

static void take_numbered(int number)
{
	struct r3ring_record record;
	char id[100];

	next_record(R3RING_REQUEST, &record);
	cr_assert_eq(record.u.request.head.handle, (uint64_t)number);
	cr_assert_eq(record.u.request.head.id_len, 80);
	memcpy(id, record.u.request.id, 80);
	id[80] = '\0';
	cr_assert_eq(strtol(id, NULL, 10), number);
}

Test(producer_spill, requests_are_never_dropped_and_keep_their_order)
{
	int begun = 0, taken = 0;

	/* The side lane holds some 340 of them. */
	while (begun < 1000)
		begin_numbered(++begun);
	cr_assert_neq(producer->spill.bytes, 0, "this test must fill the lane");
	/* New ones come while room appears and the spill is not yet empty. */
	while (begun < 2000) {
		take_numbered(++taken);
		take_numbered(++taken);
		begin_numbered(++begun);
		if (taken > begun - 3)
			break;
	}
	while (taken < begun)
		take_numbered(++taken);
}

Test(producer_spill, what_may_be_dropped_does_not_overtake_a_request)
{
	const struct r3ring_key_pair pair = {1, 2};
	struct r3ring_record record;
	int taken = 0;

	for (int i = 1; i <= 1000; i++)
		begin_numbered(i);
	while (taken < 100)
		take_numbered(++taken);
	cr_assert_eq(r3ring_key_copy(producer, R3RING_KEYS_SLOT, 1, &pair, 1), -ENOBUFS);
	assert_says("queue is full");
	cr_assert_eq(stats_now().dropped_records, 1);
	while (taken < 1000)
		take_numbered(++taken);
	cr_assert_eq(r3ring_key_copy(producer, R3RING_KEYS_SLOT, 1, &pair, 1), 0);
	next_record(R3RING_KEY_COPY, &record);
}

Test(producer_spill, a_step_comes_after_every_request_begun_before_it)
{
	struct r3ring_record record;
	int begun = 0, taken = 0;

	while (begun < 1000)
		begin_numbered(++begun);
	run_step();
	begin_numbered(++begun);
	while (taken < 1000)
		take_numbered(++taken);
	next_step(&record);
	take_numbered(++taken);
}

Test(producer_spill, an_end_that_finds_no_room_can_be_told_again)
{
	char text[R3RING_TEXT_ID_MAX + 1];
	const struct r3ring_request request = {
		.size = sizeof(request), .id = text, .session = text, .turn = text, .sample = text};
	struct r3ring_record record;
	int64_t begun = 0, ended = 0;
	int rc;

	memset(text, 't', sizeof(text));
	text[R3RING_TEXT_ID_MAX] = '\0';
	while (r3ring_request_begin(producer, &request) > 0)
		begun++;
	while ((rc = r3ring_request_end(producer, ended + 1, R3RING_END_FINISHED, 0, 1)) == 0)
		ended++;
	cr_assert_eq(rc, -ENOBUFS);
	for (int64_t i = 0; i < begun + ended; i++)
		next_record(R3RING_REQUEST, &record);
	cr_expect_eq(r3ring_request_end(producer, ended + 1, R3RING_END_FINISHED, 0, 1), 0);
}

Test(producer_spill, it_is_bounded_and_then_nothing_is_announced)
{
	char text[R3RING_TEXT_ID_MAX + 1];
	const struct r3ring_request request = {
		.size = sizeof(request), .id = text, .session = text, .turn = text, .sample = text};
	struct r3ring_record record;
	int64_t last = 0, handle;

	memset(text, 't', sizeof(text));
	text[R3RING_TEXT_ID_MAX] = '\0';
	while ((handle = r3ring_request_begin(producer, &request)) > 0)
		last = handle;
	cr_assert_eq(handle, -ENOBUFS);
	assert_says("64 MiB");
	cr_assert_gt(last, 50000);
	for (int64_t i = 1; i <= last; i++) {
		next_record(R3RING_REQUEST, &record);
		cr_assert_eq(record.u.request.head.handle, (uint64_t)i);
	}
	cr_assert_eq(r3ring_request_begin(producer, &request), last + 1, "no handle was used up");
}
