/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon makes of channels whose engine had gone, or stands still, when the
 * daemon before it died. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "channel/leftover.h"
#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/stand_still.h"
#include "tests/support/worker.h"

#define BASE "ended"
#define STEPS 3u
#define ROWS 8u
#define STOP_IN_STEP 2u

static struct test_daemon daemon_a;
static struct worker worker_a;
static struct engine engine_a;
static struct listener listener_a;
static char instance[R3RING_INSTANCE_MAX + 1], channel[80];

static int open_engine(struct engine *engine, struct r3ring_error *err)
{
	return engine_open(engine, daemon_a.dir, instance, 2 * ROWS, err);
}

/* The first layer of a step, and nothing more. */
static void stand_in_step(struct engine *engine)
{
	int64_t step;

	engine->doorbell_layers = 1;
	step = engine_begin(engine, 0, ROWS);
	engine_capture(engine, step, 0, ROWS);
	for (;;)
		pause();
}

/* Some steps, and a close in good order once it is told to stop. */
static int run_steps(struct worker_page *page, const void *ctx)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "not yet ended"};
	struct engine engine = {0};

	(void)ctx;
	if (open_engine(&engine, &page->err) < 0)
		return 1;
	r3ring_request_begin(engine.producer, &request);
	for (unsigned int i = 0; i < STEPS; i++)
		engine_step(&engine, 0, ROWS);
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, 1);
	while (!r3ring_load_relaxed_u64(&page->stop))
		worker_compute();
	if (r3ring_load_relaxed_u64(&page->stop) == STOP_IN_STEP)
		stand_in_step(&engine);
	engine_close(&engine);
	return 0;
}

/* A step is counted a moment after it is published. */
static bool has_counted(const json_t *object, long steps)
{
	return json_integer_value(json_object_get(object, "steps_complete")) == steps;
}

/* An engine whose steps have all been read. */
static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, BASE));
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	worker_start(&worker_a, run_steps, NULL);
	cr_assert(worker_reaches(&worker_a, 1), "%s", worker_a.page->err.text);
	listener_open(&listener_a, daemon_a.dir, channel);
	cr_assert(listener_read_until(&listener_a, listener_has_step, STEPS));
	cr_assert(status_becomes(daemon_a.dir, channel, has_counted, STEPS));
}

static bool has_layers(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_LAYER] >= count;
}

static bool has_unknown_ends(const struct listener *listener, uint64_t count)
{
	return listener->ends_unknown >= count;
}

static bool has_requests(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_REQUEST] >= count;
}

static int64_t lost_steps(const json_t *object, const char *cause)
{
	const json_t *counts = json_object_get(json_object_get(object, "lost"), cause);

	return json_integer_value(json_object_get(counts, "steps"));
}

static void finish(void)
{
	listener_close(&listener_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance), 0);
}

TestSuite(daemon_ended, .init = start, .fini = finish, .timeout = 120);

static void close_engine(void)
{
	r3ring_store_relaxed_u64(&worker_a.page->stop, 1);
	cr_assert_eq(worker_wait(&worker_a), 0);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
}

static json_t *follow_killed_daemon(void)
{
	json_t *object;

	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	object = channel_status(daemon_a.dir, channel);
	cr_assert(object);
	return object;
}

static void expect_state(const json_t *object, const char *state)
{
	cr_expect_str_eq(json_string_value(json_object_get(object, "state")), state);
}

/* The next daemon says what the dead one said. */
static void expect_same_counts(const json_t *before, const json_t *after)
{
	static const char *const keys[] = {
		"generation",  "uuid",  "steps",         "steps_complete", "steps_partial",
		"rows",        "bytes", "layer_records", "lost",           "ids_out_of_range",
		"ids_missing", "ring",  "bound_since",   "bound_layers",
	};
	const char *age = "last_step_age_ms";

	for (unsigned int i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		cr_expect(json_equal(json_object_get(before, keys[i]),
				     json_object_get(after, keys[i])),
			  "%s", keys[i]);
	cr_expect_gt(json_integer_value(json_object_get(after, "bytes")), 0);
	cr_assert(json_is_integer(json_object_get(after, age)));
	cr_expect_geq(json_integer_value(json_object_get(after, age)),
		      json_integer_value(json_object_get(before, age)));
}

static void expect_nobody_awaited(const json_t *before, const json_t *after)
{
	expect_state(before, "ended");
	expect_state(after, "ended");
	expect_same_counts(before, after);
	cr_expect(test_daemon_said(&daemon_a, "its producer had gone before"));
	cr_expect_not(strstr(daemon_a.log, "its producer is waited for"));
}

static bool is_next_generation(const struct listener *listener, uint64_t generation)
{
	return listener->newest_generation == generation && listener->newest_step_end == 1;
}

Test(daemon_ended, an_engine_that_closed_is_awaited_by_no_later_daemon_and_its_ring_is_readable)
{
	struct r3ring_error err = {0};
	struct listener late;
	json_t *before, *after;

	close_engine();
	before = channel_status(daemon_a.dir, channel);
	for (int deaths = 0; deaths < 2; deaths++) {
		after = follow_killed_daemon();
		expect_nobody_awaited(before, after);
		json_decref(after);
	}
	json_decref(before);
	listener_open(&late, daemon_a.dir, channel);
	cr_expect(listener_read_until(&late, listener_has_step, STEPS));
	listener_close(&late);
	cr_assert_eq(open_engine(&engine_a, &err), 0, "%s", err.text);
	engine_step(&engine_a, 0, ROWS);
	cr_expect(listener_read_until(&listener_a, is_next_generation, 2));
	cr_expect_eq(listener_a.closed_reason, R3RING_CLOSED_NEXT);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
}

static bool producer_died(void)
{
	json_t *object = channel_status(daemon_a.dir, channel);
	bool died = json_is_true(json_object_get(object, "producer_died"));

	json_decref(object);
	return died;
}

Test(daemon_ended, the_status_tells_an_engine_that_was_killed)
{
	cr_expect_not(producer_died());
	worker_kill(&worker_a);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	cr_expect(producer_died());
}

Test(daemon_ended, the_status_tells_no_death_of_an_engine_that_closed)
{
	close_engine();
	cr_expect_not(producer_died());
}

Test(daemon_ended, an_engine_that_died_is_awaited_by_no_later_daemon)
{
	json_t *before, *after;

	worker_kill(&worker_a);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	before = channel_status(daemon_a.dir, channel);
	after = follow_killed_daemon();
	expect_nobody_awaited(before, after);
	json_decref(before);
	json_decref(after);
}

static bool has_come_back(const json_t *object, long unused)
{
	(void)unused;
	return strcmp(json_string_value(json_object_get(object, "state")), "live") == 0;
}

Test(daemon_ended, one_that_lives_is_awaited_and_its_counts_are_those_of_the_ring)
{
	json_t *before = channel_status(daemon_a.dir, channel), *after;

	stand_still(worker_a.pid);
	after = follow_killed_daemon();
	expect_state(after, "orphan");
	expect_same_counts(before, after);
	cr_expect(test_daemon_said(&daemon_a, "its producer is waited for"));
	kill(worker_a.pid, SIGCONT);
	cr_expect(status_becomes(daemon_a.dir, channel, has_come_back, 0));
	close_engine();
	json_decref(before);
	json_decref(after);
}

/* ---- engines that ended while there was no daemon ------------------------- */

static void expect_crashed(const json_t *object)
{
	expect_state(object, "ended");
	cr_expect(json_is_true(json_object_get(object, "crashed")));
}

/* Killed without a daemon, in a step of which readers had the first layer. */
static void lose_both_in_a_step(void)
{
	r3ring_store_relaxed_u64(&worker_a.page->stop, STOP_IN_STEP);
	cr_assert(listener_read_until(&listener_a, has_layers, STEPS * ENGINE_LAYERS + 1));
	test_daemon_kill(&daemon_a);
	worker_kill(&worker_a);
}

static void expect_all_told(struct listener *listener)
{
	cr_assert(listener_read_until(listener, has_unknown_ends, 1));
	cr_expect_eq(listener->complete, STEPS);
	cr_expect_eq(listener->lost_steps[R3RING_CAUSE_DAEMON_RESTART], 1);
	cr_expect_eq(listener->lost_rows[R3RING_CAUSE_DAEMON_RESTART], ROWS);
	cr_expect_eq(listener->closed_reason, 0);
	cr_expect_eq(listener->wrong, 0);
}

Test(daemon_ended, one_that_ended_without_a_daemon_leaves_a_channel_that_has_ended)
{
	struct listener late;
	json_t *first, *next;

	lose_both_in_a_step();
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	cr_expect(test_daemon_said(&daemon_a, "did not come back: it has ended"));
	expect_all_told(&listener_a);
	first = channel_status(daemon_a.dir, channel);
	expect_crashed(first);
	cr_expect_eq(lost_steps(first, "daemon_restart"), 1);
	/* Nothing more is said by a daemon that follows, and it waits no more. */
	next = follow_killed_daemon();
	expect_crashed(next);
	expect_same_counts(first, next);
	json_decref(first);
	json_decref(next);
	listener_open(&late, daemon_a.dir, channel);
	expect_all_told(&late);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect(listener_read_until(&late, listener_has_closed, R3RING_CLOSED_CRASHED));
	listener_close(&late);
	test_daemon_restart(&daemon_a, NULL);
}

static void forsake_by_hand(void)
{
	char path[96], name[128];
	int list;

	snprintf(path, sizeof(path), "%s/segments", daemon_a.dir);
	snprintf(name, sizeof(name), "/r3ring.%u.%s.0.1", geteuid(), instance);
	list = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(list, 0);
	cr_assert_eq(leftover_note_end(list, name, LEFTOVER_FORSAKEN), 0);
	close(list);
}

Test(daemon_ended, killed_while_it_tells_of_one_the_next_daemon_tells_the_rest_and_does_not_wait)
{
	json_t *object;

	lose_both_in_a_step();
	forsake_by_hand();
	test_daemon_restart(&daemon_a, NULL);
	object = channel_status(daemon_a.dir, channel);
	expect_crashed(object);
	cr_expect_eq(lost_steps(object, "daemon_restart"), 1);
	json_decref(object);
	cr_expect(test_daemon_said(&daemon_a, "did not come back before"));
	expect_all_told(&listener_a);
}

Test(daemon_ended, one_that_ended_without_a_daemon_makes_room)
{
	static const char *const narrow[] = {"--max-channels", "1", NULL};
	char other[R3RING_INSTANCE_MAX + 1];

	test_daemon_kill(&daemon_a);
	worker_kill(&worker_a);
	forsake_by_hand();
	test_daemon_restart(&daemon_a, narrow);
	snprintf(other, sizeof(other), "%s", engine_instance(daemon_a.dir, "other"));
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, other, ROWS, NULL), 0);
	cr_expect(test_daemon_said(&daemon_a, "has ended, removed"));
	cr_expect(listener_read_until(&listener_a, listener_has_closed, R3RING_CLOSED_CRASHED));
	cr_expect_eq(test_shm_names(instance), 0);
	engine_close(&engine_a);
}

Test(daemon_ended, one_that_comes_back_too_late_goes_on_with_its_requests_in_the_next_generation)
{
	stand_still(worker_a.pid);
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	cr_assert(listener_read_until(&listener_a, has_unknown_ends, 1));
	kill(worker_a.pid, SIGCONT);
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 2));
	cr_expect_eq(listener_a.closed_reason, R3RING_CLOSED_CRASHED);
	/* Begun, out of sight, begun again: it lives. */
	cr_assert(listener_read_until(&listener_a, has_requests, 3));
	cr_expect_eq(listener_a.ends_unknown, 1);
	cr_expect_eq(listener_a.aborted, 0);
	close_engine();
}
