/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/engine.h"
#include "tests/support/kill_stage.h"
#include "tests/support/reader_worker.h"
#include "tests/support/strike.h"

static const char *const args[] = {"--ring-size", "8M", NULL};

void kill_stage_must(const struct kill_stage *stage, bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n%s", stage->name, what, stage->daemon.log);
	exit(1);
}

bool kill_stage_make(struct kill_stage *stage, const char *name)
{
	if (!strike_has_points()) {
		puts("this build has no points at which to kill");
		return false;
	}
	*stage = (struct kill_stage){.name = name};
	stage->daemon_page = test_points_make(stage->daemon_page_path);
	stage->engine.points = test_points_make(NULL);
	stage->audit = kill_audit_make();
	return true;
}

static bool name_page(void *ctx)
{
	const struct kill_stage *stage = ctx;

	return setenv(TEST_POINTS_VARIABLE, stage->daemon_page_path, 1) == 0;
}

void kill_stage_begin(struct kill_stage *stage)
{
	memset(&stage->daemon, 0, sizeof(stage->daemon));
	memset(stage->audit, 0, sizeof(*stage->audit));
	stage->daemon.prepare = name_page;
	stage->daemon.prepare_ctx = stage;
	test_daemon_start(&stage->daemon, args);
	snprintf(stage->instance, sizeof(stage->instance), "%s",
		 engine_instance(stage->daemon.dir, "kills"));
	snprintf(stage->channel, sizeof(stage->channel), "%s",
		 engine_channel(stage->daemon.dir, "kills"));
	stage->engine.dir = stage->daemon.dir;
	stage->engine.instance = stage->instance;
	kill_engine_start(&stage->engine);
	kill_stage_must(stage, worker_reaches(&stage->engine.worker, 1),
			"the engine does not begin");
	stage->auditor = (struct kill_reader){.page = stage->auditor.page,
					      .kind = KILL_LOSSLESS,
					      .dir = stage->daemon.dir,
					      .channel = stage->channel,
					      .rows_of = kill_engine_rows,
					      .at_end = kill_audit_check,
					      .ctx = stage->audit};
	kill_reader_start(&stage->auditor);
	kill_stage_must(stage, worker_reaches(&stage->auditor.worker, 1),
			"the auditor does not attach");
}

void kill_stage_restart(struct kill_stage *stage)
{
	test_daemon_restart(&stage->daemon, args);
}

void kill_stage_arm(struct kill_stage *stage, const char *point)
{
	test_points_arm(stage->daemon_page, point, 1);
}

void kill_stage_await_death(struct kill_stage *stage, const char *what)
{
	kill_stage_must(stage, strike_await(stage->daemon.pid, KILL_STAGE_WAIT_MS), what);
	test_points_disarm(stage->daemon_page);
	test_daemon_kill(&stage->daemon);
}

void kill_stage_steps(const struct kill_stage *stage, uint64_t more)
{
	uint64_t steps = r3ring_load_relaxed_u64(&stage->engine.worker.page->progress);

	kill_stage_must(stage, worker_reaches(&stage->engine.worker, steps + more),
			"the engine stands still");
}

struct awaited {
	const struct kill_reader *auditor;
	uint64_t generation;
};

static bool auditor_is_there(const void *ctx)
{
	const struct awaited *awaited = ctx;

	return kill_reader_account(awaited->auditor).generation >= awaited->generation;
}

void kill_stage_await_auditor(const struct kill_stage *stage, uint64_t generation)
{
	const struct awaited awaited = {&stage->auditor, generation};

	kill_stage_must(stage, reader_worker_wait(auditor_is_there, &awaited, KILL_STAGE_WAIT_MS),
			"the auditor does not find the next generation");
}

static uint64_t fates_of(const struct kill_audit *audit)
{
	uint64_t fates = audit->complete + audit->partial;

	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		fates += audit->lost[cause];
	return fates;
}

void kill_stage_end(struct kill_stage *stage, uint64_t *fates)
{
	uint64_t generation;

	r3ring_store_relaxed_u64(&stage->engine.worker.page->stop, 1);
	kill_stage_must(stage, worker_wait(&stage->engine.worker) == 0, "the engine does not end");
	generation = (uint64_t)channel_figure(stage->daemon.dir, stage->channel, "generation");
	kill_engine_note_life(&stage->engine, stage->audit, true, generation);
	kill_stage_await_auditor(stage, generation);
	kill_stage_must(stage, test_daemon_stop(&stage->daemon) == 0,
			"the daemon does not end in good order");
	kill_stage_must(stage, kill_reader_finish(&stage->auditor, generation) == 0,
			"the account of all steps is wrong");
	kill_stage_must(stage, kill_reader_sound(&stage->auditor, "at the end"),
			"the auditor's account is wrong");
	kill_stage_must(stage, !stage->audit->missed, "the auditor missed records");
	test_daemon_close(&stage->daemon);
	*fates = fates_of(stage->audit);
}
