/* SPDX-License-Identifier: Apache-2.0 */
#include "report/given_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

struct given_up_request {
	char *id;
	UT_hash_handle hh;
};

static struct given_up_request *find(const struct given_up *given_up, const char *id, size_t len)
{
	struct given_up_request *request;

	HASH_FIND(hh, given_up->requests, id, len, request);
	return request;
}

static void drop(struct given_up *given_up, struct given_up_request *request)
{
	HASH_DEL(given_up->requests, request);
	free(request->id);
	free(request);
}

static int add(struct given_up *given_up, const char *id)
{
	struct given_up_request *request = calloc(1, sizeof(*request));
	const unsigned int before = HASH_COUNT(given_up->requests);

	if (!request)
		return -ENOMEM;
	request->id = strdup(id);
	if (request->id)
		HASH_ADD_KEYPTR(hh, given_up->requests, request->id, strlen(id), request);
	if (HASH_COUNT(given_up->requests) > before)
		return 0;
	free(request->id);
	free(request);
	return -ENOMEM;
}

void given_up_note(struct given_up *given_up, const struct r3ring_view *view,
		   const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct given_up_request *request;

	/* Said again, or in another attempt, it goes on. */
	if (record->type != R3RING_REQUEST || head->event != R3RING_REQUEST_BEGIN ||
	    view->flags & R3RING_DESC_REPEATED || head->attempt)
		return;
	request = find(given_up, record->u.request.id, head->id_len);
	if (request)
		drop(given_up, request);
}

int given_up_take(struct given_up *given_up, const struct r3ring_assembled_info *info)
{
	struct given_up_request *before = find(given_up, info->id, strlen(info->id));

	if (info->flags & R3RING_ASSEMBLED_EVICTED)
		return before ? 1 : add(given_up, info->id);
	if (!before)
		return 0;
	drop(given_up, before); /* this was its end */
	return 1;
}

void given_up_free(struct given_up *given_up)
{
	struct given_up_request *request, *next;

	HASH_ITER (hh, given_up->requests, request, next) {
		drop(given_up, request);
	}
}
