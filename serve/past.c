/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "channel/clock.h"
#include "monitor/since.h"
#include "serve/past.h"

#define EACH_MAX ((size_t)32 << 20)
#define ALL_MAX ((size_t)256 << 20)
#define NS_PER_MS 1000000u

struct engine {
	const struct served *served;
	struct history *history;
	struct engine_model *model; /* that is looked at */
	struct since *since;        /* the frame before */
};

struct past {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
	uint32_t count;
	struct engine engine[];
};

static int64_t time_ms(void)
{
	return (int64_t)(clock_real_ns() / NS_PER_MS);
}

static struct gpus *measure_gpus(const struct engine *engine, const struct r3ring_load_info *info)
{
	struct r3ring_eplb_map *map = NULL;
	struct gpus *gpus;

	r3ring_load_map_in_force(engine->model->load, R3RING_LOAD_MERGED, info->epoch, &map);
	gpus = gpus_measure(map, info);
	r3ring_eplb_map_free(map);
	return gpus;
}

/* A frame that there is no memory for is not there: the next one is tried. */
static void add_frame(struct engine *engine)
{
	const struct r3ring_load_info *info;
	struct gpus *gpus;

	if (since_read(engine->since, true, &info))
		return;
	gpus = measure_gpus(engine, info);
	history_add(engine->history, info, gpus, time_ms());
	free(gpus);
}

/* What another model did from its first step on is in its first frame. Without memory the former
 * one is looked at still. */
static void look(struct engine *engine)
{
	struct engine_model *model = follower_model(served_follower(engine->served));
	struct since *since;

	add_frame(engine);
	if (model == engine->model ||
	    since_create(&since, model->load, R3RING_LOAD_MERGED, SINCE_EVER)) {
		engine_model_put(model);
		return;
	}
	since_destroy(engine->since);
	engine_model_put(engine->model);
	engine->since = since;
	engine->model = model;
	add_frame(engine);
}

static void *keep(void *arg)
{
	struct past *past = arg;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&past->lock);
	while (!past->stopping) {
		for (uint32_t i = 0; i < past->count; i++)
			look(&past->engine[i]);
		next.tv_sec += PAST_INTERVAL_MS / 1000;
		while (!past->stopping &&
		       pthread_cond_timedwait(&past->changed, &past->lock, &next) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&past->lock);
	return NULL;
}

static void free_past(struct past *past)
{
	for (uint32_t i = 0; i < past->count; i++) {
		since_destroy(past->engine[i].since);
		engine_model_put(past->engine[i].model);
		history_destroy(past->engine[i].history);
	}
	pthread_cond_destroy(&past->changed);
	pthread_mutex_destroy(&past->lock);
	free(past);
}

static int open_engine(struct engine *engine, const struct served *served, uint32_t count)
{
	size_t bytes = ALL_MAX / count < EACH_MAX ? ALL_MAX / count : EACH_MAX;
	int r = history_create(&engine->history, bytes);

	engine->served = served;
	engine->model = follower_model(served_follower(served));
	if (r == 0)
		r = since_create(&engine->since, engine->model->load, R3RING_LOAD_MERGED,
				 SINCE_NOW);
	return r;
}

int past_start(struct past **past, struct served *const *served, uint32_t count,
	       struct r3ring_error *err)
{
	struct past *made = calloc(1, sizeof(*made) + count * sizeof(made->engine[0]));
	pthread_condattr_t clock;
	int r = 0;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for the last minutes");
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&made->changed, &clock);
	pthread_condattr_destroy(&clock);
	for (; r == 0 && made->count < count; made->count++)
		r = open_engine(&made->engine[made->count], served[made->count], count);
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, keep, made);
	if (r) {
		free_past(made);
		return r3ring_error_set(err, -ENOMEM, "no memory for the last minutes");
	}
	*past = made;
	return 0;
}

void past_stop(struct past *past)
{
	if (!past)
		return;
	pthread_mutex_lock(&past->lock);
	past->stopping = true;
	pthread_cond_signal(&past->changed);
	pthread_mutex_unlock(&past->lock);
	pthread_join(past->thread, NULL);
	free_past(past);
}

struct history *past_of(const struct past *past, const struct served *served)
{
	for (uint32_t i = 0; i < past->count; i++) {
		if (past->engine[i].served == served)
			return past->engine[i].history;
	}
	return NULL;
}
