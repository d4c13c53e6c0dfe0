/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon makes of channels whose engine had gone, or stands still, when the
 * daemon before it died. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/worker.h"

#define BASE "ended"
#define STEPS 3u
#define ROWS 8u

static struct test_daemon daemon_a;
static struct worker worker_a;
static struct engine engine_a;
static struct listener listener_a;
static char instance[R3RING_INSTANCE_MAX + 1], channel[80];

static int open_engine(struct engine *engine, struct r3ring_error *err)
{
	return engine_open(engine, daemon_a.dir, instance, 2 * ROWS, err);
}

/* Some steps, and a close in good order once it is told to stop. */
static int run_steps(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	(void)ctx;
	if (open_engine(&engine, &page->err) < 0)
		return 1;
	for (unsigned int i = 0; i < STEPS; i++)
		engine_step(&engine, 0, ROWS);
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, 1);
	while (!r3ring_load_relaxed_u64(&page->stop))
		worker_compute();
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
	cr_expect_not(strstr(daemon_a.log, "until its producer comes back"));
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

	kill(worker_a.pid, SIGSTOP);
	after = follow_killed_daemon();
	expect_state(after, "orphan");
	expect_same_counts(before, after);
	cr_expect(test_daemon_said(&daemon_a, "until its producer comes back"));
	kill(worker_a.pid, SIGCONT);
	cr_expect(status_becomes(daemon_a.dir, channel, has_come_back, 0));
	close_engine();
	json_decref(before);
	json_decref(after);
}
