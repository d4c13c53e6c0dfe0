/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/missing.h"

#include <string.h>

#include "archive/index_store.h"
#include "archive/segment.h"

bool archive_lacks_beginning(const struct archive_listing *listing, int dir_fd)
{
	struct archive_segment segment = {.fd = -1};
	bool rotates = false;

	if (!listing->count || listing->segments[0].number == 1)
		return false;
	for (uint32_t i = 0; i < listing->count && !rotates; i++) {
		if (archive_segment_open(&segment, dir_fd, listing->segments[i].number, NULL) == 0)
			rotates = segment.head.flags & ARCHIVE_SEGMENT_ROTATES;
	}
	archive_segment_free(&segment);
	return !rotates;
}

uint64_t archive_missing_segment(const struct archive_listing *listing, int dir_fd)
{
	if (archive_lacks_beginning(listing, dir_fd))
		return 1;
	for (uint32_t i = 1; i < listing->count; i++) {
		uint64_t next = listing->segments[i - 1].number + 1;

		if (listing->segments[i].number != next)
			return next;
	}
	return 0;
}

uint64_t archive_missing_newest(const struct archive_listing *listing, const char *dir,
				const uint8_t uuid[16])
{
	struct index_store *store;
	uint64_t newest = 0;
	uint8_t its_uuid[16];

	if (!listing->count || index_store_open(&store, dir, false, NULL))
		return 0;
	if (index_store_get_uuid(store, its_uuid, NULL) ||
	    memcmp(its_uuid, uuid, sizeof(its_uuid)) != 0 ||
	    index_store_newest_closed(store, &newest, NULL))
		newest = 0;
	index_store_close(store);
	return newest > listing->segments[listing->count - 1].number ? newest : 0;
}
