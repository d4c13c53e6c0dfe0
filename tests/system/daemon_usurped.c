/* SPDX-License-Identifier: Apache-2.0 */
/* An engine that comes back to its channel behind another one that had the name meanwhile. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>

#include <r3ring/atomic.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/worker.h"

static struct test_daemon daemon_a;
static struct worker first;
static struct engine second;
static struct listener listener_a;
static char instance[R3RING_INSTANCE_MAX + 1];

/* One step of a request, and then another one at the end. */
static int run_first(struct worker_page *page, const void *ctx)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "long one"};
	struct engine engine;
	int64_t handle;

	if (engine_open(&engine, ctx, instance, 16, &page->err))
		return 1;
	handle = r3ring_request_begin(engine.producer, &request);
	engine_step(&engine, handle, 4);
	r3ring_store_release_u64(&page->progress, 1);
	while (!r3ring_load_acquire_u64(&page->stop))
		worker_compute();
	engine_step(&engine, handle, 4);
	engine_close(&engine);
	return 0;
}

static bool has_complete(const struct listener *listener, uint64_t count)
{
	return listener->complete >= count;
}

static bool has_requests(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_REQUEST] >= count;
}

static bool has_aborted(const struct listener *listener, uint64_t count)
{
	return listener->aborted >= count;
}

static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "usurped"));
	worker_start(&first, run_first, daemon_a.dir);
	cr_assert(worker_reaches(&first, 1), "%s", first.page->err.text);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "usurped"));
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
}

static void finish(void)
{
	listener_close(&listener_a);
	test_daemon_close(&daemon_a);
}

TestSuite(daemon_usurped, .init = start, .fini = finish, .timeout = 120);

/* The first one is stopped, so that it cannot come back, until the second has been. */
static void usurp(void)
{
	struct r3ring_error err = {0};

	kill(first.pid, SIGSTOP);
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert_eq(engine_open(&second, daemon_a.dir, instance, 16, &err), 0, "%s", err.text);
	engine_step(&second, 0, 4);
}

static void let_first_come_back(void)
{
	kill(first.pid, SIGCONT);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	r3ring_store_release_u64(&first.page->stop, 1);
	cr_assert_eq(worker_wait(&first), 0);
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 3));
}

Test(daemon_usurped, its_live_requests_are_told_again_when_it_is_back)
{
	usurp();
	cr_assert(listener_read_until(&listener_a, has_complete, 2));
	engine_close(&second);
	let_first_come_back();
	cr_assert(listener_read_until(&listener_a, has_requests, 3));
	cr_expect_eq(listener_a.continues, 2);
	cr_expect_eq(listener_a.ends_unknown, 1);
	/* What of its steps was told is not told again. */
	cr_assert(listener_read_until(&listener_a, has_complete, 3));
	cr_expect_eq(listener_a.wrong, 0);
}

Test(daemon_usurped, what_a_dead_daemon_left_of_the_other_engine_is_not_its_own)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "of the second"};

	usurp();
	r3ring_request_begin(second.producer, &request);
	for (int i = 0; i < 5; i++)
		engine_step(&second, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 6));
	test_daemon_kill(&daemon_a);
	engine_close(&second);
	test_daemon_restart(&daemon_a, NULL);
	let_first_come_back();
	/* Its second step, though the other engine had told of more. */
	cr_assert(listener_read_until(&listener_a, has_complete, 8));
	/* Three beginnings, the first one's also where it goes on. */
	cr_assert(listener_read_until(&listener_a, has_aborted, 1));
	cr_expect_eq(listener_a.records[R3RING_REQUEST], 6);
	cr_expect_eq(listener_a.ends_unknown, 2);
	cr_expect_eq(listener_a.wrong, 0);
}
