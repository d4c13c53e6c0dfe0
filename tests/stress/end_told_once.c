/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon dies when it has told the end of a step, and not yet taken it from the engine's
 * queue. The next one closes its ring in good order, and the one behind that dies as well,
 * in a new generation, before it has come to that step: it is told once all the same.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "tests/support/kill_stage.h"
#include "tests/support/stand_still.h"

static struct kill_stage stage;

static void must(bool holds, const char *what)
{
	kill_stage_must(&stage, holds, what);
}

/* While the engine stands still. */
static void close_ring(void)
{
	kill_stage_arm(&stage, "drain step told");
	kill_stage_await_death(&stage, "the daemon tells of no step");
	stand_still(stage.engine.worker.pid);
	kill_stage_restart(&stage);
	must(test_daemon_said(&stage.daemon, "is waited for"), "nothing was left");
	must(test_daemon_stop(&stage.daemon) == 0, "a daemon does not end in good order");
}

/* The auditor sees its generation before another is begun. */
static void die_in_the_next(void)
{
	kill_stage_arm(&stage, "carried removed");
	kill_stage_restart(&stage);
	kill(stage.engine.worker.pid, SIGCONT);
	kill_stage_await_death(&stage, "the engine does not come to the third daemon");
	stand_still(stage.engine.worker.pid);
	kill_stage_restart(&stage);
	kill_stage_await_auditor(&stage, 2);
	kill(stage.engine.worker.pid, SIGCONT);
	must(test_daemon_said(&stage.daemon, "(came back)"), "the engine does not come back");
	kill_stage_steps(&stage, 20);
}

int main(void)
{
	uint64_t told, steps;

	if (!kill_stage_make(&stage, "end_told_once"))
		return 77;
	kill_stage_begin(&stage);
	close_ring();
	die_in_the_next();
	kill_stage_end(&stage, &told);
	steps = stage.audit->lives[0].steps;
	if (told != steps)
		fprintf(stderr, "end_told_once: of %" PRIu64 " steps %" PRIu64 " fates were told\n",
			steps, told);
	must(told == steps, "a step has two fates, or none");
	return 0;
}
