/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon, an engine and the tool, for tests of the tool on a channel. */
#ifndef TESTS_SUPPORT_TOOL_STAGE_H
#define TESTS_SUPPORT_TOOL_STAGE_H

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define TOOL_STAGE_ROWS 4 /* of each step */
#define TOOL_STAGE_REQUEST "a \"request\""
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct tool_stage {
	struct test_daemon daemon;
	struct engine engine;
	struct command tool;
};

/* The engine's channel of rank 0, "NAME/0"; @base is the name but for what makes it
 * this test's own. */
const char *tool_stage_channel(const struct tool_stage *stage, const char *base);

/* Starts the daemon (options or NULL). */
void tool_stage_start(struct tool_stage *stage, const char *const *args);
void tool_stage_open(struct tool_stage *stage, const char *base);
void tool_stage_close(struct tool_stage *stage);

/* Runs steps of a request, and waits until each of them can be read. */
void tool_stage_run(struct tool_stage *stage, const char *base, unsigned int steps);

/* Runs the tool to its end; its code. */
int tool_stage_tool(struct tool_stage *stage, const char *const *args);

#endif
