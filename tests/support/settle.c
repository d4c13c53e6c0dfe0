/* SPDX-License-Identifier: Apache-2.0 */
/* An engine comes to rest. */
#include "tests/support/settle.h"
#include "tests/support/channel_status.h"
#include "tests/support/reader_worker.h"

#define TRIES 50
#define TRY_MS 500
#define LAST_MS 5000

struct awaited {
	const char *dir, *channel;
	int64_t number;
};

static bool all_told(const void *ctx)
{
	const struct awaited *awaited = ctx;

	return channel_figure(awaited->dir, awaited->channel, "steps") >= awaited->number;
}

int64_t engine_settle(struct engine *engine, const char *dir, const char *channel, uint32_t rows)
{
	struct awaited awaited = {dir, channel, 0};

	for (int tries = 0; tries < TRIES; tries++) {
		awaited.number = engine_step(engine, 0, rows);
		if (!reader_worker_wait(all_told, &awaited, TRY_MS))
			continue;
		awaited.number = engine_step(engine, 0, rows);
		if (reader_worker_wait(all_told, &awaited, LAST_MS))
			return awaited.number;
	}
	return -1;
}
