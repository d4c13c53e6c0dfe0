/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that live, for who wants to see them before they are given out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "consumer/assembler/assembled.h"
#include "consumer/assembler/assembler.h"

/* Of those that have the id the one of which something was said last. */
static struct request *newest_of(const struct r3ring_assembler *assembler, const char *id)
{
	struct request *first, *newest;

	HASH_FIND(hh, assembler->requests, id, strlen(id), first);
	newest = first;
	for (struct request *request = first; request; request = request->same)
		if (request_touched_at(request) > request_touched_at(newest))
			newest = request;
	return newest;
}

int r3ring_assembler_look(struct r3ring_assembler *assembler, const char *id,
			  struct r3ring_assembled **assembled)
{
	struct request *request = newest_of(assembler, id);
	struct r3ring_assembled *made;

	if (!request)
		return -ENOENT;
	made = assembled_make(assembler, request, R3RING_ASSEMBLED_UNFINISHED);
	if (!made)
		return -ENOMEM;
	made->looked = true;
	*assembled = made;
	return 0;
}

static int by_touch(const void *a, const void *b)
{
	const struct request *one = *(struct request *const *)a;
	const struct request *other = *(struct request *const *)b;

	const uint64_t its = request_touched_at(one), others = request_touched_at(other);

	return (its < others) - (its > others);
}

int r3ring_assembler_live(const struct r3ring_assembler *assembler, const char **ids, uint32_t most)
{
	const uint64_t count = assembler->stats.requests_live;
	struct request **all = malloc((count ? count : 1) * sizeof(struct request *));
	struct request *request;
	uint32_t found = 0;

	if (!all)
		return -ENOMEM;
	DL_FOREACH(assembler->all, request)
	{
		all[found++] = request;
	}
	qsort(all, found, sizeof(struct request *), by_touch);
	if (found > most)
		found = most;
	for (uint32_t i = 0; i < found; i++)
		ids[i] = all[i]->text[0];
	free(all);
	return (int)found;
}
