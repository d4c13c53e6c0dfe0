/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When what was reserved under an id is freed: ranks that use the same ids, and the stages of one
 * request, each tell of an end, and it is over when none of them runs it.
 */
#ifndef SERVE_ENDINGS_H
#define SERVE_ENDINGS_H

#include <r3ring/reserve.h>

#include "monitor/follower.h"

struct ending;

/* Requests of which an end was told while others of the id ran. One thread's; {0} is none. */
struct endings {
	struct ending *first;
};

/* An end of @id was told. */
void endings_told(struct endings *endings, struct follower *follower, struct r3ring_book *book,
		  const char *id);

/* Frees what is held for those that run no more: they may have gone without an end, since their
 * channel closed, or lost it. */
void endings_settle(struct endings *endings, struct follower *follower, struct r3ring_book *book);

/* Forgets them. */
void endings_clear(struct endings *endings);

#endif
