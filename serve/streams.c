/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>
#include <utlist.h>

#include "channel/clock.h"
#include "serve/streams.h"

#define BLOCK (16u << 10)
#define NS_PER_S 1000000000ull

struct stream {
	struct streams *all;
	struct MHD_Connection *connection;
	struct stream_teller teller;
	uint64_t due_ns; /* when it is told something next */
	bool suspended;
	char *text; /* being sent */
	size_t length, sent;
	struct stream *prev, *next;
};

struct streams {
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows, and of a stream's due_ns and suspended */
	pthread_cond_t changed;
	struct stream *list;
	uint32_t count;
	bool ending;
};

/* ---- waking ----------------------------------------------------------------- */

static void wake(struct stream *stream)
{
	stream->suspended = false;
	MHD_resume_connection(stream->connection);
}

/* Wakes those whose time has come; returns when the next one's will, 0: nobody waits. */
static uint64_t wake_due(struct streams *streams)
{
	uint64_t now = clock_now_ns(), next = 0;
	struct stream *stream;

	DL_FOREACH(streams->list, stream)
	{
		if (!stream->suspended)
			continue;
		if (stream->due_ns <= now)
			wake(stream);
		else if (!next || stream->due_ns < next)
			next = stream->due_ns;
	}
	return next;
}

static void *keep_time(void *arg)
{
	struct streams *streams = arg;

	pthread_mutex_lock(&streams->lock);
	while (!streams->ending) {
		uint64_t next = wake_due(streams);
		const struct timespec until = {.tv_sec = (time_t)(next / NS_PER_S),
					       .tv_nsec = (long)(next % NS_PER_S)};

		if (next)
			pthread_cond_timedwait(&streams->changed, &streams->lock, &until);
		else
			pthread_cond_wait(&streams->changed, &streams->lock);
	}
	pthread_mutex_unlock(&streams->lock);
	return NULL;
}

/* ---- telling ---------------------------------------------------------------- */

/* Whether it is time for the next event. What came too late for one or more is told once. */
static bool is_due(struct stream *stream)
{
	struct streams *all = stream->all;
	uint64_t now = clock_now_ns();
	bool due;

	pthread_mutex_lock(&all->lock);
	due = all->ending || now >= stream->due_ns;
	if (due) {
		stream->due_ns += stream->teller.interval_ns;
		if (stream->due_ns <= now)
			stream->due_ns = now + stream->teller.interval_ns;
	} else {
		stream->suspended = true;
		MHD_suspend_connection(stream->connection);
		pthread_cond_signal(&all->changed);
	}
	pthread_mutex_unlock(&all->lock);
	return due;
}

static bool is_ending(struct streams *streams)
{
	bool ending;

	pthread_mutex_lock(&streams->lock);
	ending = streams->ending;
	pthread_mutex_unlock(&streams->lock);
	return ending;
}

static bool next_text(struct stream *stream)
{
	free(stream->text);
	stream->sent = 0;
	stream->length = 0;
	stream->text = is_ending(stream->all) ? NULL : stream->teller.tell(stream->teller.context);
	if (!stream->text)
		return false;
	stream->length = strlen(stream->text);
	return true;
}

static ssize_t read_stream(void *cls, uint64_t position, char *buffer, size_t most)
{
	struct stream *stream = cls;
	size_t size;

	(void)position;
	if (stream->sent == stream->length) {
		if (!is_due(stream))
			return 0;
		if (!next_text(stream))
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	size = stream->length - stream->sent;
	if (size > most)
		size = most;
	memcpy(buffer, stream->text + stream->sent, size);
	stream->sent += size;
	return (ssize_t)size;
}

/* ---- one stream's beginning and end ------------------------------------------ */

static void free_stream(void *cls)
{
	struct stream *stream = cls;
	struct streams *all = stream->all;

	pthread_mutex_lock(&all->lock);
	DL_DELETE(all->list, stream);
	all->count--;
	pthread_mutex_unlock(&all->lock);
	stream->teller.free(stream->teller.context);
	free(stream->text);
	free(stream);
}

static bool enlist(struct streams *streams, struct stream *stream)
{
	bool room;

	pthread_mutex_lock(&streams->lock);
	room = !streams->ending && streams->count < STREAMS_MAX;
	if (room) {
		DL_APPEND(streams->list, stream);
		streams->count++;
	}
	pthread_mutex_unlock(&streams->lock);
	return room;
}

struct MHD_Response *streams_open(struct streams *streams, struct MHD_Connection *connection,
				  const struct stream_teller *teller)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	struct MHD_Response *response;

	if (stream)
		*stream = (struct stream){.all = streams,
					  .connection = connection,
					  .teller = *teller,
					  .due_ns = clock_now_ns()};
	if (!stream || !enlist(streams, stream)) {
		teller->free(teller->context);
		free(stream);
		return NULL;
	}
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, stream,
						     free_stream);
	if (!response) {
		free_stream(stream);
		return NULL;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	return response;
}

/* ---- all of them -------------------------------------------------------------- */

int streams_start(struct streams **streams, struct r3ring_error *err)
{
	struct streams *made = calloc(1, sizeof(*made));
	pthread_condattr_t clock;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for event streams");
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&made->changed, &clock);
	pthread_condattr_destroy(&clock);
	if (pthread_create(&made->thread, NULL, keep_time, made)) {
		pthread_cond_destroy(&made->changed);
		pthread_mutex_destroy(&made->lock);
		free(made);
		return r3ring_error_set(err, -ENOMEM, "no thread for event streams");
	}
	*streams = made;
	return 0;
}

void streams_end(struct streams *streams)
{
	struct stream *stream;

	if (!streams)
		return;
	pthread_mutex_lock(&streams->lock);
	streams->ending = true;
	DL_FOREACH(streams->list, stream)
	{
		if (stream->suspended)
			wake(stream);
	}
	pthread_cond_signal(&streams->changed);
	pthread_mutex_unlock(&streams->lock);
	pthread_join(streams->thread, NULL);
}

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	pthread_cond_destroy(&streams->changed);
	pthread_mutex_destroy(&streams->lock);
	free(streams);
}
