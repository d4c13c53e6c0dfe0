/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/daemon_watch.h"

#define PICTURE_MS 2000 /* that one may take */

struct daemon_watch {
	pthread_t thread;
	char *runtime_dir;
	uint32_t interval_ms;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t ending;
	bool stopping;
	void (*tell)(void *context, const struct daemon_picture *picture); /* NULL: nobody */
	void *context;
	struct daemon_picture *before; /* the newest live one but `now` */
	struct daemon_picture *now;
};

static void keep(struct daemon_watch *watch, struct daemon_picture *picture)
{
	struct daemon_picture *old = watch->now;

	picture_carry_on(picture, old && old->state == PICTURE_LIVE ? old : watch->before);
	watch->now = picture;
	if (watch->tell)
		watch->tell(watch->context, picture);
	if (!old || old->state != PICTURE_LIVE) {
		daemon_picture_put(old);
		return;
	}
	daemon_picture_put(watch->before);
	watch->before = old;
}

/* Until the next picture is due, or it is to end. */
static void pause_between(struct daemon_watch *watch)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += watch->interval_ms / 1000;
	until.tv_nsec += watch->interval_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	while (!watch->stopping && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&watch->ending, &watch->lock, &until);
}

static void *run(void *arg)
{
	struct daemon_watch *watch = arg;

	pthread_mutex_lock(&watch->lock);
	while (!watch->stopping) {
		struct daemon_picture *picture;

		pthread_mutex_unlock(&watch->lock);
		picture = daemon_picture_take(watch->runtime_dir, PICTURE_MS);
		pthread_mutex_lock(&watch->lock);
		if (picture)
			keep(watch, picture);
		pause_between(watch);
	}
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

static void free_watch(struct daemon_watch *watch)
{
	daemon_picture_put(watch->before);
	daemon_picture_put(watch->now);
	pthread_cond_destroy(&watch->ending);
	pthread_mutex_destroy(&watch->lock);
	free(watch->runtime_dir);
	free(watch);
}

int daemon_watch_start(struct daemon_watch **watch, const char *runtime_dir, uint32_t interval_ms,
		       struct r3ring_error *err)
{
	struct daemon_watch *made = calloc(1, sizeof(*made));
	pthread_condattr_t monotonic;
	int r = 0;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to watch the daemon");
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&made->ending, &monotonic);
	pthread_condattr_destroy(&monotonic);
	made->interval_ms = interval_ms;
	if (runtime_dir) {
		made->runtime_dir = strdup(runtime_dir);
		r = made->runtime_dir ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, run, made);
	if (r) {
		free_watch(made);
		return r3ring_error_set(err, r, "the daemon cannot be watched: %s", strerror(-r));
	}
	*watch = made;
	return 0;
}

void daemon_watch_stop(struct daemon_watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->stopping = true;
	pthread_cond_signal(&watch->ending);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	free_watch(watch);
}

void daemon_watch_look(struct daemon_watch *watch, struct daemon_picture **before,
		       struct daemon_picture **now)
{
	pthread_mutex_lock(&watch->lock);
	*before = daemon_picture_get(watch->before);
	*now = daemon_picture_get(watch->now);
	pthread_mutex_unlock(&watch->lock);
}

void daemon_watch_tell(struct daemon_watch *watch,
		       void (*tell)(void *context, const struct daemon_picture *picture),
		       void *context)
{
	pthread_mutex_lock(&watch->lock);
	watch->tell = tell;
	watch->context = context;
	if (watch->now)
		tell(context, watch->now);
	pthread_mutex_unlock(&watch->lock);
}
