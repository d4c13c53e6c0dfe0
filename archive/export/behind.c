/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/behind.h"
#include "archive/export/sink.h"

#define BUFFERS 4u

enum state { FREE, FILLED, AT_WORK };

struct buffer {
	enum state state;
	uint64_t number; /* in the order in which they were given */
	size_t bytes;
	uint64_t offset;
};

struct export_behind {
	pthread_mutex_t lock;
	pthread_cond_t given, written;
	pthread_t thread;
	int fd;
	bool sink;
	uint8_t *memory; /* [BUFFERS][EXPORT_BEHIND_BYTES] */
	struct buffer buffer[BUFFERS];
	uint32_t filling; /* the caller's */
	uint64_t numbers;
	int failed; /* -errno; what comes behind it is not written */
	bool closing;
};

static uint8_t *bytes_of(const struct export_behind *behind, const struct buffer *buffer)
{
	return behind->memory + (size_t)(buffer - behind->buffer) * EXPORT_BEHIND_BYTES;
}

/* The oldest one in a state; NULL: none is. */
static struct buffer *oldest(struct export_behind *behind, enum state state)
{
	struct buffer *found = NULL;

	for (uint32_t i = 0; i < BUFFERS; i++) {
		struct buffer *buffer = &behind->buffer[i];

		if (buffer->state == state && (!found || buffer->number < found->number))
			found = buffer;
	}
	return found;
}

/* Under the lock, which is left meanwhile. */
static void write_one(struct export_behind *behind, struct buffer *buffer)
{
	int rc = behind->failed;

	buffer->state = AT_WORK;
	pthread_mutex_unlock(&behind->lock);
	if (!rc)
		rc = behind->sink ? export_sink_write(behind->fd, bytes_of(behind, buffer),
						      buffer->bytes)
				  : export_write_at(behind->fd, bytes_of(behind, buffer),
						    buffer->bytes, buffer->offset);
	pthread_mutex_lock(&behind->lock);
	if (!behind->failed)
		behind->failed = rc;
	buffer->state = FREE;
	pthread_cond_signal(&behind->written);
}

static void *run(void *arg)
{
	struct export_behind *behind = arg;
	struct buffer *buffer;

	pthread_mutex_lock(&behind->lock);
	while ((buffer = oldest(behind, FILLED)) || !behind->closing) {
		if (buffer)
			write_one(behind, buffer);
		else
			pthread_cond_wait(&behind->given, &behind->lock);
	}
	pthread_mutex_unlock(&behind->lock);
	return NULL;
}

static bool processor_to_spare(void)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

static int start(struct export_behind *behind)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&behind->thread, NULL, run, behind);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct export_behind *export_behind_create(int fd, bool sink)
{
	struct export_behind *behind = processor_to_spare() ? calloc(1, sizeof(*behind)) : NULL;

	if (!behind)
		return NULL;
	behind->fd = fd;
	behind->sink = sink;
	behind->memory = aligned_alloc(64, BUFFERS * (size_t)EXPORT_BEHIND_BYTES);
	pthread_mutex_init(&behind->lock, NULL);
	pthread_cond_init(&behind->given, NULL);
	pthread_cond_init(&behind->written, NULL);
	/* So that what an export takes does not depend on how far behind the thread once was. */
	if (behind->memory)
		memset(behind->memory, 0, BUFFERS * (size_t)EXPORT_BEHIND_BYTES);
	if (behind->memory && !start(behind))
		return behind;
	free(behind->memory);
	free(behind);
	return NULL;
}

void export_behind_destroy(struct export_behind *behind)
{
	if (!behind)
		return;
	pthread_mutex_lock(&behind->lock);
	behind->closing = true;
	pthread_cond_signal(&behind->given);
	pthread_mutex_unlock(&behind->lock);
	pthread_join(behind->thread, NULL);
	pthread_cond_destroy(&behind->given);
	pthread_cond_destroy(&behind->written);
	pthread_mutex_destroy(&behind->lock);
	free(behind->memory);
	free(behind);
}

/* The caller writes one itself where the thread is behind; what is no file has an order. */
static void help_or_wait(struct export_behind *behind)
{
	struct buffer *buffer = behind->sink ? NULL : oldest(behind, FILLED);

	if (buffer)
		write_one(behind, buffer);
	else
		pthread_cond_wait(&behind->written, &behind->lock);
}

int export_behind_next(struct export_behind *behind, uint8_t **bytes)
{
	struct buffer *buffer;
	int failed;

	pthread_mutex_lock(&behind->lock);
	while (!(buffer = oldest(behind, FREE)))
		help_or_wait(behind);
	failed = behind->failed;
	pthread_mutex_unlock(&behind->lock);
	behind->filling = (uint32_t)(buffer - behind->buffer);
	*bytes = bytes_of(behind, buffer);
	return failed;
}

void export_behind_give(struct export_behind *behind, size_t bytes, uint64_t offset)
{
	pthread_mutex_lock(&behind->lock);
	behind->buffer[behind->filling] = (struct buffer){FILLED, behind->numbers++, bytes, offset};
	pthread_cond_signal(&behind->given);
	pthread_mutex_unlock(&behind->lock);
}

int export_behind_wait(struct export_behind *behind)
{
	int failed;

	pthread_mutex_lock(&behind->lock);
	while (oldest(behind, FILLED) || oldest(behind, AT_WORK))
		help_or_wait(behind);
	failed = behind->failed;
	pthread_mutex_unlock(&behind->lock);
	return failed;
}
