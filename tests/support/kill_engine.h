/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine in a process of its own that is there to be killed: it runs steps until it is
 * stopped, whatever daemons come and go, and what it announced can be looked at behind its
 * death.
 */
#ifndef TESTS_SUPPORT_KILL_ENGINE_H
#define TESTS_SUPPORT_KILL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/kill_audit.h"
#include "tests/support/test_points.h"
#include "tests/support/worker.h"

struct kill_engine {
	struct worker worker;
	struct test_points *points;
	const char *dir, *instance;
};

/* How many rows a step has; for kill_reader.rows_of. */
uint32_t kill_engine_rows(uint64_t step);

/* Its page is emptied. */
void kill_engine_start(struct kill_engine *engine);

/* The newest generation that it knows of; 0: none yet. */
uint64_t kill_engine_generation(const struct kill_engine *engine);

/* Whether it runs steps as fast as it can, or as if a model computed in between. */
void kill_engine_flood(struct kill_engine *engine, bool flood);

/* Of one that is dead. @ended: in good order; @newest: generation, where the engine itself may
 * not know, or 0. */
void kill_engine_note_life(const struct kill_engine *engine, struct kill_audit *audit, bool ended,
			   uint64_t newest);

#endif
