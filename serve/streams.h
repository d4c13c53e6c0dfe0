/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events: connections that are told something again and again. Between two
 * events a connection is suspended, so that it takes no thread; a client that reads slowly
 * is asked for when it has read all, and so misses events instead of holding them up.
 *
 * Source: WHATWG HTML, 9.2 "Server-sent events".
 */
#ifndef SERVE_STREAMS_H
#define SERVE_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#define STREAMS_MAX 32u

struct MHD_Connection;
struct MHD_Response;
struct streams;

/* Starts the thread that wakes them. Returns 0 or -ENOMEM, with a message. */
int streams_start(struct streams **streams, struct r3ring_error *err);

/* Ends all streams, and lets none begin: before the server is stopped, whose threads still
 * send their ends. streams_free() after it; NULL is fine for both. */
void streams_end(struct streams *streams);
void streams_free(struct streams *streams);

struct stream_teller {
	/* What is to be sent now, as events, allocated; NULL ends the stream. One of the
	 * server's threads at a time. */
	char *(*tell)(void *context);
	void (*free)(void *context);
	void *context;
	uint64_t interval_ns; /* between the beginnings of two of them */
};

/*
 * An answer that tells for as long as its client listens. Takes @teller's context over,
 * also on failure. Returns NULL where there are STREAMS_MAX already, where all are ending,
 * or without memory.
 */
struct MHD_Response *streams_open(struct streams *streams, struct MHD_Connection *connection,
				  const struct stream_teller *teller);

#endif
