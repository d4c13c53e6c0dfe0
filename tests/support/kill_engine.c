/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <r3ring/atomic.h>

#include "tests/support/engine.h"
#include "tests/support/kill_engine.h"

#define ROWS_MOST 12u
#define FLOOD_REST 8u /* steps of a flood between two pauses */

/* What its page holds, beside its progress. */
enum { ENGINE_FIRST, ENGINE_NEWEST, ENGINE_FLOOD }; /* generations; whether it is to flood */

uint32_t kill_engine_rows(uint64_t step)
{
	return 1 + (uint32_t)((step - 1) % ROWS_MOST);
}

static bool stopped(const struct worker_page *page)
{
	return r3ring_load_relaxed_u64(&page->stop) != 0;
}

static void note_progress(struct worker_page *page, struct engine *engine)
{
	r3ring_producer_get_stats(engine->producer, &page->stats);
	if (page->stats.generation) {
		r3ring_store_relaxed_u64(&page->counts[ENGINE_NEWEST], page->stats.generation);
		if (!page->counts[ENGINE_FIRST])
			page->counts[ENGINE_FIRST] = page->stats.generation;
	}
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, page->stats.steps);
}

static void run_steps(struct worker_page *page, struct engine *engine)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "kills"};
	int64_t handle = 0;

	for (uint64_t i = 0; !stopped(page); i++) {
		if (i % 2 == 0)
			handle = r3ring_request_begin(engine->producer, &request);
		engine_step(engine, handle, kill_engine_rows(i + 1));
		if (i % 2)
			r3ring_request_end(engine->producer, handle, R3RING_END_FINISHED, 0, 8);
		note_progress(page, engine);
		if (i % FLOOD_REST == 0 || !r3ring_load_relaxed_u64(&page->counts[ENGINE_FLOOD]))
			worker_compute();
	}
}

static int run_engine(struct worker_page *page, const void *ctx)
{
	const struct kill_engine *self = ctx;
	struct engine engine = {0};

	test_points_use(self->points);
	while (engine_open(&engine, self->dir, self->instance, ROWS_MOST, &page->err) < 0) {
		if (stopped(page))
			return 0;
		worker_compute();
	}
	engine.doorbell_layers = 2;
	run_steps(page, &engine);
	note_progress(page, &engine);
	engine_close(&engine);
	return 0;
}

void kill_engine_start(struct kill_engine *engine)
{
	worker_start(&engine->worker, run_engine, engine);
}

uint64_t kill_engine_generation(const struct kill_engine *engine)
{
	return r3ring_load_relaxed_u64(&engine->worker.page->counts[ENGINE_NEWEST]);
}

void kill_engine_flood(struct kill_engine *engine, bool flood)
{
	r3ring_store_relaxed_u64(&engine->worker.page->counts[ENGINE_FLOOD], flood);
}

void kill_engine_note_life(const struct kill_engine *engine, struct kill_audit *audit, bool ended,
			   uint64_t newest)
{
	const struct worker_page *page = engine->worker.page;
	struct kill_life life = {
		.first_generation = page->counts[ENGINE_FIRST],
		.last_generation = newest ? newest : page->counts[ENGINE_NEWEST],
		.steps = page->progress,
		.ended = ended,
	};

	if (!life.first_generation)
		return;
	memcpy(life.dropped, page->stats.dropped_steps, sizeof(life.dropped));
	audit->lives[audit->count++] = life;
}
