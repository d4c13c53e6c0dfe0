/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of one channel: opening, reading, accounts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "channel/reader_label.h"
#include "channel/socket.h"
#include "consumer/internal.h"
#include "consumer/options.h"
#include "ring/cursor.h"

#define OPEN_TIMEOUT_MS 5000
#define ADMISSION_NAP_NS 100000
#define KNOWN_EVERY 64u /* records */

/* Options before there were registered readers. */
#define OPTIONS_LEAST offsetof(struct r3ring_reader_options, unregistered)

/* ---- the page ---------------------------------------------------------- */

void reader_tell_cursor(struct r3ring_reader *reader)
{
	struct r3ring_reader_page *page = reader->now.page;
	struct r3ring_cursor_stats stats;

	if (!page)
		return;
	r3ring_cursor_get_stats(reader->cursor, &stats);
	if (stats.cursor == reader->told_cursor)
		return;
	reader->told_cursor = stats.cursor;
	r3ring_store_relaxed_u64(&page->got, stats.got);
	r3ring_store_relaxed_u64(&page->lost, stats.lost);
	r3ring_store_relaxed_u64(&page->skipped, stats.skipped);
	/* Pairs with the acquire in the gate's follow(): the last use of a view comes
	 * before whatever is stored in its place. */
	r3ring_store_release_u64(&page->cursor, stats.cursor);
	R3RING_TEST_POINT("reader cursor told");
}

void reader_registered(struct r3ring_reader *reader)
{
	reader->told_cursor = 0;
	reader->armed = 0;
	reader->readiness.hung_up = false;
	reader_tell_cursor(reader);
}

static void note_demotion(struct r3ring_reader *reader)
{
	const struct r3ring_reader_page *page = reader->now.page;

	/* Pairs with the release in the gate's demote(). */
	if (!page || reader->mode != R3RING_LOSSLESS || reader->sums.demoted ||
	    r3ring_load_acquire_u32(&page->state) != R3RING_READER_DEMOTED)
		return;
	reader->sums.demoted = 1;
	reader->sums.demoted_from = r3ring_load_relaxed_u64(&page->demoted_from);
	reader->sums.demoted_to = r3ring_load_relaxed_u64(&page->demoted_to);
}

/*
 * What a lossless reader loses, though it is not demoted, nobody kept for it: the present
 * writer does not know of it yet, or keeps for it from a later record on.
 */
static void note_unkept(struct r3ring_reader *reader)
{
	const struct r3ring_reader_page *page = reader->now.page;
	struct r3ring_cursor_stats stats;
	uint64_t more;

	r3ring_cursor_get_stats(reader->cursor, &stats);
	more = stats.lost - reader->seen_lost;
	reader->seen_lost = stats.lost;
	if (!page || reader->mode != R3RING_LOSSLESS)
		return;
	if (!reader->sums.demoted && (follower_unknown(reader) ||
				      stats.gap_from < r3ring_load_relaxed_u64(&page->held_from)))
		reader->sums.unkept += more;
}

/* One that is behind and never idle looks now and then: the word shares a line with
 * others that the writer stores with every step. */
static void stay_known(struct r3ring_reader *reader, const struct r3ring_view *view)
{
	if (view->seq % KNOWN_EVERY == 0 && !reader->stay && follower_unknown(reader))
		follower_look(reader, false);
}

/* ---- opening ----------------------------------------------------------- */

/* A lossless reader begins within what is kept for it, unless it says where. */
static int open_cursor(const struct r3ring_reader *reader, const struct attachment *attachment,
		       enum r3ring_cursor_start from, uint64_t seq, struct r3ring_cursor **cursor)
{
	bool lossless = reader->mode == R3RING_LOSSLESS;
	enum r3ring_cursor_mode mode = lossless ? R3RING_LOSSY : reader->mode;
	struct r3ring_cursor_stats stats;
	uint64_t held;
	int rc;

	if (lossless && from == R3RING_FROM_OLDEST) {
		from = R3RING_FROM_SEQ;
		seq = r3ring_load_relaxed_u64(&attachment->page->held_from);
	}
	rc = r3ring_cursor_open(cursor, attachment->segment, mode, from, seq);
	if (rc || !lossless || from != R3RING_FROM_KEYFRAME)
		return rc;
	held = r3ring_load_relaxed_u64(&attachment->page->held_from);
	r3ring_cursor_get_stats(*cursor, &stats);
	if (stats.start >= held)
		return 0;
	r3ring_cursor_close(*cursor);
	return r3ring_cursor_open(cursor, attachment->segment, mode, R3RING_FROM_SEQ, held);
}

int reader_enter(struct r3ring_reader *reader, struct attachment *attachment,
		 enum r3ring_cursor_start from, uint64_t seq)
{
	uint64_t epoch = attachment->epoch;
	struct r3ring_cursor *cursor;
	int rc = attachment_show(attachment, epoch);

	if (!rc)
		rc = open_cursor(reader, attachment, from, seq, &cursor);
	if (rc)
		return rc;
	r3ring_cursor_close(reader->cursor);
	readiness_drop_connection(&reader->readiness);
	attachment_release(&reader->now);
	reader->cursor = cursor;
	reader->now = *attachment;
	*attachment = (struct attachment){0};
	follower_enter(&reader->follower);
	reader->follower.epoch = epoch;
	reader->end_told = false;
	reader->death_told = false;
	reader->sums.generation = reader->now.generation;
	reader->sums.untaken = r3ring_segment_get_header(reader->now.segment)->untaken;
	memcpy(reader->sums.uuid, reader->now.uuid, sizeof(reader->sums.uuid));
	reader->sums.generations++;
	reader->sums.registered = reader->now.page != NULL;
	reader->sums.demoted = 0;
	reader->seen_lost = 0;
	reader_registered(reader);
	return 0;
}

/* The writer comes by at once where there is work, and is woken where there is none. */
static int await_admission(const struct r3ring_reader *reader, const struct attachment *attachment,
			   struct r3ring_error *err)
{
	const struct timespec nap = {.tv_nsec = ADMISSION_NAP_NS};
	uint64_t end = clock_now_ns() + OPEN_TIMEOUT_MS * 1000000ull;

	while (!attachment_ready(attachment, &reader->target)) {
		if (attachment_abandoned(attachment))
			return r3ring_error_set(
				err, -EPIPE,
				"the daemon of %s went away before it admitted this "
				"reader",
				attachment->name);
		if (clock_now_ns() >= end)
			return r3ring_error_set(
				err, -ETIMEDOUT,
				"the writer of %s did not admit this reader in time",
				attachment->name);
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* A daemon of before refuses who registers; who can do without asks again. */
static int attach(struct r3ring_reader *reader, struct attachment *attachment,
		  struct r3ring_error *err)
{
	struct attach_request request = {.fd = -1};
	int rc = attach_begin(&request, &reader->target, err);

	if (!rc)
		rc = attach_finish(&request, &reader->target, attachment, OPEN_TIMEOUT_MS, err);
	attach_cancel(&request);
	if (rc == -EBADMSG && reader->target.registers && !reader->target.lossless) {
		reader->target.registers = false;
		return attach(reader, attachment, err);
	}
	return rc ? rc : await_admission(reader, attachment, err);
}

static int attach_and_enter(struct r3ring_reader *reader,
			    const struct r3ring_reader_options *options, struct r3ring_error *err)
{
	struct attachment attachment = {0};
	int rc = attach(reader, &attachment, err);

	if (rc) {
		attachment_release(&attachment);
		return rc;
	}
	rc = reader_enter(reader, &attachment, options->from, options->seq);
	if (rc == -ERANGE)
		r3ring_error_set(err, rc,
				 "sequence %llu is not published yet: the newest of %s is %llu",
				 (unsigned long long)options->seq, attachment.name,
				 (unsigned long long)r3ring_segment_tail(attachment.segment));
	else if (rc)
		r3ring_error_set(err, rc, "reading %s: %s", attachment.name, strerror(-rc));
	attachment_release(&attachment);
	return rc;
}

static int check_options(const struct r3ring_reader_options *options, struct r3ring_error *err)
{
	int rc = options_check_start(options->mode, options->from, err);

	if (!rc)
		rc = options_check_switch("stay", options->stay, err);
	if (!rc)
		rc = options_check_switch("unregistered", options->unregistered, err);
	if (rc)
		return rc;
	if (!options->channel)
		return r3ring_error_set(err, -EINVAL, "no channel named; give \"INSTANCE/RANK\"");
	if (options->mode == R3RING_LOSSLESS && options->unregistered)
		return r3ring_error_set(err, -EINVAL,
					"a lossless reader must be registered: the writer waits "
					"only for those that it knows");
	return options->label ? reader_label_check(options->label, err) : 0;
}

static int fill_in(struct r3ring_reader *reader, const struct r3ring_reader_options *options,
		   struct r3ring_error *err)
{
	int rc = channel_name_parse(&reader->target.channel, options->channel, err);

	if (rc)
		return rc;
	follower_init(&reader->follower);
	reader->mode = options->mode;
	reader->stay = options->stay;
	readiness_init(&reader->readiness);
	reader->target.registers = !options->unregistered;
	reader->target.lossless = options->mode == R3RING_LOSSLESS;
	reader->target.limit_bytes = options->limit_bytes;
	reader->target.stall_ms = options->stall_ms;
	if (options->label)
		memcpy(reader->target.label, options->label, strlen(options->label));
	reader->target.generation = options->generation;
	if (!options->runtime_dir)
		return 0;
	reader->runtime_dir = strdup(options->runtime_dir);
	if (!reader->runtime_dir)
		return r3ring_error_set(err, -ENOMEM, "out of memory for a reader");
	reader->target.runtime_dir = reader->runtime_dir;
	return 0;
}

int r3ring_reader_open(struct r3ring_reader **reader, const struct r3ring_reader_options *given,
		       struct r3ring_error *err)
{
	struct r3ring_reader_options all = {0};
	const struct r3ring_reader_options *options = &all;
	struct r3ring_reader *opened;
	int rc;

	if (!reader || !given)
		return r3ring_error_set(err, -EINVAL, "r3ring_reader_open: %s is NULL",
					reader ? "options" : "reader");
	/* What an older caller does not know of is zero. */
	rc = options_copy_known(&all, sizeof(all), OPTIONS_LEAST, given, err);
	if (!rc)
		rc = check_options(options, err);
	if (rc)
		return rc;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "out of memory for a reader");
	rc = fill_in(opened, options, err);
	if (!rc)
		rc = attach_and_enter(opened, options, err);
	if (rc) {
		free(opened->runtime_dir);
		free(opened);
		return rc;
	}
	*reader = opened;
	return 0;
}

void r3ring_reader_close(struct r3ring_reader *reader)
{
	if (!reader)
		return;
	follower_release(&reader->follower);
	r3ring_cursor_close(reader->cursor);
	attachment_release(&reader->now);
	readiness_close(&reader->readiness);
	free(reader->runtime_dir);
	free(reader);
}

/* ---- reading ----------------------------------------------------------- */

/* Numbers in front of one that was gone are not told apart: some may have been no
 * generation's. */
static void note_missed(struct r3ring_reader *reader, uint64_t before)
{
	uint64_t count = reader->now.generation > before ? reader->now.generation - before - 1 : 0;

	if (count <= reader->sums.untaken)
		return;
	count -= reader->sums.untaken;
	reader->missed = true;
	reader->sums.missed += count;
	r3ring_error_set(&reader->err, -EOVERFLOW,
			 "%llu generations in front of %llu were gone before this reader came to "
			 "them; what was published there is not known",
			 (unsigned long long)count, (unsigned long long)reader->now.generation);
}

/* Moves to the next generation; what it has already overwritten counts as lost. */
static int move_on(struct r3ring_reader *reader)
{
	struct attachment next = reader->follower.next;
	uint64_t before = reader->now.generation;
	struct r3ring_cursor_stats stats;
	int rc;

	r3ring_cursor_get_stats(reader->cursor, &stats);
	reader_leave(reader);
	reader->follower.next = (struct attachment){0};
	rc = reader_enter(reader, &next, R3RING_FROM_SEQ,
			  r3ring_segment_get_header(next.segment)->first_seq);
	if (rc) {
		reader->follower.next = next;
		return r3ring_error_set(&reader->err, rc,
					"beginning generation %llu in %s: out of memory",
					(unsigned long long)next.generation, next.name);
	}
	reader->sums.got_before += stats.got;
	reader->sums.lost_before += stats.lost;
	reader->sums.skipped_before += stats.skipped;
	note_missed(reader, before);
	R3RING_TEST_POINT("reader moved on");
	return 0;
}

static void note_corrupt(struct r3ring_reader *reader)
{
	struct r3ring_cursor_stats stats;

	r3ring_cursor_get_stats(reader->cursor, &stats);
	if (stats.lost == reader->seen_lost) {
		r3ring_error_set(&reader->err, -EBADMSG,
				 "segment %s is damaged: the sequence that it says is its newest "
				 "cannot be; nothing is lost by that",
				 reader->now.name);
		return;
	}
	reader->seen_lost = stats.lost;
	reader->sums.corrupt++;
	r3ring_error_set(&reader->err, -EBADMSG,
			 "record %llu of %s is corrupt and counts as lost; its writer is broken",
			 (unsigned long long)stats.gap_to, reader->now.name);
}

int reader_advance(struct r3ring_reader *reader, struct r3ring_view *view)
{
	for (;;) {
		/* Found before the look below, so that nothing can have come after it. */
		bool next_found = reader->follower.next.segment &&
				  attachment_ready(&reader->follower.next, &reader->target);
		int rc;

		if (reader->missed) {
			reader->missed = false;
			return -EOVERFLOW;
		}
		/* One that leaves looks at all that is there. */
		if (next_found)
			cursor_doubt(reader->cursor);
		rc = r3ring_cursor_next(reader->cursor, view);

		reader_tell_cursor(reader);
		note_demotion(reader);
		if (rc == 1) {
			follower_note(&reader->follower, view);
			stay_known(reader, view);
		}
		if (rc == -EOVERFLOW)
			note_unkept(reader);
		if (rc == -EBADMSG)
			note_corrupt(reader);
		if (rc != 0 && rc != -EPIPE)
			return rc;
		if (next_found) {
			rc = move_on(reader);
			if (rc)
				return rc;
		} else if (reader->stay) {
			return rc;
		} else if (!follower_look(reader, rc == -EPIPE)) {
			/* An end that names what follows is no end before the daemon says so. */
			return reader->follower.promised ? 0 : rc;
		}
	}
}

int r3ring_reader_next(struct r3ring_reader *reader, struct r3ring_view *view)
{
	int rc;

	if (reader->found) {
		reader->found = false;
		rc = reader->found_code;
		if (rc == 1)
			*view = reader->found_view;
	} else {
		rc = reader_advance(reader, view);
	}
	reader->view_open = rc == 1;
	if (rc == -EPIPE)
		reader->end_told = true;
	return rc;
}

int r3ring_reader_check(struct r3ring_reader *reader)
{
	int rc;

	if (!reader->view_open)
		return -EINVAL;
	reader->view_open = false;
	rc = r3ring_cursor_check(reader->cursor);
	reader_tell_cursor(reader);
	note_demotion(reader);
	if (rc == -EOVERFLOW)
		note_unkept(reader);
	return rc;
}

int r3ring_reader_read(struct r3ring_reader *reader, struct r3ring_view *view, void *buffer,
		       size_t capacity)
{
	struct r3ring_view found;
	int rc = r3ring_reader_next(reader, &found);

	if (rc != 1)
		return rc;
	if (found.len > capacity) {
		reader->found = true;
		reader->found_code = 1;
		reader->found_view = found;
		reader->view_open = false;
		*view = found;
		view->data = NULL;
		return -EMSGSIZE;
	}
	if (found.len)
		memcpy(buffer, found.data, found.len);
	rc = r3ring_reader_check(reader);
	if (rc)
		return rc;
	*view = found;
	view->data = buffer;
	return 1;
}

/* ---- accounts ---------------------------------------------------------- */

size_t r3ring_reader_max_record(const struct r3ring_reader *reader)
{
	return r3ring_segment_max_record(reader->now.segment);
}

void r3ring_reader_get_stats(const struct r3ring_reader *reader, struct r3ring_reader_stats *stats)
{
	*stats = reader->sums;
	r3ring_cursor_get_stats(reader->cursor, &stats->now);
}

const char *r3ring_reader_segment(const struct r3ring_reader *reader)
{
	return reader->now.name;
}

const char *r3ring_reader_error(const struct r3ring_reader *reader)
{
	return reader->err.text;
}
