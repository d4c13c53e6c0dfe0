/* SPDX-License-Identifier: Apache-2.0 */
/* An instance of several ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ranks.h"

void ranks_start(struct ranks *ranks, const char *const *args)
{
	test_daemon_start(&ranks->daemon, args);
	snprintf(ranks->name, sizeof(ranks->name), "%s",
		 engine_instance(ranks->daemon.dir, "many"));
}

void ranks_stop(struct ranks *ranks)
{
	for (uint32_t rank = 0; rank < RANKS; rank++)
		engine_close(&ranks->engines[rank]);
	engine_close(&ranks->draft);
	if (ranks->daemon.dir[0])
		test_daemon_close(&ranks->daemon);
}

static void open_as(struct ranks *ranks, struct engine *engine, struct engine_rank rank)
{
	struct r3ring_error err = {0};

	if (engine_open_rank(engine, ranks->daemon.dir, ranks->name, rank, RANKS_MAX_ROWS, &err) ==
	    0)
		return;
	fprintf(stderr, "rank %u: %s\n", rank.rank, err.text);
	exit(1);
}

void ranks_open(struct ranks *ranks, uint32_t rank)
{
	open_as(ranks, &ranks->engines[rank], (struct engine_rank){.rank = rank});
}

void ranks_open_all(struct ranks *ranks)
{
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_open(ranks, rank);
}

void ranks_open_draft(struct ranks *ranks)
{
	open_as(ranks, &ranks->draft, (struct engine_rank){.draft = true});
}

void ranks_run(struct ranks *ranks, uint32_t rank, uint32_t steps)
{
	for (uint32_t i = 0; i < steps; i++) {
		if (engine_step(&ranks->engines[rank], 0, rank + 1) > 0)
			continue;
		fprintf(stderr, "rank %u refuses step %u\n", rank, i);
		exit(1);
	}
}

bool ranks_published(const struct ranks *ranks, uint64_t steps)
{
	struct listener listener;
	bool all = true;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		char number[8];

		snprintf(number, sizeof(number), "%u", rank);
		listener_open(&listener, ranks->daemon.dir, ranks_channel(ranks, number));
		all &= listener_read_until(&listener, listener_has_step, steps);
		listener_close(&listener);
	}
	return all;
}

const char *ranks_channel(const struct ranks *ranks, const char *suffix)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s/%s", ranks->name, suffix);
	return text;
}
