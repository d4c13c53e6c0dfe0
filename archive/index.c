/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing the index up to date. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index.h"
#include "archive/index_segment.h"
#include "archive/reader_internal.h"

struct indexing {
	const char *dir;
	struct archive_reader *reader;
	struct index_store *store;
	struct index_tally *tally;
	struct r3ring_error *err;
	struct r3ring_error damage; /* the first; code 0: none */
};

/* ---- one segment ------------------------------------------------------- */

/* Gives the tally what is whole of it. Returns 0, -EBADMSG (there is more that is not), or
 * what ended the reading otherwise. */
static int take_segment(struct indexing *ix, const struct archive_listed *listed,
			struct archive_progress *progress, struct r3ring_error *why)
{
	const struct archive_segment *open = &ix->reader->segment;
	struct archive_item item;
	struct r3ring_error passed = {0};
	bool damaged = false;
	int code = archive_reader_seek(ix->reader, listed->number, &passed);

	/* One behind it in which nothing is new would be passed over, and its end be forgotten. */
	ix->reader->last = listed->number;
	index_tally_segment(ix->tally);
	*progress = (struct archive_progress){.number = listed->number, .bytes = listed->bytes};
	*why = passed;
	if (code)
		return code;
	for (;;) {
		code = archive_reader_next(ix->reader, &item, &passed);
		if (code < 0 && !why->code)
			*why = passed;
		/* Damage behind which the segment goes on. */
		if (code == -EBADMSG && open->fd >= 0 && open->number == listed->number) {
			damaged = true;
			continue;
		}
		if (code != 1 || item.place.segment != listed->number)
			break;
		if (index_tally_take(ix->tally, &item))
			return r3ring_error_set(why, -ENOMEM, "no memory for the index");
	}
	if (ix->reader->segment.fd >= 0 && ix->reader->segment.number == listed->number)
		*progress = archive_reader_progress(ix->reader);
	else if (ix->reader->left.number == listed->number)
		*progress = ix->reader->left;
	/* What follows it is looked at when it is its turn. */
	if (damaged && (code >= 0 || code == -EBADMSG))
		return -EBADMSG;
	return code > 0 || progress->whole ? 0 : code;
}

static int index_segment(struct indexing *ix, const struct archive_listed *listed)
{
	struct archive_progress progress;
	struct index_segment segment;
	struct r3ring_error why = {0};
	int code = take_segment(ix, listed, &progress, &why);

	if (code == -ENOENT)
		return 0; /* rotated out meanwhile */
	if (code && code != -EBADMSG)
		return r3ring_error_set(ix->err, code, "%s", why.text);
	if (code && !ix->damage.code)
		ix->damage = why;
	segment = index_segment_of(&progress, code != 0);
	return index_store_put(ix->store, &segment, ix->tally, ix->err);
}

/* ---- all of them ------------------------------------------------------- */

/* Whether the index has all of the segment. */
static int is_current(struct indexing *ix, const struct archive_listed *listed, bool *current)
{
	struct index_segment known;
	int code = index_store_get_segment(ix->store, listed->number, &known, ix->err);

	*current = code == 1 && known.state == INDEX_SEGMENT_CLOSED && known.bytes == listed->bytes;
	return code < 0 ? code : 0;
}

/*
 * Index of the first segment in the listing that has to be read. Where the index knows of
 * more than are there between the first and that, it is all of them.
 */
static int find_first(struct indexing *ix, uint32_t *first)
{
	const struct archive_listing *listing = &ix->reader->listing;
	bool current = true;
	uint64_t known;
	int code = 0;

	for (*first = 0; *first < listing->count; ++*first) {
		code = is_current(ix, &listing->segments[*first], &current);
		if (code || !current)
			break;
	}
	if (code || !*first)
		return code;
	code = index_store_count(ix->store, listing->segments[0].number,
				 listing->segments[*first - 1].number, &known, ix->err);
	if (known != *first)
		*first = 0;
	return code;
}

static int resume(struct indexing *ix, uint64_t number)
{
	struct index_open *open;
	uint32_t count;
	int code = index_store_get_open(ix->store, number - 1, &open, &count, ix->err);

	if (code)
		return code;
	code = index_tally_set_open(ix->tally, open, count);
	free(open);
	return code ? r3ring_error_set(ix->err, code, "no memory for the index") : 0;
}

static int index_new(struct indexing *ix)
{
	const struct archive_listing *listing = &ix->reader->listing;
	struct archive_listing copy = {.count = listing->count};
	uint32_t at;
	int code = find_first(ix, &at);

	if (code)
		return code;
	if (at < listing->count)
		code = resume(ix, listing->segments[at].number);
	if (!code)
		code = index_store_keep(ix->store, listing->segments[0].number,
					at < listing->count ? listing->segments[at].number
							    : UINT64_MAX >> 1,
					ix->err);
	/* The reader looks at the directory again, and segments come and go meanwhile. */
	copy.segments = malloc(listing->count * sizeof(*listing->segments));
	if (!copy.segments)
		return r3ring_error_set(ix->err, -ENOMEM, "no memory for the index");
	memcpy(copy.segments, listing->segments, listing->count * sizeof(*listing->segments));
	for (; !code && at < copy.count; at++)
		code = index_segment(ix, &copy.segments[at]);
	archive_listing_free(&copy);
	return code;
}

static int is_ours(struct indexing *ix, bool *ours)
{
	uint8_t uuid[16];
	int code = index_store_get_uuid(ix->store, uuid, ix->err);

	*ours = !code && memcmp(uuid, ix->reader->uuid, sizeof(uuid)) == 0;
	return code;
}

static int bring_up(struct indexing *ix, bool anew)
{
	bool ours = anew;
	int code = index_store_open(&ix->store, ix->dir, anew, ix->err);

	if (code)
		return code;
	code = index_store_begin(ix->store, ix->err);
	if (!code && anew)
		code = index_store_set_uuid(ix->store, ix->reader->uuid, ix->err);
	else if (!code)
		code = is_ours(ix, &ours);
	if (!code)
		code = ours ? index_new(ix) : -EBADMSG;
	if (!code)
		code = index_store_commit(ix->store, ix->err);
	index_store_close(ix->store);
	ix->store = NULL;
	return code;
}

/* The tally and what was told begin anew with the file. */
static int make_anew(struct indexing *ix)
{
	index_tally_destroy(ix->tally);
	ix->damage = (struct r3ring_error){0};
	ix->tally = index_tally_create();
	if (!ix->tally)
		return r3ring_error_set(ix->err, -ENOMEM, "no memory for the index");
	return bring_up(ix, true);
}

/* What was there when a new one could not be made is there still. */
static int tell_kept(const struct indexing *ix, int code)
{
	struct r3ring_error why = *ix->err;

	return r3ring_error_set(
		ix->err, code,
		"%s: the index cannot be made: %.300s; what was there is as it was%s", ix->dir,
		why.text[0] ? why.text : strerror(-code),
		code == -ENOSPC || code == -EIO ? ": make room (of the index's size) and try again"
						: "");
}

static int update(struct indexing *ix, bool anew)
{
	int code = archive_reader_open(&ix->reader, ix->dir, ix->err);

	if (code)
		return code;
	ix->reader->endless = true; /* what it knows already is no reason to fail */
	ix->tally = index_tally_create();
	if (!ix->tally)
		return r3ring_error_set(ix->err, -ENOMEM, "no memory for the index");
	code = anew ? -EBADMSG : bring_up(ix, false);
	if (code == -ENOENT || code == -EBADMSG)
		code = make_anew(ix);
	if (code && anew && ix->err)
		return tell_kept(ix, code);
	if (code || !ix->damage.code)
		return code;
	return r3ring_error_set(ix->err, -EBADMSG, "%s", ix->damage.text);
}

static int run(const char *dir, bool anew, struct r3ring_error *err)
{
	struct indexing ix = {.dir = dir, .err = err};
	int code = update(&ix, anew);

	index_store_close(ix.store);
	index_tally_destroy(ix.tally);
	archive_reader_close(ix.reader);
	return code;
}

int archive_index_update(const char *dir, struct r3ring_error *err)
{
	return run(dir, false, err);
}

int archive_index_rebuild(const char *dir, struct r3ring_error *err)
{
	return run(dir, true, err);
}
