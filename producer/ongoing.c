/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#include "producer/ongoing.h"

struct ongoing_request {
	UT_hash_handle hh; /* by `handle` while it lives, then by `id` */
	uint64_t handle;
	uint64_t first;
	bool several; /* another one of the id was preempted as well */
	uint16_t id_len;
	char id[];
};

/* ---- live ones ------------------------------------------------------------- */

static struct ongoing_request *live_find(const struct ongoing *ongoing, uint64_t handle)
{
	struct ongoing_request *found;

	HASH_FIND(hh, ongoing->live, &handle, sizeof(handle), found);
	return found;
}

int ongoing_begin(struct ongoing *ongoing, uint64_t handle, uint64_t first, const char *id,
		  size_t id_len)
{
	struct ongoing_request *added = calloc(1, sizeof(*added) + id_len);
	unsigned int before = HASH_COUNT(ongoing->live);

	if (!added)
		return -ENOMEM;
	added->handle = handle;
	added->first = first;
	added->id_len = (uint16_t)id_len;
	memcpy(added->id, id, id_len);
	HASH_ADD(hh, ongoing->live, handle, sizeof(handle), added);
	if (HASH_COUNT(ongoing->live) > before)
		return 0;
	free(added);
	return -ENOMEM;
}

bool ongoing_lives(const struct ongoing *ongoing, uint64_t handle)
{
	return live_find(ongoing, handle) != NULL;
}

/* ---- those that were preempted --------------------------------------------- */

static struct ongoing_request *preempted_find(const struct ongoing *ongoing, const char *id,
					      size_t id_len)
{
	struct ongoing_request *found;

	HASH_FIND(hh, ongoing->preempted, id, id_len, found);
	return found;
}

static void table_clear(struct ongoing_request **table)
{
	struct ongoing_request *each, *next;

	HASH_ITER (hh, *table, each, next) {
		HASH_DEL(*table, each);
		free(each);
	}
}

/* An engine need not say that it gave up a preempted one, so they may become ever more. */
static void forget_preempted(struct ongoing *ongoing)
{
	table_clear(&ongoing->preempted);
	ongoing->forgot = true;
}

/* @request: in no table; taken over. */
static void preempt(struct ongoing *ongoing, struct ongoing_request *request)
{
	struct ongoing_request *same = preempted_find(ongoing, request->id, request->id_len);
	unsigned int before = HASH_COUNT(ongoing->preempted);

	if (same)
		same->several = true;
	else if (!ongoing->forgot && before < ONGOING_PREEMPTED_MAX)
		HASH_ADD_KEYPTR(hh, ongoing->preempted, request->id, request->id_len, request);
	if (HASH_COUNT(ongoing->preempted) > before)
		return;
	free(request);
	if (!same)
		forget_preempted(ongoing);
}

void ongoing_end(struct ongoing *ongoing, uint64_t handle, bool preempted)
{
	struct ongoing_request *ended = live_find(ongoing, handle);

	if (!ended)
		return;
	HASH_DEL(ongoing->live, ended);
	if (preempted)
		preempt(ongoing, ended);
	else
		free(ended);
}

uint64_t ongoing_first(const struct ongoing *ongoing, const char *id, size_t id_len)
{
	const struct ongoing_request *found = preempted_find(ongoing, id, id_len);

	return found && !found->several ? found->first : 0;
}

void ongoing_resume(struct ongoing *ongoing, uint64_t first, const char *id, size_t id_len)
{
	struct ongoing_request *found = preempted_find(ongoing, id, id_len);

	if (!found || found->several || found->first != first)
		return;
	HASH_DEL(ongoing->preempted, found);
	free(found);
}

void ongoing_clear(struct ongoing *ongoing)
{
	table_clear(&ongoing->live);
	table_clear(&ongoing->preempted);
}
