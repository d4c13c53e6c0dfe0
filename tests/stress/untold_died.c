/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine runs on after its daemon has ended, and the next one dies before it has told
 * any step of its generation. Where a third daemon comes to the engine's steps they are
 * told, though the engine dies as it is welcomed; where the engine is dead before that
 * nobody knows of them, and the generation between says that it crashed. Where it dies before
 * any next daemon the end of its own generation says that it lived on; else the account of
 * all steps, in which none may be untold, is wrong.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "tests/support/kill_stage.h"
#include "tests/support/stand_still.h"
#include "tests/support/strike.h"

#define STEPS_ALONE 20

static struct kill_stage stage;

static void must(bool holds, const char *what)
{
	kill_stage_must(&stage, holds, what);
}

/* It steps alone, and the generation that is begun for it stays empty, which the auditor
 * sees before another is begun. */
static void empty_generation(void)
{
	kill_stage_steps(&stage, STEPS_ALONE);
	must(test_daemon_stop(&stage.daemon) == 0, "the daemon does not end in good order");
	kill_stage_steps(&stage, STEPS_ALONE);
	kill_stage_arm(&stage, "channel begun");
	kill_stage_restart(&stage);
	kill_stage_await_death(&stage, "the engine does not come to the next daemon");
	stand_still(stage.engine.worker.pid);
	kill_stage_restart(&stage);
	kill_stage_await_auditor(&stage, 2);
}

static void end_engine(void)
{
	worker_kill(&stage.engine.worker);
	must(kill_engine_generation(&stage.engine) == 1, "the engine knows of a later generation");
	kill_engine_note_life(&stage.engine, stage.audit, false, 0);
}

/* All of the dead engine's, which the next one ended too. */
static uint64_t steps_of_both(void)
{
	return stage.audit->lives[0].steps + stage.audit->lives[1].steps;
}

static void next_engine(void)
{
	kill_engine_start(&stage.engine);
	must(worker_reaches(&stage.engine.worker, STEPS_ALONE), "the next engine does not begin");
}

static void engine_dies_as_it_is_welcomed(void)
{
	uint64_t told;

	kill_stage_begin(&stage);
	empty_generation();
	test_points_arm(stage.engine.points, "engine welcomed", 1);
	kill(stage.engine.worker.pid, SIGCONT);
	must(strike_await(stage.engine.worker.pid, KILL_STAGE_WAIT_MS), "no welcome came");
	test_points_disarm(stage.engine.points);
	end_engine();
	next_engine();
	kill_stage_end(&stage, &told);
	if (told < steps_of_both())
		fprintf(stderr, "untold_died: of %" PRIu64 " steps %" PRIu64 " were told\n",
			steps_of_both(), told);
	must(told >= steps_of_both(), "a step has no fate");
}

static void engine_dies_without_a_daemon(void)
{
	uint64_t told;

	kill_stage_begin(&stage);
	empty_generation();
	end_engine();
	next_engine();
	kill_stage_end(&stage, &told);
	must(told < steps_of_both(), "somebody knew of the steps that nobody saw");
}

static void engine_dies_behind_an_end_in_good_order(void)
{
	uint64_t told;

	kill_stage_begin(&stage);
	kill_stage_steps(&stage, STEPS_ALONE);
	must(test_daemon_stop(&stage.daemon) == 0, "the daemon does not end in good order");
	kill_stage_steps(&stage, STEPS_ALONE);
	end_engine();
	kill_stage_restart(&stage);
	next_engine();
	kill_stage_end(&stage, &told);
	must(told < steps_of_both(), "somebody knew of the steps that nobody saw");
}

int main(void)
{
	if (!kill_stage_make(&stage, "untold_died"))
		return 77;
	engine_dies_as_it_is_welcomed();
	engine_dies_without_a_daemon();
	engine_dies_behind_an_end_in_good_order();
	return 0;
}
