/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that dies, and the one that follows it. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct listener listener_a;
static char instance[R3RING_INSTANCE_MAX + 1]; /* as the engine calls it */

/* A channel with one whole step, read. */
static void start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, NULL);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "restart"));
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, "restart"),
				 16, &err),
		     0, "%s", err.text);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "restart"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
}

TestSuite(daemon_restart, .init = start);

Test(daemon_restart, the_producer_comes_back_and_readers_go_on_in_the_same_generation)
{
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_expect(test_daemon_said(&daemon_a, "of a dead daemon"));
	cr_assert(test_daemon_said(&daemon_a, "(came back): goes on"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.newest_generation, 1);
	cr_expect_eq(listener_a.closed_reason, 0);
	cr_expect_eq(listener_a.records[R3RING_LOST], 1);
	cr_expect_eq(listener_a.records[R3RING_KEYFRAME], 1);
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_DAEMON_RESTART], 0);
	cr_expect_eq(listener_a.complete, 2);
	cr_expect_eq(listener_a.wrong, 0);
	cr_expect_eq(test_shm_names(instance), 1);
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance), 0);
}

Test(daemon_restart, a_ring_keeps_its_size_when_the_next_daemon_is_told_another)
{
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, (const char *[]){"--ring-size", "64M", NULL});
	cr_assert(test_daemon_said(&daemon_a, "(came back): goes on"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.newest_generation, 1);
	engine_close(&engine_a);
}

static bool has_step_record(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_STEP] >= count;
}

static bool has_layers(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_LAYER] >= count;
}

Test(daemon_restart, a_step_at_work_goes_on_where_it_stood)
{
	int64_t step;

	engine_a.doorbell_layers = 1;
	step = engine_begin(&engine_a, 0, 8);
	for (uint32_t layer = 0; layer < 3; layer++)
		engine_capture(&engine_a, step, layer, 8);
	cr_assert(listener_read_until(&listener_a, has_layers, ENGINE_LAYERS + 3));
	test_daemon_kill(&daemon_a);
	for (uint32_t layer = 3; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, step, layer, 8);
	engine_end(&engine_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.newest_generation, 1);
	cr_expect_eq(listener_a.records[R3RING_STEP], 2);
	cr_expect_eq(listener_a.records[R3RING_LAYER], 2 * ENGINE_LAYERS);
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_DAEMON_RESTART], 0);
	cr_expect_eq(listener_a.complete, 2);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
}

static bool has_complete(const struct listener *listener, uint64_t count)
{
	return listener->complete >= count;
}

/* Every step came or was told lost, whatever there was room for. */
static bool has_accounted_for(const struct listener *listener, uint64_t steps)
{
	return listener->complete + listener->lost_steps[R3RING_CAUSE_BUFFER_FULL] +
		       listener->lost_steps[R3RING_CAUSE_DAEMON_RESTART] >=
	       steps;
}

Test(daemon_restart, steps_made_while_there_was_none_are_drained_by_the_next)
{
	test_daemon_kill(&daemon_a);
	for (int i = 0; i < 10; i++)
		engine_step(&engine_a, 0, 2);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(listener_read_until(&listener_a, has_accounted_for, 11));
	cr_expect_eq(listener_a.newest_generation, 1);
	cr_expect_gt(listener_a.complete, 1);
	cr_expect_eq(listener_a.records[R3RING_STEP], 11);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
}

Test(daemon_restart, requests_that_were_live_are_told_again)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "long one"};
	int64_t handle = r3ring_request_begin(engine_a.producer, &request);

	engine_step(&engine_a, handle, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	engine_step(&engine_a, handle, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 3));
	cr_expect_eq(listener_a.newest_generation, 1);
	/* In the keyframe. */
	cr_expect_eq(listener_a.records[R3RING_REQUEST], 2);
	engine_close(&engine_a);
}

/* The attempt of the request that goes on after @handle, which is preempted. */
static int64_t go_on(int64_t handle, uint32_t attempt)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = "long one", .attempt = attempt};

	cr_assert_eq(
		r3ring_request_end(engine_a.producer, handle, R3RING_END_PREEMPTED, attempt - 1, 5),
		0);
	return r3ring_request_begin(engine_a.producer, &request);
}

static bool has_requests(const struct listener *listener, uint64_t records)
{
	return listener->records[R3RING_REQUEST] >= records;
}

Test(daemon_restart, attempts_lead_to_the_first_one_over_a_restart)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "long one"};
	int64_t other = r3ring_request_begin(
		engine_a.producer,
		&(struct r3ring_request){.size = sizeof(request), .id = "other"});
	int64_t first = r3ring_request_begin(engine_a.producer, &request);
	int64_t handle = go_on(first, 1);

	cr_assert_eq(r3ring_request_end(engine_a.producer, other, R3RING_END_FINISHED, 0, 5), 0);
	cr_assert(listener_read_until(&listener_a, has_requests, 5));
	cr_expect_eq(listener_a.first_handle, (uint64_t)first);
	test_daemon_kill(&daemon_a);
	listener_a.first_handle = 0;
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(listener_read_until(&listener_a, has_requests, 6));
	cr_expect_eq(listener_a.first_handle, (uint64_t)first, "what is told again");
	handle = go_on(handle, 2);
	cr_assert(listener_read_until(&listener_a, has_requests, 8));
	cr_expect_eq(listener_a.first_handle, (uint64_t)first, "what goes on since");
	engine_close(&engine_a);
}

Test(daemon_restart, a_daemon_that_ended_in_good_order_is_followed_too)
{
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 2));
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.closed_reason, R3RING_CLOSED_SHUTDOWN);
	cr_expect_eq(listener_a.engine_lived, 1);
	cr_expect_eq(listener_a.continues, 1);
	cr_expect_eq(listener_a.complete, 2);
	engine_close(&engine_a);
}

/* Every logical expert is the physical one of its number. */
static void announce_map(void)
{
	static uint16_t map[ENGINE_LAYERS * ENGINE_EXPERTS];
	const struct r3ring_eplb_record head = {
		.epoch = 1,
		.first_step = 1,
		.layers = ENGINE_LAYERS,
		.experts = ENGINE_EXPERTS,
		.replicas = 1,
		.physical = ENGINE_EXPERTS,
		.gpus = 1,
	};

	for (uint32_t i = 0; i < ENGINE_LAYERS * ENGINE_EXPERTS; i++)
		map[i] = (uint16_t)(i % ENGINE_EXPERTS);
	cr_assert_eq(r3ring_eplb(engine_a.producer, &head, map), 0);
}

Test(daemon_restart, requests_and_maps_that_live_are_told_again_after_an_end_in_good_order)
{
	const struct r3ring_request long_one = {.size = sizeof(long_one), .id = "long one"};
	const struct r3ring_request short_one = {.size = sizeof(short_one), .id = "short one"};
	int64_t handle = r3ring_request_begin(engine_a.producer, &long_one);
	int64_t ended = r3ring_request_begin(engine_a.producer, &short_one);

	r3ring_request_end(engine_a.producer, ended, R3RING_END_FINISHED, 0, 0);
	announce_map();
	engine_step(&engine_a, handle, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_assert(listener_read_until(&listener_a, has_requests, 3));
	/* Two ends in a row: it is left on by a daemon that took it over itself. */
	for (uint64_t generation = 2; generation <= 3; generation++) {
		cr_expect_eq(test_daemon_stop(&daemon_a), 0);
		cr_expect_eq(test_shm_names(instance), 0);
		test_daemon_restart(&daemon_a, NULL);
		cr_assert(test_daemon_said(&daemon_a, "(came back)"));
		engine_step(&engine_a, handle, 4);
		cr_assert(listener_read_until(&listener_a, listener_has_generation, generation));
		cr_assert(listener_read_until(&listener_a, listener_has_step, generation + 1));
		cr_expect_eq(listener_a.records[R3RING_REQUEST], generation + 2);
		cr_expect_eq(listener_a.records[R3RING_EPLB], generation);
	}
	engine_close(&engine_a);
}

Test(daemon_restart, a_step_that_outlasts_the_daemons_patience_is_whole_in_the_next_generation)
{
	int64_t step = engine_begin(&engine_a, 0, 8);

	engine_capture(&engine_a, step, 0, 8);
	cr_assert(listener_read_until(&listener_a, has_step_record, 2));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	for (uint32_t layer = 1; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, step, layer, 8);
	engine_end(&engine_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 2));
	cr_assert(listener_read_until(&listener_a, has_complete, 2));
	cr_expect_eq(listener_a.missing_layers[R3RING_CAUSE_DAEMON_RESTART], ENGINE_LAYERS);
	cr_expect_eq(listener_a.partial, 1);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
}

/* ---- what lies in the list ---------------------------------------------- */

static void list_segment(const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/segments/%s", daemon_a.dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	cr_assert_geq(fd, 0);
	close(fd);
}

Test(daemon_restart, a_listed_segment_that_is_no_ring_is_removed_and_said)
{
	char name[128];
	int fd;

	snprintf(name, sizeof(name), "/r3ring.broken.%s", instance);
	fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0640);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 1 << 20), 0);
	close(fd);
	test_daemon_kill(&daemon_a);
	list_segment(name + 1);
	list_segment("r3ring.never.made.0.1");
	test_daemon_restart(&daemon_a, NULL);
	cr_expect(strstr(daemon_a.log, "is removed: "), "%s", daemon_a.log);
	cr_expect_eq(test_shm_names("r3ring.broken"), 0);
	/* The channel beside it goes on. */
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_restart, a_segment_that_is_not_listed_is_never_touched)
{
	char name[128];
	int fd;

	snprintf(name, sizeof(name), "/r3ring.0.stranger-%d.0.1", getpid());
	fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0640);
	cr_assert_geq(fd, 0);
	close(fd);
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(shm_unlink(name), 0);
}
