/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/verify_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index.h"
#include "archive/index_segment.h"

struct verify_index {
	const struct archive_reader *reader;
	const struct archive_verify_hooks *hooks;
	struct archive_verified *verified;
	struct index_store *store; /* NULL: there is none that could be compared */
	struct index_tally *tally;
	uint64_t segment; /* that the tally is of; 0: none yet */
	uint64_t damaged; /* the newest one of which not all could be read */
	bool standalone;  /* nobody has read the one before, or not all of it */
};

static void tell(struct verify_index *index, const char *text)
{
	index->verified->problems++;
	index->hooks->problem(index->hooks->ctx, text);
}

/* It cannot be read, and once is enough. */
static void give_up(struct verify_index *index, const struct r3ring_error *why)
{
	tell(index, why->text);
	index_store_close(index->store);
	index->store = NULL;
}

static bool is_ours(const struct verify_index *index, const uint8_t uuid[16])
{
	return memcmp(uuid, index->reader->uuid, sizeof(index->reader->uuid)) == 0;
}

/* While a recorder is at work the index is behind, or not there yet, or being made: its
 * tables are there before it says whose it is. One of another archive the recorder sees,
 * too, and makes it anew. */
static void open_store(struct verify_index *index, const char *dir)
{
	struct r3ring_error why = {0};
	uint8_t uuid[16];
	int code = index_store_open(&index->store, dir, false, &why);

	if (code && index->verified->being_written)
		return;
	if (!code)
		code = index_store_get_uuid(index->store, uuid, &why);
	if (!code && !is_ours(index, uuid) && index->verified->being_written) {
		index_store_close(index->store);
		index->store = NULL;
		return;
	}
	if (!code && !is_ours(index, uuid))
		code = r3ring_error_set(&why, -EBADMSG,
					ARCHIVE_INDEX " is of another archive: make it anew with "
						      "r3ring verify --reindex");
	if (code)
		give_up(index, &why);
}

struct verify_index *verify_index_open(const char *dir, const struct archive_reader *reader,
				       const struct archive_verify_hooks *hooks,
				       struct archive_verified *verified)
{
	struct verify_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	*index = (struct verify_index){.reader = reader,
				       .hooks = hooks,
				       .verified = verified,
				       .standalone = true,
				       .tally = index_tally_create()};
	if (!index->tally) {
		free(index);
		return NULL;
	}
	open_store(index, dir);
	return index;
}

void verify_index_close(struct verify_index *index)
{
	if (!index)
		return;
	index_store_close(index->store);
	index_tally_destroy(index->tally);
	free(index);
}

/* ---- comparing --------------------------------------------------------- */

/* Whether the index says that it has all of the segment as it is now. */
static bool is_current(struct verify_index *index, const struct archive_listed *listed)
{
	struct index_segment known;
	struct r3ring_error why = {0};
	int code = index_store_get_segment(index->store, listed->number, &known, &why);

	if (code < 0)
		give_up(index, &why);
	if (code == 1 && known.bytes == listed->bytes)
		return true;
	if (code < 0 || index->verified->being_written)
		return false;
	r3ring_error_set(&why, 0,
			 ARCHIVE_INDEX " is behind: it %s segment %" PRIu64
				       "; r3ring verify --reindex makes it anew",
			 code ? "has only a part of" : "does not have", listed->number);
	tell(index, why.text);
	return false;
}

/* How far the segment was read. */
static struct archive_progress progress_of(const struct verify_index *index)
{
	const struct archive_reader *reader = index->reader;

	return reader->segment.fd >= 0 && reader->segment.number == index->segment
		       ? archive_reader_progress(reader)
		       : reader->left;
}

/* What is open at its end is known to who read all that is in front of it. */
static int compare_segment(struct verify_index *index, struct r3ring_error *why)
{
	struct archive_progress progress = progress_of(index);
	struct index_segment segment = index_segment_of(&progress, false);
	bool all = !index->standalone && !index->verified->problems;

	if (progress.number != index->segment || segment.state != INDEX_SEGMENT_CLOSED)
		return 0;
	return index_segment_compare(index->store, &segment, all ? index->tally : NULL, why);
}

/* The segment was read, all of it or what is in front of damage. */
static int compare(struct verify_index *index)
{
	const struct archive_listing *listing = &index->reader->listing;
	uint32_t at = archive_listing_from(listing, index->segment);
	struct r3ring_error why = {0};
	int code = 0;

	if (!index->store || index->damaged == index->segment || at == listing->count ||
	    listing->segments[at].number != index->segment)
		return 0;
	if (is_current(index, &listing->segments[at])) {
		code = compare_segment(index, &why);
		if (!code)
			code = index_store_compare(index->store, index->segment, index->tally,
						   index->standalone, &why);
		if (!code && index->standalone && index->segment > 1)
			code = index_segment_adopt(index->store, index->segment, index->tally,
						   &why);
	}
	if (code == -ENOMEM)
		return code;
	if (code < 0)
		give_up(index, &why);
	else if (code)
		tell(index, why.text);
	return 0;
}

/* Begins with a segment; those that were passed over said nothing of a request. */
static int begin_segment(struct verify_index *index, uint64_t number)
{
	int code = 0;

	if (index->segment)
		code = compare(index);
	index->standalone = !index->segment || !index->reader->continued;
	if (index->standalone)
		index_tally_forget_open(index->tally);
	index_tally_segment(index->tally);
	index->segment = number;
	return code;
}

void verify_index_damage(struct verify_index *index)
{
	index->damaged = index->reader->after;
}

int verify_index_take(struct verify_index *index, const struct archive_item *item)
{
	int code = 0;

	if (item->place.segment != index->segment)
		code = begin_segment(index, item->place.segment);
	return code ? code : index_tally_take(index->tally, item);
}

/* ---- what only the index has ------------------------------------------- */

static void compare_rest(struct verify_index *index)
{
	const struct archive_listing *listing = &index->reader->listing;
	struct r3ring_error why = {0};
	int code = index_segment_compare_rest(index->store, listing->segments[0].number, &why);

	if (code < 0)
		give_up(index, &why);
	else if (code)
		tell(index, why.text);
}

int verify_index_finish(struct verify_index *index)
{
	int code = index->segment ? compare(index) : 0;

	/* A recorder that removes the oldest has not told the index yet. */
	if (!code && index->store && !index->verified->being_written)
		compare_rest(index);
	return code;
}
