/* SPDX-License-Identifier: Apache-2.0 */
/* What was run of requests: what is run again is no load of theirs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/load/load.h"

static struct load_watched *by_handle(const struct load_watch *watch, uint64_t handle)
{
	struct load_watched *found;

	HASH_FIND(by_handle, watch->by_handle, &handle, sizeof(handle), found);
	return found;
}

static struct load_watched *by_id(const struct load_watch *watch, const char *id, size_t len)
{
	struct load_watched *found;

	HASH_FIND(by_id, watch->by_id, id, len, found);
	return found;
}

static void forget(struct load_watch *watch, struct load_watched *one)
{
	if (watch->by_handle && by_handle(watch, one->handle) == one)
		HASH_DELETE(by_handle, watch->by_handle, one);
	if (watch->by_id && by_id(watch, one->id, strlen(one->id)) == one)
		HASH_DELETE(by_id, watch->by_id, one);
	free(one->id);
	free(one);
}

void load_watch_clear(struct load_watch *watch)
{
	struct load_watched *one, *next;

	HASH_ITER (by_handle, watch->by_handle, one, next) {
		forget(watch, one);
	}
}

/* Both tables or none. */
static int enlist(struct load_watch *watch, struct load_watched *one)
{
	HASH_ADD(by_handle, watch->by_handle, handle, sizeof(one->handle), one);
	HASH_ADD_KEYPTR(by_id, watch->by_id, one->id, strlen(one->id), one);
	if (by_handle(watch, one->handle) == one && by_id(watch, one->id, strlen(one->id)) == one)
		return 0;
	forget(watch, one);
	return -ENOMEM;
}

static int begin_new(struct load_watch *watch, const struct r3ring_record *record,
		     const struct load_ran *ran)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct load_watched *one = by_handle(watch, head->handle);

	if (one)
		forget(watch, one);
	if (HASH_CNT(by_handle, watch->by_handle) >= watch->most) {
		/* Iteration is in the order of insertion: the head is the oldest. */
		forget(watch, watch->by_handle);
		watch->forgotten++;
	}
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	one->id = strndup(record->u.request.id, head->id_len);
	if (!one->id) {
		free(one);
		return -ENOMEM;
	}
	one->handle = head->handle;
	one->attempt = head->attempt;
	one->ran = *ran;
	return enlist(watch, one);
}

/* Where nobody said what was kept of an attempt, it is what the next one is fed. */
static struct load_ran ran_before(const struct load_watched *former,
				  const struct r3ring_request_record *head)
{
	struct load_ran ran = former->ran;

	if (!former->cut)
		load_ran_cut(&ran, head->prompt_tokens);
	return ran;
}

static int begin(struct load_watch *watch, const struct r3ring_record *record, bool repeated)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct load_watched *former = by_id(watch, record->u.request.id, head->id_len);
	struct load_ran ran = {0};

	if (former && repeated && former->handle == head->handle &&
	    former->attempt == head->attempt)
		return 0;
	/* Else it is another request with the same text id. */
	if (former && (head->attempt > former->attempt || repeated))
		ran = ran_before(former, head);
	if (former)
		forget(watch, former);
	return begin_new(watch, record, &ran);
}

static void end(struct load_watch *watch, const struct r3ring_request_record *head)
{
	struct load_watched *one = by_handle(watch, head->handle);

	if (!one)
		return;
	if (head->reason != R3RING_END_PREEMPTED) {
		forget(watch, one);
		return;
	}
	if (head->accepted_tokens == R3RING_UNKNOWN_U32)
		return;
	one->cut = true;
	load_ran_cut(&one->ran, head->accepted_tokens);
}

int load_watch_request(struct load_watch *watch, const struct r3ring_record *record, bool repeated)
{
	if (record->u.request.head.event == R3RING_REQUEST_BEGIN)
		return begin(watch, record, repeated);
	end(watch, &record->u.request.head);
	return 0;
}

const struct load_ran *load_watch_ran(const struct load_watch *watch, uint64_t handle)
{
	static const struct load_ran nothing;
	const struct load_watched *one = by_handle(watch, handle);

	return one ? &one->ran : &nothing;
}

void load_watch_add(struct load_watch *watch, uint64_t handle, uint32_t from, uint32_t end)
{
	struct load_watched *one = by_handle(watch, handle);

	if (one)
		load_ran_add(&one->ran, from, end);
}
