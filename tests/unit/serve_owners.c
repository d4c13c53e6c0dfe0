/* SPDX-License-Identifier: Apache-2.0 */
/* Clients whose deaths free what they held. */
#include <criterion/criterion.h>

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "serve/owners.h"

static struct owners *owners;
static sem_t deaths;
static uint64_t last_gone;

static void gone(void *context, uint64_t owner)
{
	cr_expect_eq(context, &deaths);
	last_gone = owner;
	sem_post(&deaths);
}

static void start(void)
{
	struct r3ring_error err = {0};

	sem_init(&deaths, 0, 0);
	cr_assert_eq(owners_start(&owners, gone, &deaths, &err), 0, "%s", err.text);
}

static void stop(void)
{
	owners_stop(owners);
}

TestSuite(serve_owners, .init = start, .fini = stop);

/* A process that lives until it is killed. */
static pid_t make_process(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static bool died_in_time(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	return sem_timedwait(&deaths, &until) == 0;
}

Test(serve_owners, a_process_is_one_owner_as_long_as_it_lives)
{
	pid_t first = make_process(), second = make_process();
	uint64_t a, b, again;

	cr_assert_eq(owners_find(owners, first, &a), 0);
	cr_assert_eq(owners_find(owners, second, &b), 0);
	cr_assert_eq(owners_find(owners, first, &again), 0);
	cr_expect_neq(a, 0);
	cr_expect_neq(a, b);
	cr_expect_eq(a, again);
	kill(first, SIGKILL);
	kill(second, SIGKILL);
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
}

Test(serve_owners, a_death_is_told_once_for_its_owner)
{
	pid_t stays = make_process(), dies = make_process();
	uint64_t kept, lost;

	cr_assert_eq(owners_find(owners, stays, &kept), 0);
	cr_assert_eq(owners_find(owners, dies, &lost), 0);
	kill(dies, SIGKILL);
	cr_assert(died_in_time());
	cr_expect_eq(last_gone, lost);
	waitpid(dies, NULL, 0);
	kill(stays, SIGKILL);
	cr_assert(died_in_time());
	cr_expect_eq(last_gone, kept);
	waitpid(stays, NULL, 0);
	cr_expect_eq(sem_trywait(&deaths), -1, "each once");
}

Test(serve_owners, a_process_that_is_dead_already_owns_nothing)
{
	pid_t pid = make_process();
	uint64_t owner = 77;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_eq(owners_find(owners, pid, &owner), -ESRCH);
	cr_expect_eq(owner, 77);
}
