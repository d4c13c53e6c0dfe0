/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's reader.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/demo/receive.h"

#define LOOK_MS 2      /* how often it looks for the channel */
#define WAIT_MS 200    /* how long it sleeps for a record before it looks at the producer */
#define SETTLE_MS 1000 /* what the daemon still has comes within this */
#define ALIGNMENT 64

struct reception {
	struct received *received;
	struct r3ring_reader *reader;
	bool (*producer_gone)(void *ctx);
	void *ctx;
	void *buffer;
	size_t capacity;
	uint64_t gone_ns; /* when the producer was found gone, or the last record after that */
	bool done;
};

uint64_t receive_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- attaching -------------------------------------------------------- */

static int attach(struct reception *reception, const char *runtime_dir, const char *channel,
		  struct r3ring_error *err)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = runtime_dir,
		.channel = channel,
		.mode = R3RING_LOSSY,
		.from = R3RING_FROM_OLDEST,
		.stay = 1,
	};
	int code;

	for (;;) {
		code = r3ring_reader_open(&reception->reader, &options, err);
		if (code != -ENOENT)
			return code;
		if (reception->producer_gone(reception->ctx))
			return r3ring_error_set(err, code, "%s: the producer ended before it began",
						channel);
		poll(NULL, 0, LOOK_MS);
	}
}

static int make_buffer(struct reception *reception)
{
	size_t bytes = r3ring_reader_max_record(reception->reader);

	reception->capacity = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	reception->buffer = aligned_alloc(ALIGNMENT, reception->capacity);
	return reception->buffer ? 0 : -ENOMEM;
}

/* ---- records ---------------------------------------------------------- */

static int make_room(struct received *received)
{
	size_t room = received->room ? 2 * received->room : 4096;
	struct received_record *records;

	if (received->count < received->room)
		return 0;
	records = realloc(received->records, room * sizeof(*records));
	if (!records)
		return -ENOMEM;
	received->records = records;
	received->room = room;
	return 0;
}

static int keep(struct received *received, const struct r3ring_view *view, uint64_t now)
{
	void *copy = malloc(view->len ? view->len : 1);
	struct received_record *record;

	if (!copy || make_room(received)) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, view->data, view->len);
	record = &received->records[received->count++];
	record->view = *view;
	record->view.data = copy;
	record->arrived_ns = now;
	received->bytes += view->len;
	return 0;
}

static int take(struct reception *reception, const struct r3ring_view *view)
{
	uint64_t now = receive_now_ns();

	if (reception->gone_ns)
		reception->gone_ns = now;
	return keep(reception->received, view, now);
}

static int wait_for_more(struct reception *reception)
{
	uint64_t now;
	int code = r3ring_reader_wait(reception->reader, WAIT_MS);

	if (code)
		return code < 0 ? code : 0;
	now = receive_now_ns();
	if (!reception->gone_ns && reception->producer_gone(reception->ctx))
		reception->gone_ns = now;
	reception->done = reception->gone_ns && now - reception->gone_ns > SETTLE_MS * 1000000ull;
	return 0;
}

static int read_next(struct reception *reception)
{
	struct r3ring_view view;
	int code = r3ring_reader_read(reception->reader, &view, reception->buffer,
				      reception->capacity);

	switch (code) {
	case 1:
		return take(reception, &view);
	case 0:
		return wait_for_more(reception);
	case -EPIPE:
		reception->done = true;
		return 0;
	case -EOVERFLOW:
	case -EBADMSG:
		return 0; /* counted by the reader, and told in the report */
	default:
		return code;
	}
}

int receive(struct received *received, const char *runtime_dir, const char *channel,
	    bool (*producer_gone)(void *ctx), void *ctx, struct r3ring_error *err)
{
	struct reception reception = {
		.received = received,
		.producer_gone = producer_gone,
		.ctx = ctx,
	};
	int code = attach(&reception, runtime_dir, channel, err);

	if (code)
		return code;
	received->attached_ns = receive_now_ns();
	code = make_buffer(&reception);
	while (!code && !reception.done)
		code = read_next(&reception);
	if (code)
		r3ring_error_set(err, code, "%s: reading: %s", channel, strerror(-code));
	r3ring_reader_get_stats(reception.reader, &received->stats);
	r3ring_reader_close(reception.reader);
	free(reception.buffer);
	return code;
}

void received_free(struct received *received)
{
	for (size_t i = 0; i < received->count; i++)
		free((void *)(uintptr_t)received->records[i].view.data);
	free(received->records);
}
