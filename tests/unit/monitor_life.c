/* SPDX-License-Identifier: Apache-2.0 */
/* Whose death is seen without a daemon. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel/namespaces.h"
#include "monitor/life.h"

static struct life life = {.pidfd = -1};
static uint64_t here;
static pid_t child;

static void start(void)
{
	here = namespaces_of_this_process().pid;
	cr_assert_neq(here, 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	cr_assert_gt(child, 0);
}

static void end_child(void)
{
	int status;

	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

static void stop(void)
{
	life_forget(&life);
	end_child();
}

TestSuite(monitor_life, .init = start, .fini = stop);

/* As a daemon in that PID namespace tells of the child's channel. */
static void watch(uint64_t pid_namespace, const char *state)
{
	struct daemon_picture *picture;
	char json[256];
	json_t *status;

	snprintf(json, sizeof(json),
		 "{\"daemon\":{\"pid_namespace\":%llu},\"channels\":[{\"channel\":\"a/0\","
		 "\"state\":\"%s\",\"producer_pid\":%d}]}",
		 (unsigned long long)pid_namespace, state, child);
	status = json_loads(json, 0, NULL);
	picture = daemon_picture_of(status);
	cr_assert_not_null(picture);
	life_watch(&life, picture, &picture->channels[0], here);
	daemon_picture_put(picture);
	json_decref(status);
}

Test(monitor_life, the_death_of_a_live_channels_process_is_seen)
{
	watch(here, "live");
	cr_expect_not(life_is_over(&life));
	end_child();
	cr_expect(life_is_over(&life));
	life_forget(&life);
	cr_expect_not(life_is_over(&life));
}

Test(monitor_life, a_process_of_another_pid_namespace_or_of_nobody_knows_which_is_not_taken_for_one)
{
	watch(here + 1, "live");
	watch(0, "live");
	end_child();
	cr_expect_not(life_is_over(&life));
}

/* Its number may be another one's by now. */
Test(monitor_life, the_process_of_a_channel_that_is_not_live_is_not_watched)
{
	watch(here, "ended");
	watch(here, "orphan");
	end_child();
	cr_expect_not(life_is_over(&life));
}
