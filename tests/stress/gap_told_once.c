/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that found no room in the queue, some of them with a daemon and some without, are a
 * gap of two causes. A daemon dies when it has told the first, and the next one closes its
 * ring in good order: the generation behind tells the other cause alone.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "tests/support/kill_stage.h"
#include "tests/support/reader_worker.h"
#include "tests/support/stand_still.h"

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

static void come_back(void)
{
	kill_stage_restart(&stage);
	kill(stage.engine.worker.pid, SIGCONT);
	must(test_daemon_said(&stage.daemon, "(came back)"), "the engine does not come back");
	kill_stage_steps(&stage, 20);
}

int main(void)
{
	uint64_t told, steps;

	if (!kill_stage_make(&stage, "gap_told_once"))
		return 77;
	kill_stage_begin(&stage);
	make_gap();
	close_in_the_gap();
	come_back();
	kill_stage_end(&stage, &told);
	steps = stage.audit->lives[0].steps;
	if (told != steps)
		fprintf(stderr, "gap_told_once: of %" PRIu64 " steps %" PRIu64 " fates were told\n",
			steps, told);
	must(told == steps, "a step has two fates, or none");
	kill_stage_free(&stage);
	return 0;
}
