/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop above its implementations. Events name their source by a number
 * that is never used twice, so that an event which arrives after its source
 * was removed finds nobody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#include "capture_daemon/log.h"
#include "capture_daemon/loop_backend.h"

struct loop_entry {
	uint64_t id;
	struct loop_source *source;
	UT_hash_handle hh;
};

struct loop {
	const struct loop_backend *backend;
	void *state;
	struct loop_entry *entries; /* by id */
	uint64_t last_id;
};

int loop_create(struct loop **loop)
{
	struct loop *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return -ENOMEM;
	made->backend = &loop_backend_uring;
	r = made->backend->create(&made->state);
	if (r < 0) {
		log_info("io_uring is not available (%s): the control loop runs on epoll",
			 strerror(-r));
		made->backend = &loop_backend_epoll;
		r = made->backend->create(&made->state);
	}
	if (r < 0) {
		free(made);
		return r;
	}
	*loop = made;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	struct loop_entry *entry, *next;

	if (!loop)
		return;
	HASH_ITER (hh, loop->entries, entry, next) {
		HASH_DEL(loop->entries, entry);
		free(entry);
	}
	loop->backend->destroy(loop->state);
	free(loop);
}

const char *loop_name(const struct loop *loop)
{
	return loop->backend->name;
}

static struct loop_entry *loop_find(struct loop *loop, uint64_t id)
{
	struct loop_entry *entry;

	HASH_FIND(hh, loop->entries, &id, sizeof(id), entry);
	return entry;
}

int loop_add(struct loop *loop, struct loop_source *source)
{
	struct loop_entry *entry = calloc(1, sizeof(*entry));
	int r;

	if (!entry)
		return -ENOMEM;
	source->id = ++loop->last_id;
	entry->id = source->id;
	entry->source = source;
	HASH_ADD(hh, loop->entries, id, sizeof(entry->id), entry);
	r = entry->hh.tbl ? loop->backend->arm(loop->state, source) : -ENOMEM;
	if (r == 0)
		return 0;
	if (entry->hh.tbl)
		HASH_DEL(loop->entries, entry);
	free(entry);
	source->id = 0;
	return r;
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	struct loop_entry *entry = loop_find(loop, source->id);

	if (!entry)
		return;
	loop->backend->disarm(loop->state, source);
	HASH_DEL(loop->entries, entry);
	free(entry);
	source->id = 0;
}

int loop_modify(struct loop *loop, struct loop_source *source, uint32_t events)
{
	if (source->id && source->events == events)
		return 0;
	loop_remove(loop, source);
	source->events = events;
	return loop_add(loop, source);
}

void loop_dispatch(struct loop *loop, uint64_t id, uint32_t events)
{
	struct loop_entry *entry = loop_find(loop, id);
	int r;

	if (!entry)
		return;
	entry->source->ready(entry->source, events);
	if (!loop->backend->one_shot)
		return;
	entry = loop_find(loop, id); /* it may have been removed meanwhile */
	if (!entry)
		return;
	r = loop->backend->arm(loop->state, entry->source);
	if (r < 0)
		log_error("descriptor %d cannot be watched any more: %s", entry->source->fd,
			  strerror(-r));
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	return loop->backend->wait(loop->state, loop, timeout_ms);
}
