/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This project's ring, with readers as the daemon registers them: lossless, each
 * with a page of its own by which the gate holds the writer back.
 */
#include <errno.h>
#include <stdlib.h>

#include <r3ring/atomic.h>
#include <r3ring/reader_page.h>
#include <r3ring/ring.h>

#include "ring/gate.h"
#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"
#include "tests/bench/peers/peer.h"

/* Shared before the processes part; the handles are each process's own copies. */
struct gated_ring {
	struct r3ring_reader_page pages[PEER_READERS_MAX]; /* first: on lines of their own */
	struct made_ring ring;
	struct gate *gate;
};

struct ring_end {
	struct r3ring_segment *segment;
	struct r3ring_cursor *cursor;
	struct r3ring_reader_page *page;
};

static const char *ring_version(void)
{
	return R3RING_VERSION;
}

static int ring_prepare(struct peer_channel *channel)
{
	const struct gate_terms terms = {.lossless = true, .stall_ns = UINT64_MAX};
	struct gated_ring *gated = bench_shared(sizeof(*gated));
	int rc;

	if (!gated)
		return -ENOMEM;
	channel->shared = gated;
	rc = ring_make(&gated->ring, channel->slots * channel->size, (uint32_t)channel->slots);
	if (rc)
		return rc;
	gated->gate = gate_create(gated->ring.segment, false);
	if (!gated->gate)
		return -ENOMEM;
	writer_set_gate(gated->ring.writer, gated->gate);
	for (unsigned int i = 0; i < channel->readers; i++) {
		rc = gate_add(gated->gate, &gated->pages[i], &terms);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int ring_open(struct peer_channel *channel, int reader)
{
	struct gated_ring *gated = channel->shared;
	struct ring_end *end;

	if (reader == PEER_WRITER)
		return 0;
	end = calloc(1, sizeof(*end));
	if (!end)
		return -ENOMEM;
	channel->end = end;
	end->page = &gated->pages[reader];
	return cursor_make(gated->ring.reader_fd, &end->segment, &end->cursor);
}

static int ring_send(struct peer_channel *channel, const void *message, bool more)
{
	struct gated_ring *gated = channel->shared;
	struct r3ring_record_spec spec = {.len = (uint32_t)channel->size, .units = 1};

	(void)more;
	return r3ring_writer_put(gated->ring.writer, &spec, message);
}

static int ring_receive(struct peer_channel *channel, void *message)
{
	struct ring_end *end = channel->end;
	struct r3ring_view view;
	int rc = r3ring_cursor_read(end->cursor, &view, message, channel->size);

	if (rc == 1)
		/* Pairs with the acquire in the gate's follow(). */
		r3ring_store_release_u64(&end->page->cursor, view.seq + 1);
	return rc;
}

static void ring_close(struct peer_channel *channel)
{
	struct ring_end *end = channel->end;

	if (!end)
		return;
	r3ring_cursor_close(end->cursor);
	r3ring_segment_close(end->segment);
	free(end);
}

static void ring_dispose(struct peer_channel *channel)
{
	struct gated_ring *gated = channel->shared;

	if (!gated)
		return;
	ring_free(&gated->ring);
	gate_destroy(gated->gate);
	bench_unshare(gated, sizeof(*gated));
}

const struct peer peer_r3ring = {
	.name = "r3ring",
	.how = "lossless registered readers, records copied out",
	.sources = "",
	.readers_max = PEER_READERS_MAX,
	.version = ring_version,
	.prepare = ring_prepare,
	.open = ring_open,
	.send = ring_send,
	.receive = ring_receive,
	.close = ring_close,
	.dispose = ring_dispose,
};
