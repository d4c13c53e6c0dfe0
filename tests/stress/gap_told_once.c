/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that found no room in the queue, some of them with a daemon and some without, are a
 * gap of two causes. A daemon dies when it has told the first, and the next one closes its
 * ring in good order: the generation behind tells the other cause alone. It does so too when
 * the third daemon dies there: before the gap, or in the middle of it.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "tests/support/kill_stage.h"
#include "tests/support/reader_worker.h"
#include "tests/support/stand_still.h"

/* Where the third daemon dies; NULL: it does not. "drain gap told" is passed for each cause,
 * also for the one that was told before. */
struct death {
	const char *point;
	unsigned int passing;
	bool closes; /* the fourth ends in good order, before the engine is back */
};

static const struct death deaths[] = {
	{NULL, 0, false},
	{"drain gap carried", 1, false},
	{"channel begun", 1, false},
	{"carried removed", 1, false},
	{"carried removed", 1, true},
	{"drain gap told", 1, false},
	{"drain gap told", 2, true},
	{"drain rows noted", 1, false},
};

static struct kill_stage stage;

static void must(bool holds, const char *what)
{
	kill_stage_must(&stage, holds, what);
}

static bool has_dropped(const void *ctx)
{
	const enum r3ring_cause *cause = ctx;

	return stage.engine.worker.page->stats.dropped_steps[*cause] > 100;
}

static void await_drops(enum r3ring_cause cause)
{
	must(reader_worker_wait(has_dropped, &cause, KILL_STAGE_WAIT_MS), "no step is dropped");
}

static void make_gap(void)
{
	stand_still(stage.daemon.pid);
	kill_engine_flood(&stage.engine, true);
	await_drops(R3RING_CAUSE_QUEUE_FULL);
	test_daemon_kill(&stage.daemon);
	await_drops(R3RING_CAUSE_DAEMON_RESTART);
	kill_engine_flood(&stage.engine, false);
}

static void close_in_the_gap(void)
{
	kill_stage_arm(&stage, "drain gap told");
	kill_stage_restart(&stage);
	kill_stage_await_death(&stage, "the daemon comes to no gap");
	stand_still(stage.engine.worker.pid);
	kill_stage_restart(&stage);
	must(test_daemon_said(&stage.daemon, "is waited for"), "nothing was left");
	must(test_daemon_stop(&stage.daemon) == 0, "a daemon does not end in good order");
}

/* The auditor sees its generation before another is begun. */
static void die_in_the_next(const struct death *death)
{
	test_points_arm(stage.daemon_page, death->point, death->passing);
	kill_stage_restart(&stage);
	kill(stage.engine.worker.pid, SIGCONT);
	kill_stage_await_death(&stage, "the third daemon passes no point");
	stand_still(stage.engine.worker.pid);
	kill_stage_restart(&stage);
	kill_stage_await_auditor(&stage, 2);
	if (!death->closes)
		return;
	must(test_daemon_stop(&stage.daemon) == 0, "a daemon does not end in good order");
	kill_stage_restart(&stage);
}

static void come_back(void)
{
	kill(stage.engine.worker.pid, SIGCONT);
	must(test_daemon_said(&stage.daemon, "(came back)"), "the engine does not come back");
	kill_stage_steps(&stage, 20);
}

static void run(const struct death *death)
{
	uint64_t told, steps;

	kill_stage_begin(&stage);
	make_gap();
	close_in_the_gap();
	if (death->point)
		die_in_the_next(death);
	else
		kill_stage_restart(&stage);
	come_back();
	kill_stage_end(&stage, &told);
	steps = stage.audit->lives[0].steps;
	if (told != steps)
		fprintf(stderr,
			"gap_told_once: the third daemon's death %s (%u): of %" PRIu64
			" steps %" PRIu64 " fates were told\n",
			death->point ? death->point : "(none)", death->passing, steps, told);
	must(told == steps, "a step has two fates, or none");
}

int main(void)
{
	if (!kill_stage_make(&stage, "gap_told_once"))
		return 77;
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		run(&deaths[i]);
	return 0;
}
