/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many records the files that are there have. Blocks count all that ever were, so it takes
 * where the first of these files begins.
 */
#include "archive/entry.h"
#include "archive/segment.h"
#include "archive/store.h"

/* Records of the archive in front of a segment. False: it cannot be read. */
static bool count_before(const struct store *store, uint64_t number, uint64_t *before)
{
	struct archive_segment segment = {.fd = -1};
	struct archive_content content;
	bool read = archive_segment_open(&segment, store->dir_fd, number, NULL) == 0 &&
		    archive_segment_next(&segment, NULL) == 1 &&
		    !archive_entries_check(segment.entries, segment.block.raw,
					   segment.block.entries, &content);

	if (read)
		*before = segment.block.records - content.records;
	archive_segment_free(&segment);
	return read;
}

static bool has_all(const struct segment_files *files)
{
	return files->files[files->count - 1].number - files->files[0].number == files->count - 1;
}

void store_count_begin(struct store *store)
{
	const struct segment_files *files = &store->files;

	store->before = 0;
	store->countable = true;
	if (files->count)
		store->countable = has_all(files) &&
				   count_before(store, files->files[0].number, &store->before);
}

uint64_t store_count_removed(struct store *store)
{
	const struct segment_files *files = &store->files;
	const uint64_t before = store->before;

	if (store->fd >= 0 && files->count == 1)
		store->before = store->segment_before;
	else if (store->countable)
		store->countable = count_before(store, files->files[0].number, &store->before);
	return store->countable ? store->before - before : 0;
}

void store_count_tell(const struct store *store, struct archive_writer_stats *stats)
{
	stats->archive_segments = store->files.count;
	stats->archive_counted = store->countable;
	stats->archive_records = store->countable ? store->written.records - store->before : 0;
}
