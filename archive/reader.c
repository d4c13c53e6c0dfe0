/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader: segments one after the other, block by block. Only one block is held.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/channels.h"
#include "archive/entry.h"
#include "archive/listing.h"
#include "archive/missing.h"
#include "archive/reader.h"
#include "archive/reader_internal.h"
#include "archive/segment.h"
#include "archive/skip.h"

/* What a recorder has under way at the end of its segment at most. */
#define IN_FLIGHT_MAX (64ull << 20)

#define AGAIN 2 /* of the functions below: nothing to give yet, go on */

/* ---- which segment comes next ------------------------------------------ */

static int list(struct archive_reader *reader, struct r3ring_error *err)
{
	struct archive_listing listing;
	int code = archive_listing_read(&listing, reader->dir_fd);

	if (code)
		return r3ring_error_set(err, code, "its directory cannot be read: %s",
					strerror(-code));
	archive_listing_free(&reader->listing);
	reader->listing = listing;
	return 0;
}

/* The segment behind the newest one that was begun; NULL: there is none. */
static const struct archive_listed *following(const struct archive_reader *reader)
{
	uint32_t at = archive_listing_from(&reader->listing, reader->after + 1);

	return at < reader->listing.count ? &reader->listing.segments[at] : NULL;
}

struct archive_progress archive_reader_progress(const struct archive_reader *reader)
{
	const struct archive_segment *segment = &reader->segment;

	if (segment->fd < 0)
		return reader->left;
	return (struct archive_progress){
		.number = segment->number,
		.bytes = segment->bytes,
		.first_ns = segment->head.created_ns,
		.last_ns = segment->start ? segment->block.time_ns : segment->head.created_ns,
		.blocks = segment->chain.number - 1,
		.records = segment->chain.records,
		.closed = segment->closed,
	};
}

/* Segments in front of the one that is open, or all that were begun. */
static void note_passed(struct archive_reader *reader)
{
	uint64_t end = reader->after + (reader->segment.fd < 0);

	reader->passed = 0;
	for (uint32_t i = 0; i < archive_listing_from(&reader->listing, end); i++)
		reader->passed += reader->listing.segments[i].bytes;
}

/* The segment is done with, whole or not. */
static void leave(struct archive_reader *reader)
{
	reader->left = archive_reader_progress(reader);
	reader->left.whole = reader->whole;
	archive_segment_close(&reader->segment);
	reader->entries_left = 0;
	note_passed(reader);
}

/* Damage, told in @err: goes on with the next segment. */
static int give_up(struct archive_reader *reader)
{
	archive_channels_doubt(reader->channels, true);
	if (reader->segment.fd >= 0) {
		reader->damaged = archive_unread_of(&reader->segment);
		archive_unread_add(&reader->unread, &reader->damaged);
		leave(reader);
	} else {
		note_passed(reader);
	}
	reader->whole = false;
	reader->broken = true;
	reader->looked_again = false;
	return -EBADMSG;
}

/* The same of a block, behind which the segment may be gone on with. */
static int give_up_block(struct archive_reader *reader)
{
	const struct archive_unread *damaged = &reader->damaged;

	if (!archive_segment_skip(&reader->segment, reader->ready, &reader->damaged))
		return give_up(reader);
	archive_channels_doubt(reader->channels, true);
	archive_channels_unsettle(reader->channels, damaged->state,
				  damaged->blocks == 1 && !damaged->records && !damaged->unsized);
	reader->unsettled |= damaged->state;
	archive_unread_add(&reader->unread, &reader->damaged);
	reader->broken = true;
	reader->looked_again = false;
	return -EBADMSG;
}

/*
 * Something at the end of the newest segment is not whole: that is so while a recorder is
 * at work. One that ended just now has written the rest: then it is looked at once more.
 * Returns 0 (wait for more), AGAIN, or -EBADMSG.
 */
static int judge_end(struct archive_reader *reader)
{
	bool near = reader->segment.fd < 0 ||
		    reader->segment.bytes - reader->segment.offset <= IN_FLIGHT_MAX;

	if (near && archive_is_being_written(reader->dir_fd))
		return 0;
	if (reader->looked_again)
		return reader->segment.fd >= 0 ? give_up_block(reader) : give_up(reader);
	reader->looked_again = true;
	return AGAIN;
}

static bool is_newest(const struct archive_reader *reader)
{
	return !following(reader);
}

/* The index has all of a segment behind the newest one. */
static int miss_newest(struct archive_reader *reader, uint64_t missing, struct r3ring_error *err)
{
	reader->endless = true;
	archive_refuse(err, -EBADMSG, missing, 0,
		       "is not there, but the index knows it: restore it from a copy; r3ring "
		       "verify --reindex makes an index without it");
	return give_up(reader);
}

static int refuse_end(struct archive_reader *reader, const char *why, struct r3ring_error *err)
{
	archive_refuse(err, -EBADMSG, reader->segment.number, reader->segment.offset,
		       "the archive ends without having been closed: its recorder was killed, or "
		       "%s; r3ring verify --close ends it here, or the next r3ring record goes on "
		       "from here",
		       why);
	return judge_end(reader);
}

/* The newest segment was read to its end, which says so. */
static int end_archive(struct archive_reader *reader, struct r3ring_error *err)
{
	uint64_t missing = 0;

	reader->chain = reader->segment.chain;
	reader->whole = true;
	/* A recorder adds segments, and the index hears of them, while this looks. */
	if (!reader->endless && !archive_is_being_written(reader->dir_fd))
		missing = archive_missing_newest(&reader->listing, reader->dir, reader->uuid);
	if (missing)
		return miss_newest(reader, missing, err);
	return reader->segment.more
		       ? refuse_end(reader, "the segment that follows was removed", err)
		       : 0;
}

/* ---- beginning a segment ----------------------------------------------- */

static int check_place(const struct archive_reader *reader, const struct archive_segment *segment,
		       struct r3ring_error *err)
{
	const struct archive_segment_head *head = &segment->head;

	if (head->number != segment->number)
		return archive_refuse(err, -EBADMSG, segment->number, 0,
				      "is segment %" PRIu64 " by its head: it was renamed; give it "
				      "its name back",
				      head->number);
	if (memcmp(head->uuid, reader->uuid, sizeof(head->uuid)) != 0)
		return archive_refuse(err, -EBADMSG, segment->number, 0,
				      "is of another archive: remove it from here");
	if ((head->number == 1) != (head->first_block == 1) || !head->first_block ||
	    (head->number == 1) != (head->previous_hash == 0))
		return archive_refuse(err, -EBADMSG, segment->number, 0,
				      "cannot begin with block %" PRIu64, head->first_block);
	return 0;
}

static bool follows(const struct archive_reader *reader, const struct archive_segment_head *head)
{
	return !reader->whole || (head->first_block == reader->chain.number &&
				  head->previous_hash == reader->chain.hash);
}

static void begin_segment(struct archive_reader *reader)
{
	struct archive_segment *segment = &reader->segment;

	if (reader->whole)
		segment->chain.records = reader->chain.records;
	segment->chain.records_known = reader->whole || segment->number == 1;
	reader->continued = reader->whole && !reader->broken;
	reader->resuming = reader->broken;
	reader->after = segment->number;
	reader->whole = reader->broken = reader->looked_again = reader->ready = false;
	reader->unsettled = false;
	archive_channels_forget(reader->channels);
	note_passed(reader);
}

/* It could not be opened: is it being made, was it rotated out, or is it damaged? */
static int not_opened(struct archive_reader *reader, uint64_t number, int code)
{
	if (code == -ENOENT)
		return AGAIN;
	if (code != -ENODATA && code != -EBADMSG && code != -EPROTO)
		return code;
	if (code == -ENODATA &&
	    number == reader->listing.segments[reader->listing.count - 1].number) {
		code = judge_end(reader);
		if (code != -EBADMSG)
			return code;
	}
	reader->after = number;
	return give_up(reader);
}

static int open_segment(struct archive_reader *reader, const struct archive_listed *next,
			struct r3ring_error *err)
{
	uint64_t number = next->number;
	int code = archive_segment_open(&reader->segment, reader->dir_fd, number, err);

	if (code)
		return not_opened(reader, number, code);
	code = check_place(reader, &reader->segment, err);
	if (code) {
		reader->after = number;
		return give_up(reader);
	}
	if (!follows(reader, &reader->segment.head)) {
		archive_refuse(err, -EBADMSG, number, 0,
			       "does not follow the segment before it, of which blocks are missing "
			       "at its end: restore that one from a copy");
		archive_segment_close(&reader->segment);
		return give_up(reader);
	}
	begin_segment(reader);
	return AGAIN;
}

static int miss_beginning(struct archive_reader *reader, struct r3ring_error *err)
{
	reader->headless = false;
	archive_refuse(err, -EBADMSG, 1, 0,
		       "is not there, but %" PRIu64 " is, and nothing says that the oldest were "
		       "removed for want of room: restore it from a copy",
		       reader->listing.segments[0].number);
	return give_up(reader);
}

static int next_segment(struct archive_reader *reader, struct r3ring_error *err)
{
	const struct archive_listed *next;
	int code = list(reader, err);

	if (code)
		return code;
	next = following(reader);
	if (!next || (reader->last && next->number > reader->last))
		return 0;
	if (reader->headless)
		return miss_beginning(reader, err);
	if (!reader->anywhere && next->number != reader->after + 1) {
		archive_refuse(err, -EBADMSG, reader->after + 1, 0,
			       "is not there, but %" PRIu64
			       " is: restore it from a copy, or it was "
			       "removed for want of room while this was read",
			       next->number);
		reader->after = next->number - 1;
		return give_up(reader);
	}
	reader->anywhere = false;
	return open_segment(reader, next, err);
}

/* ---- blocks ------------------------------------------------------------ */

static int end_segment(struct archive_reader *reader, struct r3ring_error *err)
{
	int code = list(reader, err);

	if (code)
		return code;
	if (is_newest(reader))
		return reader->segment.closed ? end_archive(reader, err)
					      : refuse_end(reader, "the file was cut", err);
	reader->chain = reader->segment.chain;
	reader->whole = true;
	leave(reader);
	return AGAIN;
}

static int next_block(struct archive_reader *reader, struct r3ring_error *err)
{
	int code = archive_segment_next(&reader->segment, err);

	switch (code) {
	case 1:
		reader->looked_again = false;
		reader->at = 0;
		reader->entry = 0;
		reader->entries_left = reader->segment.block.entries;
		return AGAIN;
	case 0:
		return end_segment(reader, err);
	case -ENODATA:
	case -EBADMSG:
		if (!reader->segment.closed && !list(reader, NULL) && is_newest(reader))
			return judge_end(reader);
		return give_up_block(reader);
	default:
		return code;
	}
}

/* ---- interface --------------------------------------------------------- */

int archive_reader_next(struct archive_reader *reader, struct archive_item *item,
			struct r3ring_error *err)
{
	int code = AGAIN;

	reader->damaged = (struct archive_unread){0};
	while (code == AGAIN) {
		if (reader->gap_owed || reader->entries_left) {
			code = archive_reader_take(reader, item, err);
			if (code == -EBADMSG)
				give_up(reader);
		} else if (reader->segment.fd >= 0) {
			code = next_block(reader, err);
		} else {
			code = next_segment(reader, err);
		}
	}
	if (code == 0 && !archive_is_being_written(reader->dir_fd))
		code = archive_reader_take_rest(reader, item);
	if (code == -EBADMSG)
		archive_unread_tell(&reader->damaged, err);
	return code;
}

/* Any segment that can be read says which archive this is. */
static int find_uuid(struct archive_reader *reader, struct r3ring_error *err)
{
	struct r3ring_error other;
	int code = -EBADMSG;

	for (uint32_t i = 0; i < reader->listing.count; i++) {
		int found = archive_segment_open(&reader->segment, reader->dir_fd,
						 reader->listing.segments[i].number,
						 i ? &other : err);

		if (!found) {
			memcpy(reader->uuid, reader->segment.head.uuid, sizeof(reader->uuid));
			archive_segment_close(&reader->segment);
			return 0;
		}
		code = i ? code : found;
	}
	return code == -ENODATA ? -EBADMSG : code;
}

static int open_reader(struct archive_reader *reader, const char *dir, struct r3ring_error *err)
{
	int code;

	reader->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (reader->dir_fd < 0)
		return r3ring_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	reader->channels = archive_channels_create();
	if (!reader->channels)
		return r3ring_error_set(err, -ENOMEM, "no memory to read an archive");
	reader->dir = strdup(dir);
	if (!reader->dir)
		return r3ring_error_set(err, -ENOMEM, "no memory to read an archive");
	code = list(reader, err);
	if (!code && !reader->listing.count)
		code = r3ring_error_set(err, -ENOENT,
					"%s: no archive is there (no file 00000001" ARCHIVE_SUFFIX
					" or later)",
					dir);
	if (!code)
		code = find_uuid(reader, err);
	if (!code)
		reader->headless = reader->lacks_beginning =
			archive_lacks_beginning(&reader->listing, reader->dir_fd);
	return code;
}

int archive_reader_open(struct archive_reader **reader, const char *dir, struct r3ring_error *err)
{
	struct archive_reader *opened = calloc(1, sizeof(*opened));
	int code;

	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "no memory to read an archive");
	opened->segment.fd = -1;
	opened->anywhere = true;
	code = open_reader(opened, dir, err);
	if (code) {
		archive_reader_close(opened);
		return code;
	}
	*reader = opened;
	return 0;
}

void archive_reader_read_ahead(struct archive_reader *reader)
{
	if (!reader->segment.ahead)
		reader->segment.ahead = archive_ahead_create();
}

void archive_reader_close(struct archive_reader *reader)
{
	if (!reader)
		return;
	archive_segment_free(&reader->segment);
	archive_listing_free(&reader->listing);
	archive_channels_destroy(reader->channels);
	if (reader->dir_fd >= 0)
		close(reader->dir_fd);
	free(reader->dir);
	free(reader);
}

int archive_reader_seek(struct archive_reader *reader, uint64_t number, struct r3ring_error *err)
{
	struct archive_segment sought = {.fd = -1};
	int code = list(reader, err);

	if (code)
		return code;
	code = archive_segment_open(&sought, reader->dir_fd, number, err);
	if (!code)
		code = check_place(reader, &sought, err);
	archive_segment_free(&sought);
	if (code)
		return code == -ENODATA || code == -EPROTO ? -EBADMSG : code;
	if (reader->segment.fd >= 0)
		leave(reader);
	reader->after = number - 1;
	reader->anywhere = true;
	reader->headless = false;
	reader->whole = reader->broken = reader->gap_owed = false;
	archive_channels_doubt(reader->channels, false);
	note_passed(reader);
	return 0;
}

void archive_reader_get_extent(const struct archive_reader *reader, struct archive_extent *extent)
{
	const struct archive_listing *listing = &reader->listing;

	*extent = (struct archive_extent){
		.first_segment = listing->segments[0].number,
		.last_segment = listing->segments[listing->count - 1].number,
		.lacks_beginning = reader->lacks_beginning,
	};
	memcpy(extent->uuid, reader->uuid, sizeof(extent->uuid));
	for (uint32_t i = 0; i < listing->count; i++)
		extent->bytes += listing->segments[i].bytes;
}

uint64_t archive_reader_passed(const struct archive_reader *reader)
{
	return reader->passed + (reader->segment.fd >= 0 ? reader->segment.offset : 0);
}

const struct archive_unread *archive_reader_unread(const struct archive_reader *reader)
{
	return &reader->unread;
}
