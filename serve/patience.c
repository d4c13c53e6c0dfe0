/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <utlist.h>

#include "channel/clock.h"
#include "serve/patience.h"

#define LOOK_MS 250u
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

struct waited {
	struct patience *patience;
	int fd;
	uint64_t until_ns; /* UINT64_MAX: for ever */
	struct waited *prev, *next;
};

struct patience {
	uint64_t limit_ns;
	pthread_t thread;
	pthread_cond_t ends;
	pthread_mutex_t lock; /* of what follows */
	struct waited *all;
	bool stopping;
};

/* ---- the thread ------------------------------------------------------------- */

/* Who is shut down is closed by the server then, as if the client had gone. */
static void shut_down_late(const struct patience *patience)
{
	uint64_t now = clock_now_ns();
	struct waited *waited;

	DL_FOREACH(patience->all, waited)
	{
		if (waited->until_ns <= now)
			shutdown(waited->fd, SHUT_RDWR);
	}
}

static struct timespec next_look(void)
{
	uint64_t then = clock_now_ns() + LOOK_MS * NS_PER_MS;

	return (struct timespec){.tv_sec = (time_t)(then / NS_PER_S),
				 .tv_nsec = (long)(then % NS_PER_S)};
}

static void *look(void *arg)
{
	struct patience *patience = arg;

	pthread_mutex_lock(&patience->lock);
	while (!patience->stopping) {
		/* Without connections there is nothing to look at. */
		if (patience->all) {
			struct timespec then = next_look();

			pthread_cond_timedwait(&patience->ends, &patience->lock, &then);
		} else {
			pthread_cond_wait(&patience->ends, &patience->lock);
		}
		shut_down_late(patience);
	}
	pthread_mutex_unlock(&patience->lock);
	return NULL;
}

/* ---- connections ------------------------------------------------------------ */

struct waited *patience_opened(struct patience *patience, int fd)
{
	struct waited *waited = calloc(1, sizeof(*waited));

	if (!waited)
		return NULL;
	waited->patience = patience;
	waited->fd = fd;
	waited->until_ns = clock_now_ns() + patience->limit_ns;
	pthread_mutex_lock(&patience->lock);
	if (!patience->all)
		pthread_cond_signal(&patience->ends);
	DL_APPEND(patience->all, waited);
	pthread_mutex_unlock(&patience->lock);
	return waited;
}

void patience_closed(struct waited *waited)
{
	if (!waited)
		return;
	pthread_mutex_lock(&waited->patience->lock);
	DL_DELETE(waited->patience->all, waited);
	pthread_mutex_unlock(&waited->patience->lock);
	free(waited);
}

static void wait_until(struct waited *waited, uint64_t until_ns)
{
	if (!waited)
		return;
	pthread_mutex_lock(&waited->patience->lock);
	waited->until_ns = until_ns;
	pthread_mutex_unlock(&waited->patience->lock);
}

void patience_renew(struct waited *waited)
{
	if (waited)
		wait_until(waited, clock_now_ns() + waited->patience->limit_ns);
}

void patience_forgo(struct waited *waited)
{
	wait_until(waited, UINT64_MAX);
}

/* ---- starting and stopping -------------------------------------------------- */

static void free_patience(struct patience *patience)
{
	pthread_cond_destroy(&patience->ends);
	pthread_mutex_destroy(&patience->lock);
	free(patience);
}

int patience_start(struct patience **patience, uint32_t limit_ms, struct r3ring_error *err)
{
	struct patience *made = calloc(1, sizeof(*made));
	pthread_condattr_t attributes;
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to watch connections");
	made->limit_ns = limit_ms * NS_PER_MS;
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&made->ends, &attributes);
	pthread_condattr_destroy(&attributes);
	r = -pthread_create(&made->thread, NULL, look, made);
	if (r < 0) {
		free_patience(made);
		return r3ring_error_set(err, r, "connections cannot be watched: %s", strerror(-r));
	}
	*patience = made;
	return 0;
}

void patience_stop(struct patience *patience)
{
	if (!patience)
		return;
	pthread_mutex_lock(&patience->lock);
	patience->stopping = true;
	pthread_cond_signal(&patience->ends);
	pthread_mutex_unlock(&patience->lock);
	pthread_join(patience->thread, NULL);
	free_patience(patience);
}
