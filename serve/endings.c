/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/endings.h"

struct ending {
	struct ending *next;
	char id[R3RING_TEXT_ID_MAX + 1];
};

static struct ending **ending_of(struct endings *endings, const char *id)
{
	struct ending **at = &endings->first;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

static void drop(struct ending **at)
{
	struct ending *dropped = *at;

	if (!dropped)
		return;
	*at = dropped->next;
	free(dropped);
}

/* Without memory it is the end of the last one that frees, or time. */
static void keep(struct endings *endings, const char *id)
{
	struct ending **at = ending_of(endings, id);

	if (!*at && (*at = calloc(1, sizeof(**at))))
		snprintf((*at)->id, sizeof((*at)->id), "%s", id);
}

void endings_told(struct endings *endings, struct follower *follower, struct r3ring_book *book,
		  const char *id)
{
	if (follower_runs(follower, id)) {
		keep(endings, id);
		return;
	}
	drop(ending_of(endings, id));
	r3ring_book_ended(book, id);
}

void endings_settle(struct endings *endings, struct follower *follower, struct r3ring_book *book)
{
	struct ending **at = &endings->first;

	while (*at) {
		if (follower_runs(follower, (*at)->id)) {
			at = &(*at)->next;
			continue;
		}
		r3ring_book_ended(book, (*at)->id);
		drop(at);
	}
}

void endings_clear(struct endings *endings)
{
	while (endings->first)
		drop(&endings->first);
}
