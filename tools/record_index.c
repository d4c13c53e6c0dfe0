/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record_index.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "archive/index.h"
#include "archive/segments.h"

#define NICE 10 /* recording goes first */

struct record_index {
	const char *dir;
	int dir_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t segments; /* guarded by lock, as is over */
	bool over;
	char path[PATH_MAX]; /* the thread's */
};

/* Waits for a segment more than @known. Returns false when it is over. */
static bool wait_for_segment(struct record_index *index, uint64_t *known)
{
	bool over;

	pthread_mutex_lock(&index->lock);
	while (!index->over && index->segments <= *known)
		pthread_cond_wait(&index->changed, &index->lock);
	*known = index->segments;
	over = index->over;
	pthread_mutex_unlock(&index->lock);
	return !over;
}

/* What fails here is tried again, and told, at the end. */
static void *keep_up(void *arg)
{
	struct record_index *index = arg;
	uint64_t known = 0;

	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	while (wait_for_segment(index, &known)) {
		const char *dir = archive_dir_path(index->dir, index->dir_fd, index->path);

		if (dir)
			archive_index_update(dir, NULL);
	}
	return NULL;
}

struct record_index *record_index_start(const char *dir, int dir_fd)
{
	struct record_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->dir = dir;
	index->dir_fd = dir_fd;
	pthread_mutex_init(&index->lock, NULL);
	pthread_cond_init(&index->changed, NULL);
	if (!pthread_create(&index->thread, NULL, keep_up, index))
		return index;
	pthread_cond_destroy(&index->changed);
	pthread_mutex_destroy(&index->lock);
	free(index);
	return NULL;
}

void record_index_segments(struct record_index *index, uint64_t segments)
{
	if (!index)
		return;
	pthread_mutex_lock(&index->lock);
	if (segments > index->segments) {
		index->segments = segments;
		pthread_cond_signal(&index->changed);
	}
	pthread_mutex_unlock(&index->lock);
}

void record_index_end(struct record_index *index)
{
	if (!index)
		return;
	pthread_mutex_lock(&index->lock);
	index->over = true;
	pthread_cond_signal(&index->changed);
	pthread_mutex_unlock(&index->lock);
	pthread_join(index->thread, NULL);
	pthread_cond_destroy(&index->changed);
	pthread_mutex_destroy(&index->lock);
	free(index);
}
