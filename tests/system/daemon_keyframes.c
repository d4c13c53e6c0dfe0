/* SPDX-License-Identifier: Apache-2.0 */
/* A ring that is lapped by records of other kinds than steps, and what is done with one that has
 * lost its schema. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <r3ring/ring.h>

#include "channel/leftover.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define REQUESTS 16384u /* twice as many records as the ring holds, and more */
#define AT_A_TIME 128u  /* so that the listener is not lapped */

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct listener listener_a;

/* A channel with a small ring and one whole step, read. */
static void start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "1M", NULL});
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir,
				 engine_instance(daemon_a.dir, "keyframes"), 16, &err),
		     0, "%s", err.text);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "keyframes"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
}

static bool has_requests(const struct listener *listener, uint64_t records)
{
	return listener->records[R3RING_REQUEST] >= records;
}

static void run_request(unsigned int number)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "no step"};
	int64_t handle = r3ring_request_begin(engine_a.producer, &request);

	cr_assert_gt(handle, 0, "request %u: %lld", number, (long long)handle);
	cr_assert_eq(r3ring_request_end(engine_a.producer, handle, R3RING_END_FINISHED, 0, 8), 0);
}

/* Requests that run no step; all are read. */
static void lap_the_ring(void)
{
	for (unsigned int i = 1; i <= REQUESTS; i++) {
		run_request(i);
		if (i % AT_A_TIME == 0)
			cr_assert(listener_read_until(&listener_a, has_requests, 2 * i));
	}
}

TestSuite(daemon_keyframes, .init = start);

Test(daemon_keyframes, who_comes_behind_many_requests_without_a_step_is_told_the_schema)
{
	struct listener late;

	lap_the_ring();
	listener_open(&late, daemon_a.dir, engine_channel(daemon_a.dir, "keyframes"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&late, listener_has_step, 2));
	cr_expect_gt(late.records[R3RING_KEYFRAME], 0);
	cr_expect_gt(late.records[R3RING_SCHEMA], 0);
	listener_close(&late);
	engine_close(&engine_a);
}

Test(daemon_keyframes, a_ring_that_requests_lapped_is_gone_on_with_when_its_daemon_died)
{
	lap_the_ring();
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, (const char *[]){"--ring-size", "1M", NULL});
	cr_assert(test_daemon_said(&daemon_a, "(came back): goes on"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.newest_generation, 1);
	cr_expect_eq(listener_a.complete, 2);
	engine_close(&engine_a);
}

static bool has_schemas(const struct listener *listener, uint64_t schemas)
{
	return listener->records[R3RING_SCHEMA] >= schemas;
}

Test(daemon_keyframes, the_ends_of_many_requests_of_an_engine_that_went_leave_a_schema_in_the_ring)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "cut short"};
	struct listener late;

	for (unsigned int i = 1; i <= REQUESTS; i++) {
		cr_assert_gt(r3ring_request_begin(engine_a.producer, &request), 0);
		if (i % AT_A_TIME == 0)
			cr_assert(listener_read_until(&listener_a, has_requests, i));
	}
	engine_close(&engine_a);
	cr_assert(test_daemon_said(&daemon_a, ": drained, "));
	listener_open(&late, daemon_a.dir, engine_channel(daemon_a.dir, "keyframes"));
	cr_expect(listener_read_until(&late, has_schemas, 1));
	listener_close(&late);
}

/* A ring of the directory with one record, that is no schema; its writer is gone. */
static void leave_ring_without_schema(void)
{
	char name[128], path[300];
	const struct r3ring_segment_options options = {
		.size = sizeof(options),
		.name = name,
		.label = "shop/0",
		.arena_bytes = 1u << 16,
		.depth = 64,
	};
	const struct r3ring_record_spec spec = {.type = R3RING_REQUEST};
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	int list;

	snprintf(name, sizeof(name), "/r3ring.%u.%s.0.9", geteuid(),
		 engine_instance(daemon_a.dir, "keyframes"));
	cr_assert_eq(r3ring_segment_create(&segment, &options, NULL), 0);
	cr_assert_eq(r3ring_writer_open(&writer, segment), 0);
	cr_assert_eq(r3ring_writer_put(writer, &spec, ""), 0);
	r3ring_writer_close(writer);
	r3ring_segment_close(segment);
	snprintf(path, sizeof(path), "%s/segments", daemon_a.dir);
	list = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(leftover_list(list, name, options.uuid, geteuid()), 0);
	close(list);
}

Test(daemon_keyframes, a_ring_without_a_schema_is_not_gone_on_with_and_the_log_says_why)
{
	test_daemon_kill(&daemon_a);
	leave_ring_without_schema();
	test_daemon_restart(&daemon_a, NULL);
	cr_expect(test_daemon_said(&daemon_a, "it has no SCHEMA record"), "%s", daemon_a.log);
	/* The channel beside it goes on. */
	cr_expect(test_daemon_said(&daemon_a, "(came back)"));
	engine_close(&engine_a);
}
