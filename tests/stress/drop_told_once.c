/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon dies between announcing that a step was dropped and saying why, and the next
 * one ends, or dies ending, before the engine has come back to it: that step is told as
 * lost once, by the cause for which the engine dropped it, in whichever generation.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/kill_audit.h"
#include "tests/support/kill_engine.h"
#include "tests/support/kill_reader.h"
#include "tests/support/reader_worker.h"
#include "tests/support/stand_still.h"
#include "tests/support/strike.h"
#include "tests/support/worker.h"

#define WAIT_MS 20000

/* Where the second daemon dies while it ends; NULL: it ends in good order. */
static const char *const deaths[] = {NULL, "carried stored", "ring seq", "ring closed"};

static const char *const args[] = {"--ring-size", "8M", NULL};
static struct test_daemon daemon_a;
static struct test_points *daemon_page;
static char daemon_page_path[64];
static char instance[R3RING_INSTANCE_MAX + 1], channel[R3RING_INSTANCE_MAX + 3];
static struct kill_engine engine_a = {.dir = daemon_a.dir, .instance = instance};
static struct kill_reader auditor;
static struct kill_audit *audit;

static void fail(const char *what)
{
	fprintf(stderr, "drop_told_once: %s\n%s", what, daemon_a.log);
	exit(1);
}

static void must(bool holds, const char *what)
{
	if (!holds)
		fail(what);
}

static bool name_page(void *ctx)
{
	(void)ctx;
	return setenv(TEST_POINTS_VARIABLE, daemon_page_path, 1) == 0;
}

static void begin(void)
{
	memset(&daemon_a, 0, sizeof(daemon_a));
	memset(audit, 0, sizeof(*audit));
	daemon_a.prepare = name_page;
	test_daemon_start(&daemon_a, args);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "drops"));
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, "drops"));
	kill_engine_start(&engine_a);
	must(worker_reaches(&engine_a.worker, 1), "the engine does not begin");
	auditor = (struct kill_reader){.page = auditor.page,
				       .kind = KILL_LOSSLESS,
				       .dir = daemon_a.dir,
				       .channel = channel,
				       .rows_of = kill_engine_rows,
				       .at_end = kill_audit_check,
				       .ctx = audit};
	kill_reader_start(&auditor);
	must(worker_reaches(&auditor.worker, 1), "the auditor does not attach");
}

static bool has_dropped(const void *ctx)
{
	const struct r3ring_producer_stats *stats = &engine_a.worker.page->stats;

	(void)ctx;
	return stats->dropped_steps[R3RING_CAUSE_BUFFER_FULL] > 0;
}

/* Steps before those that were dropped have run by then, or the daemon waits for them. */
static void rest_engine(void)
{
	uint64_t steps = r3ring_load_relaxed_u64(&engine_a.worker.page->progress);

	kill_engine_flood(&engine_a, false);
	must(worker_reaches(&engine_a.worker, steps + 20), "the engine stands still");
	stand_still(engine_a.worker.pid);
}

/* The buffer fills up while the daemon stands still, and then it finds what had no room. */
static void kill_at_a_drop(void)
{
	stand_still(daemon_a.pid);
	kill_engine_flood(&engine_a, true);
	must(reader_worker_wait(has_dropped, NULL, WAIT_MS), "no step is dropped");
	rest_engine();
	test_points_arm(daemon_page, "drain drop announced", 1);
	kill(daemon_a.pid, SIGCONT);
	must(strike_await(daemon_a.pid, WAIT_MS), "the daemon announces no dropped step");
	test_points_disarm(daemon_page);
	test_daemon_kill(&daemon_a);
}

/* While the engine stands still. */
static void end_the_next(const char *death)
{
	test_daemon_restart(&daemon_a, args);
	must(test_daemon_said(&daemon_a, "is waited for"), "nothing was left");
	if (!death) {
		must(test_daemon_stop(&daemon_a) == 0, "a daemon does not end in good order");
		return;
	}
	test_points_arm(daemon_page, death, 1);
	kill(daemon_a.pid, SIGTERM);
	must(strike_await(daemon_a.pid, WAIT_MS), "the daemon that ends passes no point");
	test_points_disarm(daemon_page);
	test_daemon_kill(&daemon_a);
}

static void come_back(void)
{
	uint64_t steps = r3ring_load_relaxed_u64(&engine_a.worker.page->progress);

	test_daemon_restart(&daemon_a, args);
	kill(engine_a.worker.pid, SIGCONT);
	must(test_daemon_said(&daemon_a, "(came back)"), "the engine does not come back");
	must(worker_reaches(&engine_a.worker, steps + 20), "the engine stands still");
}

static bool auditor_is_there(const void *ctx)
{
	return kill_reader_account(&auditor).generation >= *(const uint64_t *)ctx;
}

static void end(void)
{
	uint64_t generation;

	r3ring_store_relaxed_u64(&engine_a.worker.page->stop, 1);
	must(worker_wait(&engine_a.worker) == 0, "the engine does not end");
	generation = (uint64_t)channel_figure(daemon_a.dir, channel, "generation");
	kill_engine_note_life(&engine_a, audit, true, generation);
	must(reader_worker_wait(auditor_is_there, &generation, WAIT_MS),
	     "the auditor does not find the last generation");
	must(test_daemon_stop(&daemon_a) == 0, "the daemon does not end in good order");
	must(kill_reader_finish(&auditor, generation) == 0, "the account of all steps is wrong");
	must(kill_reader_sound(&auditor, "at the end"), "the auditor's account is wrong");
	test_daemon_close(&daemon_a);
}

/* What the auditor was told, of all generations together. */
static void check_once(const char *death)
{
	uint64_t told = audit->complete + audit->partial, steps = audit->lives[0].steps;

	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		told += audit->lost[cause];
	must(!audit->missed, "the auditor missed records");
	if (told == steps)
		return;
	fprintf(stderr,
		"drop_told_once: the second daemon's death %s: of %" PRIu64 " steps %" PRIu64
		" fates were told\n",
		death ? death : "(none)", steps, told);
	fail("a step has two fates, or none");
}

int main(void)
{
	if (!strike_has_points()) {
		puts("this build has no points at which to kill");
		return 77;
	}
	snprintf(daemon_page_path, sizeof(daemon_page_path), "/tmp/r3ring-drops.%d", getpid());
	daemon_page = test_points_map(daemon_page_path);
	audit = kill_audit_make();
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		begin();
		kill_at_a_drop();
		end_the_next(deaths[i]);
		come_back();
		end();
		check_once(deaths[i]);
	}
	unlink(daemon_page_path);
	return 0;
}
