/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the daemon which channels an instance has, without ever waiting. */
#ifndef CONSUMER_LISTING_H
#define CONSUMER_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>

/* A connection on which questions follow one another, and the newest answer. */
struct listing {
	const char *runtime_dir; /* the owner's */
	const char *instance;    /* the owner's */
	int fd;                  /* -1: none */
	bool asked;              /* a question awaits its answer */
	struct r3ring_channel_name *names;
	size_t count;
};

void listing_init(struct listing *listing, const char *runtime_dir, const char *instance);
void listing_release(struct listing *listing);

/* Sends the question, connecting first where needed. Returns 0 or a negative
 * errno, as socket_connect(). */
int listing_ask(struct listing *listing, struct r3ring_error *err);

/*
 * Takes the answer: then names[0..count) are the channels, by rank, those of draft
 * models behind the others.
 *
 * @timeout_ms: 0: only looks.
 *
 * Returns 0, -ETIMEDOUT (the question still stands), or, the question being over:
 * what the daemon refuses with, -EPIPE (it hung up), -EBADMSG (its answer is
 * malformed, or it knows no such question), -ENOMEM.
 */
int listing_take(struct listing *listing, int timeout_ms, struct r3ring_error *err);

/* Gives a question up, and the connection with it. */
void listing_hang_up(struct listing *listing);

#endif
