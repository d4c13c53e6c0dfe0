/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which text id a request handle stands for. What is not known for certain is
 * not attributed: no name before the generation's beginning or a whole keyframe
 * was seen, and none that was said two different things of.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <r3ring/reader.h>

#define REQUESTS_MAX (1u << 20)

struct request {
	uint64_t handle;
	uint64_t keyframe; /* number of the newest keyframe that named it */
	bool contradicted; /* two ids were claimed for it */
	UT_hash_handle hh;
	char id[]; /* NUL-terminated */
};

/* A keyframe of which not all records were seen yet. */
struct keyframe_progress {
	uint64_t next_seq;
	uint32_t left; /* records that are still to come, 0 when there is none */
	bool abridged; /* it leaves out live requests */
};

struct r3ring_requests {
	struct request *live;
	struct request *ended; /* still to be attributed until the next keyframe */
	uint64_t generation;
	uint64_t keyframes; /* begun so far */
	struct keyframe_progress progress;
	bool ready;
};

/* ---- the two tables ---------------------------------------------------- */

static struct request *find(struct request *table, uint64_t handle)
{
	struct request *request;

	HASH_FIND(hh, table, &handle, sizeof(handle), request);
	return request;
}

static void forget(struct request **table, struct request *request)
{
	HASH_DEL(*table, request);
	free(request);
}

static void forget_all(struct request **table)
{
	struct request *request, *next;

	HASH_ITER (hh, *table, request, next) {
		forget(table, request);
	}
}

/* On failure the request is gone. */
static int insert(struct request **table, struct request *request)
{
	unsigned int before = HASH_COUNT(*table);

	HASH_ADD(hh, *table, handle, sizeof(request->handle), request);
	if (HASH_COUNT(*table) > before)
		return 0;
	free(request);
	return -ENOMEM;
}

/* Iteration is in the order of insertion, so the head is the oldest. */
static int make_room(struct r3ring_requests *requests)
{
	if (HASH_COUNT(requests->live) + HASH_COUNT(requests->ended) < REQUESTS_MAX)
		return 0;
	if (requests->ended)
		forget(&requests->ended, requests->ended);
	else
		forget(&requests->live, requests->live);
	return -ENOBUFS;
}

/* ---- records ----------------------------------------------------------- */

static bool same_id(const struct request *request, const char *id, size_t len)
{
	return strlen(request->id) == len && memcmp(request->id, id, len) == 0;
}

static int add(struct r3ring_requests *requests, uint64_t handle, const char *id, size_t len)
{
	struct request *request = malloc(sizeof(*request) + len + 1);
	int rc, room;

	if (!request)
		return -ENOMEM;
	memset(request, 0, sizeof(*request));
	request->handle = handle;
	request->keyframe = requests->keyframes;
	memcpy(request->id, id, len);
	request->id[len] = '\0';
	room = make_room(requests);
	rc = insert(&requests->live, request);
	return rc ? rc : room;
}

/* Known already: said again by a keyframe, or begun anew after a preemption. */
static int begin_known(struct r3ring_requests *requests, struct request *request, const char *id,
		       size_t len)
{
	request->keyframe = requests->keyframes;
	if (!same_id(request, id, len))
		request->contradicted = true;
	if (find(requests->live, request->handle))
		return 0;
	HASH_DEL(requests->ended, request);
	return insert(&requests->live, request);
}

static int begin(struct r3ring_requests *requests, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct request *known = find(requests->live, head->handle);

	if (!known)
		known = find(requests->ended, head->handle);
	if (known)
		return begin_known(requests, known, record->u.request.id, head->id_len);
	return add(requests, head->handle, record->u.request.id, head->id_len);
}

static int end(struct r3ring_requests *requests, uint64_t handle)
{
	struct request *request = find(requests->live, handle);

	if (!request)
		return 0;
	HASH_DEL(requests->live, request);
	return insert(&requests->ended, request);
}

static int feed_request(struct r3ring_requests *requests, const struct r3ring_record *record)
{
	if (record->u.request.head.event == R3RING_REQUEST_BEGIN)
		return begin(requests, record);
	return end(requests, record->u.request.head.handle);
}

/* ---- keyframes and generations ----------------------------------------- */

/* Who is not in it has ended, be it in a gap. */
static void forget_unnamed(struct r3ring_requests *requests)
{
	struct request *request, *next;

	HASH_ITER (hh, requests->live, request, next) {
		if (request->keyframe != requests->keyframes)
			forget(&requests->live, request);
	}
}

/* All of it was seen. Of those that it may have left out nothing is learned: a handle is no other
 * request's. */
static void keyframe_complete(struct r3ring_requests *requests)
{
	if (!requests->progress.abridged)
		forget_unnamed(requests);
	forget_all(&requests->ended);
	requests->ready = true;
}

static void keyframe_begin(struct r3ring_requests *requests, const struct r3ring_view *view,
			   const struct r3ring_record *record)
{
	requests->keyframes++;
	requests->progress.next_seq = view->seq + 1;
	requests->progress.left = record->u.keyframe.records;
	requests->progress.abridged = view->flags & R3RING_DESC_ABRIDGED;
	if (requests->progress.left == 0)
		keyframe_complete(requests);
}

static void keyframe_go_on(struct r3ring_requests *requests, const struct r3ring_view *view)
{
	struct keyframe_progress *progress = &requests->progress;

	if (progress->left == 0)
		return;
	if (view->seq != progress->next_seq || !(view->flags & R3RING_DESC_REPEATED)) {
		progress->left = 0;
		return;
	}
	progress->next_seq++;
	if (--progress->left == 0)
		keyframe_complete(requests);
}

static void forget_generation(struct r3ring_requests *requests)
{
	forget_all(&requests->live);
	forget_all(&requests->ended);
	requests->progress.left = 0;
	requests->ready = false;
}

static bool is_beginning(const struct r3ring_view *view)
{
	return view->type == R3RING_SCHEMA && view->seq == 1 &&
	       !(view->flags & R3RING_DESC_REPEATED);
}

/* ---- interface --------------------------------------------------------- */

struct r3ring_requests *r3ring_requests_create(void)
{
	return calloc(1, sizeof(struct r3ring_requests));
}

void r3ring_requests_destroy(struct r3ring_requests *requests)
{
	if (!requests)
		return;
	forget_generation(requests);
	free(requests);
}

int r3ring_requests_feed(struct r3ring_requests *requests, const struct r3ring_view *view,
			 const struct r3ring_record *record)
{
	int rc = 0;

	if (view->generation != requests->generation) {
		forget_generation(requests);
		requests->generation = view->generation;
	}
	if (is_beginning(view))
		requests->ready = true;
	if (record->type == R3RING_REQUEST)
		rc = feed_request(requests, record);
	if (record->type == R3RING_KEYFRAME)
		keyframe_begin(requests, view, record);
	else
		keyframe_go_on(requests, view);
	return rc;
}

void r3ring_requests_gap(struct r3ring_requests *requests)
{
	requests->progress.left = 0;
}

const char *r3ring_requests_id(const struct r3ring_requests *requests, uint64_t handle)
{
	const struct request *request;

	if (!requests->ready)
		return NULL;
	request = find(requests->live, handle);
	if (!request)
		request = find(requests->ended, handle);
	return request && !request->contradicted ? request->id : NULL;
}

bool r3ring_requests_runs(const struct r3ring_requests *requests, const char *id)
{
	for (const struct request *request = requests->live; request; request = request->hh.next)
		if (strcmp(request->id, id) == 0)
			return true;
	return false;
}

bool r3ring_requests_ready(const struct r3ring_requests *requests)
{
	return requests->ready;
}
