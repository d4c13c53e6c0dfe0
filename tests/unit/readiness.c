/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a reader's descriptor readable. */
#include <criterion/criterion.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/clock.h"
#include "consumer/readiness.h"

#define SECOND_NS 1000000000ull

static struct readiness ready;

static void setup(void)
{
	readiness_init(&ready);
	cr_assert_eq(readiness_open(&ready), 0);
}

static void teardown(void)
{
	readiness_close(&ready);
}

TestSuite(readiness, .init = setup, .fini = teardown, .timeout = 30);

static int poll_it(int timeout_ms)
{
	struct pollfd polled = {.fd = ready.epoll_fd, .events = POLLIN};

	return poll(&polled, 1, timeout_ms);
}

Test(readiness, the_timer_makes_it_readable)
{
	uint64_t now = clock_now_ns();

	readiness_set_timer(&ready, now, now + SECOND_NS / 10);
	cr_expect_eq(poll_it(-1), 1);
	cr_expect_geq(clock_now_ns(), now + SECOND_NS / 10);
}

Test(readiness, a_moment_that_is_over_comes_a_millisecond_later)
{
	uint64_t now = clock_now_ns();

	readiness_set_timer(&ready, now, now - SECOND_NS);
	cr_expect_eq(poll_it(-1), 1);
	cr_expect_geq(clock_now_ns(), now + SECOND_NS / 1000);
}

Test(readiness, a_timer_that_has_gone_off_is_quiet_once_it_is_set_anew)
{
	uint64_t now = clock_now_ns();

	readiness_set_timer(&ready, now, now);
	cr_assert_eq(poll_it(-1), 1);
	now = clock_now_ns();
	readiness_set_timer(&ready, now, now + 100 * SECOND_NS);
	cr_expect_eq(poll_it(0), 0);
}

Test(readiness, the_sooner_of_two_moments_counts)
{
	uint64_t now = clock_now_ns();

	readiness_set_timer(&ready, now, now + 100 * SECOND_NS);
	readiness_set_timer(&ready, now, now + SECOND_NS / 100);
	readiness_set_timer(&ready, now, now + 100 * SECOND_NS);
	cr_expect_eq(poll_it(20000), 1);
}

Test(readiness, what_is_dropped_is_quiet_though_a_child_may_have_it)
{
	int ends[2], kept;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	kept = dup(ends[0]);
	cr_assert(readiness_watch(&ready, &ready.connection, ends[0]));
	cr_assert_eq(send(ends[1], "x", 1, 0), 1);
	cr_assert_eq(poll_it(0), 1);
	readiness_drop_connection(&ready);
	close(ends[0]);
	cr_expect_eq(poll_it(0), 0);
	close(kept);
	close(ends[1]);
}

Test(readiness, what_cannot_be_watched_is_said_not_to_be)
{
	cr_expect_not(readiness_watch(&ready, &ready.request, -1));
	cr_expect_eq(ready.request, -1);
}
