/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: the handles of requests, old and new. */
#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#include "tools/replay.h"

#define NOBODYS (1ull << 62) /* producers count their handles up from 1 */

struct replay_handles {
	UT_hash_handle hh;
	uint64_t old, handle;
	bool ended;
};

static struct replay_handles *find(const struct replay_handles *handles, uint64_t old)
{
	struct replay_handles *found;

	HASH_FIND(hh, handles, &old, sizeof(old), found);
	return found;
}

uint64_t replay_handle(const struct replay_handles *handles, uint64_t old)
{
	const struct replay_handles *found = find(handles, old);

	return found ? found->handle : NOBODYS | old;
}

bool replay_handle_known(const struct replay_handles *handles, uint64_t old)
{
	return find(handles, old) != NULL;
}

int replay_handle_add(struct replay_handles **handles, uint64_t old, uint64_t handle)
{
	struct replay_handles *added = malloc(sizeof(*added));
	unsigned int before = HASH_COUNT(*handles);

	if (!added)
		return -ENOMEM;
	memset(added, 0, sizeof(*added));
	added->old = old;
	added->handle = handle;
	HASH_ADD(hh, *handles, old, sizeof(old), added);
	if (HASH_COUNT(*handles) > before)
		return 0;
	free(added);
	return -ENOMEM;
}

void replay_handle_remove(struct replay_handles **handles, uint64_t old)
{
	struct replay_handles *found = find(*handles, old);

	if (!found)
		return;
	HASH_DEL(*handles, found);
	free(found);
}

void replay_handle_end(struct replay_handles *handles, uint64_t old)
{
	struct replay_handles *found = find(handles, old);

	if (found)
		found->ended = true;
}

uint64_t replay_handles_live(const struct replay_handles *handles)
{
	uint64_t live = 0;

	for (; handles; handles = handles->hh.next)
		live += !handles->ended;
	return live;
}

void replay_handles_free(struct replay_handles **handles)
{
	struct replay_handles *each, *next;

	HASH_ITER (hh, *handles, each, next) {
		HASH_DEL(*handles, each);
		free(each);
	}
}
