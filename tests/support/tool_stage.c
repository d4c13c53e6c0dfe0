/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon, an engine and the tool. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/tool_stage.h"

static void die(const char *what)
{
	fprintf(stderr, "tool stage: %s\n", what);
	exit(1);
}

const char *tool_stage_channel(const struct tool_stage *stage, const char *base)
{
	return engine_channel(stage->daemon.dir, base);
}

void tool_stage_start(struct tool_stage *stage, const char *const *args)
{
	test_daemon_start(&stage->daemon, args);
}

void tool_stage_open(struct tool_stage *stage, const char *base)
{
	const char *instance = engine_instance(stage->daemon.dir, base);
	struct r3ring_error err;

	if (engine_open(&stage->engine, stage->daemon.dir, instance, 64, &err) < 0)
		die(err.text);
}

void tool_stage_close(struct tool_stage *stage)
{
	engine_close(&stage->engine);
}

void tool_stage_run(struct tool_stage *stage, const char *base, unsigned int steps)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = TOOL_STAGE_REQUEST};
	struct listener listener;
	int64_t handle = r3ring_request_begin(stage->engine.producer, &request);

	listener_open(&listener, stage->daemon.dir, tool_stage_channel(stage, base));
	for (unsigned int i = 0; i < steps; i++) {
		int64_t step = engine_step(&stage->engine, handle, TOOL_STAGE_ROWS);

		if (!listener_read_until(&listener, listener_has_step, (uint64_t)step))
			die("a step does not come through");
	}
	listener_close(&listener);
}

int tool_stage_tool(struct tool_stage *stage, const char *const *args)
{
	command_free(&stage->tool);
	return command_run(&stage->tool, stage->daemon.dir, args);
}
