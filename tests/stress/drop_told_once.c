/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon dies between announcing that a step was dropped and saying why, and the next
 * one ends, or dies ending, before the engine has come back to it: that step is told as
 * lost once, by the cause for which the engine dropped it, in whichever generation.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include <r3ring/atomic.h>

#include "tests/support/kill_stage.h"
#include "tests/support/reader_worker.h"
#include "tests/support/stand_still.h"

/* Where the second daemon dies while it ends; NULL: it ends in good order. */
static const char *const deaths[] = {NULL, "carried stored", "ring seq", "ring closed"};

static struct kill_stage stage;

static void must(bool holds, const char *what)
{
	kill_stage_must(&stage, holds, what);
}

static bool has_dropped(const void *ctx)
{
	const struct r3ring_producer_stats *stats = &stage.engine.worker.page->stats;

	(void)ctx;
	return stats->dropped_steps[R3RING_CAUSE_BUFFER_FULL] > 0;
}

/* Steps before those that were dropped have run by then, or the daemon waits for them. */
static void rest_engine(void)
{
	kill_engine_flood(&stage.engine, false);
	kill_stage_steps(&stage, 20);
	stand_still(stage.engine.worker.pid);
}

/* The buffer fills up while the daemon stands still, and then it finds what had no room. */
static void kill_at_a_drop(void)
{
	stand_still(stage.daemon.pid);
	kill_engine_flood(&stage.engine, true);
	must(reader_worker_wait(has_dropped, NULL, KILL_STAGE_WAIT_MS), "no step is dropped");
	rest_engine();
	kill_stage_arm(&stage, "drain drop announced");
	kill(stage.daemon.pid, SIGCONT);
	kill_stage_await_death(&stage, "the daemon announces no dropped step");
}

/* While the engine stands still. */
static void end_the_next(const char *death)
{
	kill_stage_restart(&stage);
	must(test_daemon_said(&stage.daemon, "is waited for"), "nothing was left");
	if (!death) {
		must(test_daemon_stop(&stage.daemon) == 0, "a daemon does not end in good order");
		return;
	}
	kill_stage_arm(&stage, death);
	kill(stage.daemon.pid, SIGTERM);
	kill_stage_await_death(&stage, "the daemon that ends passes no point");
}

static void come_back(void)
{
	kill_stage_restart(&stage);
	kill(stage.engine.worker.pid, SIGCONT);
	must(test_daemon_said(&stage.daemon, "(came back)"), "the engine does not come back");
	kill_stage_steps(&stage, 20);
}

/* What the auditor was told, of all generations together. */
static void check_once(const char *death, uint64_t told)
{
	uint64_t steps = stage.audit->lives[0].steps;

	if (told == steps)
		return;
	fprintf(stderr,
		"drop_told_once: the second daemon's death %s: of %" PRIu64 " steps %" PRIu64
		" fates were told\n",
		death ? death : "(none)", steps, told);
	must(false, "a step has two fates, or none");
}

int main(void)
{
	uint64_t told;

	if (!kill_stage_make(&stage, "drop_told_once"))
		return 77;
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		kill_stage_begin(&stage);
		kill_at_a_drop();
		end_the_next(deaths[i]);
		come_back();
		kill_stage_end(&stage, &told);
		check_once(deaths[i], told);
	}
	return 0;
}
