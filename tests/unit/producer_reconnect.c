/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that goes away, and the one that comes after it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <r3ring/atomic.h>

#include "tests/unit/producer_fixture.h"

#define DEADLINE_S 10

TestSuite(producer_reconnect, .init = start_small, .fini = stop, .timeout = 60);

static void await_connected(uint32_t connected)
{
	uint64_t deadline = deadline_after(DEADLINE_S);

	while (stats_now().connected != connected)
		cr_assert_not(is_over(deadline), "connected is not %u", connected);
}

/* The daemon dies; the test sees what it would have left behind. */
static void daemon_dies(void)
{
	fake_service_hang_up(&service);
	await_connected(0);
	cr_assert_eq(stats_now().generation, 0);
}

static void daemon_returns(uint64_t generation)
{
	service.generation = generation;
	fake_service_expect(&service);
	cr_assert_eq(fake_service_await(&service), 0);
	await_connected(1);
	cr_assert_eq(stats_now().generation, generation);
}

Test(producer_reconnect, the_same_producer_comes_back_with_the_same_pages)
{
	struct r3ring_record record;

	run_step();
	cr_assert_eq(begin_request("r"), 1);
	daemon_dies();
	run_step();
	daemon_returns(5);
	cr_assert_eq(service.hello.reconnect, 1);
	cr_assert_eq(service.hello.last_generation, 1);
	cr_assert_eq(r3ring_record_decode(&record, R3RING_SCHEMA, service.schema,
					  service.hello.schema_len, NULL),
		     0);
	cr_assert_eq(record.u.schema.head.rows_per_record, 16, "as the first daemon said");
	next_step(&record);
	next_record(R3RING_REQUEST, &record);
	next_step(&record);
	cr_assert_eq(record.u.step.head.step, 2);
}

Test(producer_reconnect, steps_without_a_daemon_take_room_and_are_then_lost_to_its_absence)
{
	uint64_t kept = 0;

	daemon_dies();
	for (int i = 0; i < 1000; i++)
		run_step();
	cr_assert_gt(stats_now().dropped_steps[R3RING_CAUSE_DAEMON_RESTART], 0);
	cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_BUFFER_FULL], 0);
	cr_assert_eq(stats_now().dropped_steps[R3RING_CAUSE_QUEUE_FULL], 0);
	daemon_returns(2);
	for (;;) {
		const uint8_t *payload = fake_service_next(&service, NULL);
		struct lane_step lane_step;

		if (!payload)
			break;
		memcpy(&lane_step, payload, sizeof(lane_step));
		kept += lane_step.extent_offset != EXTENT_NONE;
		if (lane_step.extent_offset == EXTENT_NONE)
			cr_assert_eq(lane_step.cause, R3RING_CAUSE_DAEMON_RESTART);
	}
	cr_assert_gt(kept, 0);
	cr_assert_eq(kept + stats_now().dropped_steps[R3RING_CAUSE_DAEMON_RESTART], 1000);
	cr_assert_eq(pages_read_begun(&service.pages).step, 1000);
}

Test(producer_reconnect, steps_that_no_daemon_took_are_counted)
{
	const struct r3ring_step step = step_of(3);
	struct r3ring_record record;

	cr_assert_eq(stats_now().undelivered_steps, 0);
	for (int i = 0; i < 4; i++)
		run_step();
	next_step(&record);
	next_step(&record); /* the first is done with */
	cr_assert_eq(stats_now().undelivered_steps, 0, "the daemon takes the rest");
	daemon_dies();
	cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
	cr_assert_eq(stats_now().undelivered_steps, 4);
	cr_assert_eq(stats_now().undelivered_rows, 3 + 3);
	for (int i = 0; i < 1000; i++)
		run_step();
	cr_assert_eq(stats_now().undelivered_steps +
			     stats_now().dropped_steps[R3RING_CAUSE_DAEMON_RESTART],
		     1004);
	cr_assert_gt(stats_now().undelivered_steps, 4);
}

Test(producer_reconnect, a_spoilt_queue_counts_nothing_undelivered)
{
	run_step();
	daemon_dies();
	r3ring_store_relaxed_u64(&producer->pages.words->step_tail, UINT64_MAX - 63);
	cr_assert_eq(stats_now().undelivered_steps, 0);
	r3ring_store_relaxed_u64(&producer->pages.words->step_tail, 0);
	cr_assert_eq(stats_now().undelivered_steps, 1);
}

static char warned[512];

static void keep_warning(void *ctx, enum r3ring_log_level level, const char *text)
{
	(void)ctx;
	if (level <= R3RING_LOG_WARN && strstr(text, "none has taken"))
		snprintf(warned, sizeof(warned), "%s", text);
}

Test(producer_reconnect, what_is_lost_at_a_close_without_a_daemon_is_told, .init = start_closed)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.log = keep_warning;
	open_with(options);
	run_step();
	run_step();
	daemon_dies();
	r3ring_producer_close(producer);
	producer = NULL;
	cr_assert(strstr(warned, "2 steps (2 rows)"), "%s", warned);
}

Test(producer_reconnect, requests_begun_without_a_daemon_reach_the_next_one)
{
	struct r3ring_record record;

	daemon_dies();
	for (int64_t i = 1; i <= 1000; i++)
		cr_assert_eq(begin_request("r"), i);
	daemon_returns(2);
	for (uint64_t i = 1; i <= 1000; i++) {
		next_record(R3RING_REQUEST, &record);
		cr_assert_eq(record.u.request.head.handle, i);
	}
}

Test(producer_reconnect, a_daemon_with_other_rows_per_record_is_not_taken)
{
	struct pollfd peer = {.events = POLLIN};
	char byte;

	daemon_dies();
	service.rows_per_record = 8;
	fake_service_expect(&service);
	cr_assert_eq(fake_service_await(&service), 0);
	peer.fd = service.peer;
	cr_assert_eq(poll(&peer, 1, DEADLINE_S * 1000), 1, "the producer hangs up");
	cr_assert_eq(recv(service.peer, &byte, 1, 0), 0);
	fake_service_hang_up(&service);
	service.rows_per_record = 16;
	daemon_returns(3);
}

Test(producer_reconnect, closing_without_a_daemon_does_not_wait_for_one)
{
	run_step();
	daemon_dies();
	run_step();
	r3ring_producer_close(producer);
	producer = NULL;
}

/* Accepts and never answers. */
Test(producer_reconnect, closing_does_not_wait_for_a_daemon_that_does_not_answer)
{
	uint64_t deadline;
	int peer;

	daemon_dies();
	peer = accept(service.listener, NULL, NULL);
	cr_assert_geq(peer, 0);
	deadline = deadline_after(5);
	r3ring_producer_close(producer);
	producer = NULL;
	cr_assert_not(is_over(deadline), "an answer is waited for up to 10 s");
	close(peer);
}
