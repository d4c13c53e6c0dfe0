/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon dies when it has told of a request, and not yet taken that from the engine's queue.
 * The next one closes its ring in good order, and leaves the requests that live to a new generation,
 * which finds the entry again: no request begins twice there.
 */
#include <signal.h>

#include "tests/support/kill_stage.h"
#include "tests/support/stand_still.h"

#define ROUNDS 6 /* every other entry is the beginning of a request */

static struct kill_stage stage;

static void must(bool holds, const char *what)
{
	kill_stage_must(&stage, holds, what);
}

static void run_round(void)
{
	uint64_t told;

	kill_stage_begin(&stage);
	kill_stage_arm(&stage, "drain side told");
	kill_stage_await_death(&stage, "the daemon tells of no request");
	stand_still(stage.engine.worker.pid);
	kill_stage_restart(&stage);
	must(test_daemon_said(&stage.daemon, "is waited for"), "nothing was left");
	must(test_daemon_stop(&stage.daemon) == 0, "a daemon does not end in good order");
	kill_stage_restart(&stage);
	kill(stage.engine.worker.pid, SIGCONT);
	must(test_daemon_said(&stage.daemon, "(came back)"), "the engine does not come back");
	kill_stage_await_auditor(&stage, 2);
	kill_stage_steps(&stage, 20);
	kill_stage_end(&stage, &told);
}

int main(void)
{
	if (!kill_stage_make(&stage, "begin_told_once"))
		return 77;
	for (int i = 0; i < ROUNDS; i++)
		run_round();
	return 0;
}
