/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#include "producer/live_handles.h"

struct live_handles {
	UT_hash_handle hh;
	uint64_t handle;
};

static struct live_handles *find(const struct live_handles *handles, uint64_t handle)
{
	struct live_handles *found;

	HASH_FIND(hh, handles, &handle, sizeof(handle), found);
	return found;
}

int live_handles_add(struct live_handles **handles, uint64_t handle)
{
	struct live_handles *added = calloc(1, sizeof(*added));
	unsigned int before = HASH_COUNT(*handles);

	if (!added)
		return -ENOMEM;
	added->handle = handle;
	HASH_ADD(hh, *handles, handle, sizeof(handle), added);
	if (HASH_COUNT(*handles) > before)
		return 0;
	free(added);
	return -ENOMEM;
}

bool live_handles_have(const struct live_handles *handles, uint64_t handle)
{
	return find(handles, handle) != NULL;
}

void live_handles_remove(struct live_handles **handles, uint64_t handle)
{
	struct live_handles *found = find(*handles, handle);

	if (!found)
		return;
	HASH_DEL(*handles, found);
	free(found);
}

void live_handles_clear(struct live_handles **handles)
{
	struct live_handles *each, *next;

	HASH_ITER (hh, *handles, each, next) {
		HASH_DEL(*handles, each);
		free(each);
	}
}
