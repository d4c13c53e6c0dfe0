/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring replay: how far the daemon is with a channel. A producer drops what there is no
 * room for; a replay waits instead, and for that it reads along.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/reader.h>

#include "tools/replay.h"

#define LOOK_MS 100
#define PATIENCE_MS 10000 /* with a daemon that is gone */

struct replay_flow {
	struct r3ring_reader *reader;
	uint64_t told; /* the newest step of which the end or the loss came */
};

int replay_flow_open(struct replay_flow **flow, const char *channel, struct r3ring_error *err)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.channel = channel,
		.mode = R3RING_LOSSY,
		.from = R3RING_FROM_OLDEST,
		.stay = 1,
		.label = "replay",
	};
	struct replay_flow *opened = calloc(1, sizeof(*opened));
	int code;

	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "no memory to watch a channel");
	code = r3ring_reader_open(&opened->reader, &options, err);
	if (code) {
		free(opened);
		return code;
	}
	*flow = opened;
	return 0;
}

void replay_flow_close(struct replay_flow *flow)
{
	if (!flow)
		return;
	r3ring_reader_close(flow->reader);
	free(flow);
}

/* A step is over before the next begins. */
static void note(struct replay_flow *flow, const struct r3ring_view *view)
{
	uint64_t told = 0;

	if (view->type == R3RING_STEP_END || view->type == R3RING_LOST)
		told = view->step;
	else if (view->type == R3RING_STEP && view->step)
		told = view->step - 1;
	if (told > flow->told)
		flow->told = told;
}

/* Returns 0 (nothing new), 1, or a negative errno. */
static int look(struct replay_flow *flow)
{
	struct r3ring_view view;
	int code = r3ring_reader_next(flow->reader, &view);

	if (code == -EOVERFLOW || code == -EBADMSG)
		return 1;
	if (code != 1)
		return code;
	if (r3ring_reader_check(flow->reader) == 0)
		note(flow, &view);
	return 1;
}

int replay_flow_wait(struct replay_flow *flow, uint64_t step, const uint32_t *stop)
{
	int patience = PATIENCE_MS;
	int code;

	while (flow->told < step) {
		if (stop && r3ring_load_relaxed_u32(stop))
			return -EINTR;
		code = look(flow);
		if (code < 0)
			return code == -EPIPE ? -EOWNERDEAD : code;
		if (code)
			continue;
		code = r3ring_reader_wait(flow->reader, LOOK_MS);
		if (code < 0 && code != -EOWNERDEAD)
			return code;
		patience = code == -EOWNERDEAD ? patience - LOOK_MS : PATIENCE_MS;
		if (patience <= 0)
			return -EOWNERDEAD;
	}
	return 0;
}
