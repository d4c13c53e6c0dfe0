/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the host device: a bounded queue of work, run in order by a thread
 * that sleeps when there is none.
 *
 * Work is numbered in the order in which it was enqueued; a stream's state is
 * two numbers, the newest enqueued and the newest done. Waiting for anything is
 * waiting for `done` to reach a number.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/host_stream.h>

#define STREAM_DEPTH 1024u /* a power of two */

struct stream_work {
	r3ring_host_work_fn fn;
	uint8_t args[R3RING_HOST_WORK_ARGS_MAX] __attribute__((aligned(16)));
};

struct r3ring_host_stream {
	pthread_mutex_t lock;
	pthread_cond_t arrived; /* work, or the wish to stop: for the worker */
	pthread_cond_t passed;  /* `done` grew: for whoever waits */
	uint64_t enqueued;
	uint64_t done;
	unsigned int waiters; /* on `passed` */
	unsigned int references;
	bool stopping;
	pthread_t worker;
	struct stream_work work[STREAM_DEPTH];
};

struct r3ring_host_event {
	pthread_mutex_t lock;
	struct r3ring_host_stream *stream; /* of the newest record; NULL: done */
	uint64_t number;
};

/* ---- life ------------------------------------------------------------- */

static void stream_get(struct r3ring_host_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->references++;
	pthread_mutex_unlock(&stream->lock);
}

/* Events may outlive the stream they were recorded on; the last one frees it. */
static void stream_put(struct r3ring_host_stream *stream)
{
	unsigned int left;

	pthread_mutex_lock(&stream->lock);
	left = --stream->references;
	pthread_mutex_unlock(&stream->lock);
	if (left)
		return;
	pthread_cond_destroy(&stream->passed);
	pthread_cond_destroy(&stream->arrived);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

static void *stream_run(void *arg)
{
	struct r3ring_host_stream *stream = arg;

	pthread_mutex_lock(&stream->lock);
	for (;;) {
		struct stream_work *work;

		while (stream->done == stream->enqueued && !stream->stopping)
			pthread_cond_wait(&stream->arrived, &stream->lock);
		if (stream->done == stream->enqueued)
			break;
		work = &stream->work[stream->done % STREAM_DEPTH];
		pthread_mutex_unlock(&stream->lock);
		work->fn(work->args);
		pthread_mutex_lock(&stream->lock);
		stream->done++;
		if (stream->waiters)
			pthread_cond_broadcast(&stream->passed);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* Signals are the application's: none is delivered to a thread of ours. */
static int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? -EAGAIN : 0;
}

int r3ring_host_stream_create(struct r3ring_host_stream **stream)
{
	struct r3ring_host_stream *made = calloc(1, sizeof(*made));
	int rc;

	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->arrived, NULL);
	pthread_cond_init(&made->passed, NULL);
	made->references = 1;
	rc = thread_start(&made->worker, stream_run, made);
	if (rc) {
		stream_put(made);
		return rc;
	}
	pthread_setname_np(made->worker, "r3ring-stream");
	*stream = made;
	return 0;
}

void r3ring_host_stream_destroy(struct r3ring_host_stream *stream)
{
	if (!stream)
		return;
	pthread_mutex_lock(&stream->lock);
	stream->stopping = true;
	pthread_cond_signal(&stream->arrived);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->worker, NULL);
	stream_put(stream);
}

/* ---- work ------------------------------------------------------------- */

/* With the lock held. */
static void stream_wait_done(struct r3ring_host_stream *stream, uint64_t number)
{
	stream->waiters++;
	while (stream->done < number)
		pthread_cond_wait(&stream->passed, &stream->lock);
	stream->waiters--;
}

int r3ring_host_stream_enqueue(struct r3ring_host_stream *stream, r3ring_host_work_fn work,
			       const void *args, size_t size)
{
	struct stream_work inline_work;
	struct stream_work *entry;

	if (size > R3RING_HOST_WORK_ARGS_MAX)
		return -EMSGSIZE;
	if (!stream) {
		if (size)
			memcpy(inline_work.args, args, size);
		work(inline_work.args);
		return 0;
	}
	pthread_mutex_lock(&stream->lock);
	while (stream->enqueued - stream->done == STREAM_DEPTH)
		stream_wait_done(stream, stream->done + 1);
	entry = &stream->work[stream->enqueued % STREAM_DEPTH];
	entry->fn = work;
	if (size)
		memcpy(entry->args, args, size);
	stream->enqueued++;
	pthread_cond_signal(&stream->arrived);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

void r3ring_host_stream_synchronize(struct r3ring_host_stream *stream)
{
	if (!stream)
		return;
	pthread_mutex_lock(&stream->lock);
	stream_wait_done(stream, stream->enqueued);
	pthread_mutex_unlock(&stream->lock);
}

/* ---- events ----------------------------------------------------------- */

int r3ring_host_event_create(struct r3ring_host_event **event)
{
	struct r3ring_host_event *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	*event = made;
	return 0;
}

void r3ring_host_event_destroy(struct r3ring_host_event *event)
{
	if (!event)
		return;
	if (event->stream)
		stream_put(event->stream);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

int r3ring_host_event_record(struct r3ring_host_event *event, struct r3ring_host_stream *stream)
{
	struct r3ring_host_stream *before;
	uint64_t number = 0;

	if (stream) {
		stream_get(stream);
		pthread_mutex_lock(&stream->lock);
		number = stream->enqueued;
		pthread_mutex_unlock(&stream->lock);
	}
	pthread_mutex_lock(&event->lock);
	before = event->stream;
	event->stream = stream;
	event->number = number;
	pthread_mutex_unlock(&event->lock);
	if (before)
		stream_put(before);
	return 0;
}

struct wait_args {
	struct r3ring_host_stream *stream; /* a reference */
	uint64_t number;
};

static void wait_work(void *args)
{
	struct wait_args *wait = args;

	pthread_mutex_lock(&wait->stream->lock);
	stream_wait_done(wait->stream, wait->number);
	pthread_mutex_unlock(&wait->stream->lock);
	stream_put(wait->stream);
}

int r3ring_host_event_wait(struct r3ring_host_event *event, struct r3ring_host_stream *stream)
{
	struct wait_args wait;

	pthread_mutex_lock(&event->lock);
	wait.stream = event->stream;
	wait.number = event->number;
	if (wait.stream)
		stream_get(wait.stream);
	pthread_mutex_unlock(&event->lock);
	if (!wait.stream)
		return 0;
	return r3ring_host_stream_enqueue(stream, wait_work, &wait, sizeof(wait));
}
