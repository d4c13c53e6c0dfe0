/* SPDX-License-Identifier: Apache-2.0 */
/* A channel whose ring takes long to allocate: everybody else is served meanwhile. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/held_call.h"
#include "tests/support/worker.h"

#define RING_LEAST (1u << 20) /* a reader's page is allocated, too */
#define PIECE (8u << 20)      /* of what is allocated at once */
#define ONE_PIECE "--ring-size", "4M"
#define ROWS 4u

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct worker worker_a, worker_b;
static struct listener listener_a;
static struct held_call allocation;

static const char *instance_of(const char *base)
{
	return engine_instance(daemon_a.dir, base);
}

static void start(const char *const *args)
{
	char why[128];

	if (!held_call_possible(why, sizeof(why)))
		cr_skip_test("%s", why);
	allocation = (struct held_call){
		.number = SYS_fallocate, .argument = 3, .from = RING_LEAST, .to = UINT32_MAX};
	held_call_make(&allocation);
	daemon_a.prepare = held_call_prepare;
	daemon_a.prepare_ctx = &allocation;
	test_daemon_start(&daemon_a, args);
}

static void finish(void)
{
	if (daemon_a.pid)
		cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance_of("slow")), 0);
	held_call_close(&allocation);
}

TestSuite(daemon_opening, .fini = finish, .timeout = 120);

/* Opens the channel "slow", and keeps it until it is told to stop. */
static int open_slow(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	(void)ctx;
	if (engine_open(&engine, daemon_a.dir, instance_of("slow"), ROWS, &page->err) < 0)
		return 1;
	engine_step(&engine, 0, ROWS);
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, 1);
	while (!r3ring_load_relaxed_u64(&page->stop))
		worker_compute();
	engine_close(&engine);
	return 0;
}

/* Its ring is being allocated from here on. */
static void begin_slow(struct worker *worker)
{
	worker_start(worker, open_slow, NULL);
	cr_assert(held_call_await(&allocation), "%s", worker->page->err.text);
}

static void end_slow(struct worker *worker)
{
	r3ring_store_relaxed_u64(&worker->page->stop, 1);
	cr_expect_eq(worker_wait(worker), 0, "%s", worker->page->err.text);
}

static int open_quick(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	(void)ctx;
	return engine_open(&engine, daemon_a.dir, instance_of("quick"), ROWS, &page->err) < 0;
}

Test(daemon_opening, others_are_served_while_a_ring_is_allocated)
{
	struct r3ring_error err = {0};
	json_t *object;

	start((const char *[]){ONE_PIECE, NULL});
	worker_start(&worker_b, open_quick, NULL);
	cr_assert(held_call_await(&allocation));
	held_call_release(&allocation);
	cr_assert_eq(worker_wait(&worker_b), 0, "%s", worker_b.page->err.text);
	begin_slow(&worker_a);
	/* Status, a reader of another channel, a question for one that is not there yet. */
	object = channel_status(daemon_a.dir, engine_channel(daemon_a.dir, "quick"));
	cr_expect_not_null(object);
	json_decref(object);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "quick"));
	listener_close(&listener_a);
	cr_expect_null(channel_status(daemon_a.dir, engine_channel(daemon_a.dir, "slow")));
	cr_expect_eq(engine_open(&engine_a, daemon_a.dir, instance_of("slow"), ROWS, &err), -EBUSY);
	cr_expect(strstr(err.text, "is being opened"), "%s", err.text);
	cr_expect_eq(r3ring_load_relaxed_u64(&worker_a.page->progress), 0);
	held_call_release(&allocation);
	cr_assert(worker_reaches(&worker_a, 1), "%s", worker_a.page->err.text);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "slow"));
	cr_expect(listener_read_until(&listener_a, listener_has_step, 1));
	listener_close(&listener_a);
	end_slow(&worker_a);
}

/* What happened before is known to the daemon then. */
static void let_daemon_turn(void)
{
	for (int turns = 0; turns < 2; turns++)
		json_decref(channel_status(daemon_a.dir, ""));
}

Test(daemon_opening, one_that_hangs_up_meanwhile_leaves_its_name_to_the_next)
{
	start((const char *[]){"--ring-size", "12M", NULL});
	begin_slow(&worker_a);
	worker_kill(&worker_a);
	let_daemon_turn();
	worker_start(&worker_b, open_slow, NULL);
	/* Not the second piece of that ring, but the first of another. */
	held_call_release(&allocation);
	cr_assert(held_call_await(&allocation));
	cr_expect_eq(allocation.values[2], 0);
	held_call_release(&allocation);
	cr_assert(held_call_await(&allocation));
	cr_expect_eq(allocation.values[2], PIECE);
	held_call_release(&allocation);
	cr_assert(worker_reaches(&worker_b, 1), "%s", worker_b.page->err.text);
	cr_expect_eq(test_shm_names(instance_of("slow")), 1);
	end_slow(&worker_b);
}

Test(daemon_opening, a_ring_that_is_being_allocated_counts_among_its_users_channels)
{
	struct r3ring_error err = {0};

	start((const char *[]){ONE_PIECE, "--max-channels", "1", NULL});
	begin_slow(&worker_a);
	cr_expect_eq(engine_open(&engine_a, daemon_a.dir, instance_of("quick"), ROWS, &err),
		     -EDQUOT);
	cr_expect(strstr(err.text, "--max-channels"), "%s", err.text);
	held_call_release(&allocation);
	cr_assert(worker_reaches(&worker_a, 1), "%s", worker_a.page->err.text);
	end_slow(&worker_a);
}

Test(daemon_opening, a_daemon_that_ends_meanwhile_refuses_and_leaves_nothing)
{
	start((const char *[]){ONE_PIECE, NULL});
	begin_slow(&worker_a);
	kill(daemon_a.pid, SIGTERM);
	cr_expect(test_daemon_said(&daemon_a, "stopping"));
	held_call_release(&allocation);
	cr_expect_eq(worker_wait(&worker_a), 1);
	cr_expect_eq(worker_a.page->err.code, -ESHUTDOWN);
	cr_expect(strstr(worker_a.page->err.text, "once the next one runs"), "%s",
		  worker_a.page->err.text);
}

Test(daemon_opening, a_daemon_killed_meanwhile_leaves_nothing_to_the_next)
{
	start((const char *[]){ONE_PIECE, NULL});
	begin_slow(&worker_a);
	test_daemon_kill(&daemon_a);
	cr_expect_eq(worker_wait(&worker_a), 1);
	daemon_a.prepare = NULL;
	test_daemon_restart(&daemon_a, NULL);
	cr_expect_eq(test_shm_names(instance_of("slow")), 0);
}
