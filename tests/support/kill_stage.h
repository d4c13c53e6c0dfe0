/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon, an engine and an auditor whose deaths a test orders one by one, at test points,
 * and the account of all steps at the end.
 */
#ifndef TESTS_SUPPORT_KILL_STAGE_H
#define TESTS_SUPPORT_KILL_STAGE_H

#include "tests/support/daemon.h"
#include "tests/support/kill_audit.h"
#include "tests/support/kill_engine.h"
#include "tests/support/kill_reader.h"

#define KILL_STAGE_WAIT_MS 20000

struct kill_stage {
	const char *name; /* of the program */
	struct test_daemon daemon;
	struct test_points *daemon_page;
	char daemon_page_path[TEST_POINTS_PATH];
	char instance[R3RING_INSTANCE_MAX + 1], channel[R3RING_INSTANCE_MAX + 3];
	struct kill_engine engine;
	struct kill_reader auditor;
	struct kill_audit *audit;
};

/* Ends the program, with the daemon's log, unless @holds. */
void kill_stage_must(const struct kill_stage *stage, bool holds, const char *what);

/* Once, before all; @name is the program's. Returns false in a build without points. */
bool kill_stage_make(struct kill_stage *stage, const char *name);

/* A daemon, an engine that steps, an auditor that reads. */
void kill_stage_begin(struct kill_stage *stage);

/* The next daemon, in the place of one that has ended. */
void kill_stage_restart(struct kill_stage *stage);

/* The daemon is to die at its next passing of @point; it has, and is gone. */
void kill_stage_arm(struct kill_stage *stage, const char *point);
void kill_stage_await_death(struct kill_stage *stage, const char *what);

/* The engine makes so many steps more. */
void kill_stage_steps(const struct kill_stage *stage, uint64_t more);

/* The auditor has come to that generation, or a later one. */
void kill_stage_await_auditor(const struct kill_stage *stage, uint64_t generation);

/*
 * The engine ends in good order, and all that it and those before it announced is told as
 * the auditor's account says; @fates: how many ends of steps it was told of.
 */
void kill_stage_end(struct kill_stage *stage, uint64_t *fates);

#endif
