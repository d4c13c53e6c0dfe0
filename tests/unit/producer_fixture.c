/* SPDX-License-Identifier: Apache-2.0 */
/* A producer opened at a fake daemon, and what its tests ask of both. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "tests/unit/producer_fixture.h"

#define DEADLINE_S 10

struct fake_service service;
struct r3ring_producer *producer;

void open_with(struct r3ring_producer_options options)
{
	struct r3ring_error err = {0};

	cr_assert_eq(fake_service_open(&service, &producer, &options, &err), 0, "%s", err.text);
}

void start_closed(void)
{
	cr_assert_eq(fake_service_start(&service), 0);
}

void start(void)
{
	start_closed();
	open_with(fake_service_options(&service));
}

void start_small(void)
{
	struct r3ring_producer_options options;

	start_closed();
	options = fake_service_options(&service);
	options.queue_bytes = 128 << 10;
	open_with(options);
}

void stop(void)
{
	r3ring_producer_close(producer);
	fake_service_stop(&service);
}

struct r3ring_producer_stats stats_now(void)
{
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(producer, &stats);
	return stats;
}

void assert_says(const char *what)
{
	cr_assert_not_null(strstr(r3ring_producer_error(producer), what),
			   "\"%s\" does not say \"%s\"", r3ring_producer_error(producer), what);
}

struct r3ring_step step_of(uint32_t rows)
{
	return (struct r3ring_step){
		.size = sizeof(struct r3ring_step),
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
	};
}

void run_step(void)
{
	const struct r3ring_step step = step_of(1);

	cr_assert_gt(r3ring_step_begin(producer, &step, NULL), 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
}

int64_t begin_request(const char *id)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = id};

	return r3ring_request_begin(producer, &request);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t deadline_after(int seconds)
{
	return now_ns() + (uint64_t)seconds * 1000000000;
}

int is_over(uint64_t deadline)
{
	sched_yield();
	return now_ns() > deadline;
}

static const uint8_t *await_entry(void)
{
	uint64_t deadline = deadline_after(DEADLINE_S);
	const uint8_t *payload;
	int error = 0;

	while (!(payload = fake_service_next(&service, &error)))
		cr_assert(!error && !is_over(deadline), "no entry came (%d)", error);
	return payload;
}

static void decode(struct r3ring_record *record, uint16_t type, const uint8_t *payload, size_t head)
{
	struct r3ring_error err = {0};

	cr_assert_eq(service.entry.record_type, type);
	cr_assert_eq(r3ring_record_decode(record, type, payload + head,
					  service.entry.payload_bytes - head, &err),
		     0, "%s", err.text);
}

void next_record(uint16_t type, struct r3ring_record *record)
{
	const uint8_t *payload = await_entry();

	cr_assert_eq(service.entry.type, LANE_RECORD);
	decode(record, type, payload, 0);
}

struct lane_step next_step(struct r3ring_record *record)
{
	const uint8_t *payload = await_entry();
	struct lane_step lane_step;

	cr_assert_eq(service.entry.type, LANE_STEP);
	memcpy(&lane_step, payload, sizeof(lane_step));
	decode(record, R3RING_STEP, payload, sizeof(lane_step));
	return lane_step;
}

void assert_nothing_announced(void)
{
	int error;

	cr_assert_null(fake_service_next(&service, &error));
	cr_assert_eq(error, 0);
}
