/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the end of an archive. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "archive/listing.h"
#include "archive/missing.h"
#include "archive/resume.h"
#include "archive/segment_scan.h"

/* What is decided before anything is changed. */
struct decision {
	size_t drop;    /* segments from the end that say nothing new, or nothing at all */
	uint64_t whole; /* bytes to which the last of the others is cut */
	uint64_t cut;   /* how many bytes go in all */
};

static int refuse(const struct resume_options *options, uint64_t number, int code, const char *what,
		  struct r3ring_error *err)
{
	char name[ARCHIVE_NAME_MAX];

	return r3ring_error_set(err, code, "%s/%s: %s", options->dir,
				archive_segment_name(name, number), what);
}

static int check_layers(const struct resume_options *options, const struct segment_scan *scan,
			struct r3ring_error *err)
{
	const struct archive_segment_head *head = &scan->head;
	char keeps[48] = "all layers: leave --layers out", what[128];

	if (!scan->has_head ||
	    (head->layer_first == options->layer_first && head->layer_end == options->layer_end))
		return 0;
	if (head->layer_end)
		snprintf(keeps, sizeof(keeps), "other layers: give --layers %u:%u",
			 head->layer_first, head->layer_end);
	snprintf(what, sizeof(what), "this archive keeps %s, or record into another directory",
		 keeps);
	return refuse(options, scan->number, -EPROTO, what, err);
}

static int scan_file(const struct resume_options *options, struct segment_scan *scan,
		     struct channel_states *states, struct r3ring_error *err)
{
	struct r3ring_error why = {0};
	int r = segment_scan(scan, options->dir_fd, states, &why);

	if (r < 0)
		return r3ring_error_set(err, r, "%s: %.400s", options->dir,
					why.text[0] ? why.text : strerror(-r));
	r = check_layers(options, scan, err);
	if (r == 0 && scan->damaged)
		r = refuse(options, scan->number, -EBADMSG,
			   "damaged where it had been synced; nothing was changed: r3ring "
			   "verify says what is wrong, record into another directory",
			   err);
	return r;
}

/* From the end to the first segment with something to say. */
static int decide(struct resume *resume, const struct resume_options *options,
		  struct decision *decision, struct r3ring_error *err)
{
	const struct segment_files *files = &resume->start.files;

	*decision = (struct decision){0};
	while (decision->drop < files->count) {
		struct segment_scan scan = {
			.number = files->files[files->count - 1 - decision->drop].number,
		};
		int r;

		channel_states_release(&resume->states);
		r = scan_file(options, &scan, &resume->states, err);
		if (r < 0)
			return r;
		decision->whole = scan.whole;
		if (scan.ready) {
			const struct archive_block_head *last = &scan.last;

			decision->cut += scan.bytes - scan.whole;
			resume->closed = !decision->cut && last->flags & ARCHIVE_BLOCK_LAST &&
					 !(last->flags & ARCHIVE_BLOCK_MORE);
			resume->resumed.stopped_ns = last->time_ns;
			memcpy(resume->start.uuid, scan.head.uuid, sizeof(scan.head.uuid));
			resume->start.chain = (struct store_chain){
				.block = last->number,
				.hash = last->head_hash,
				.records = last->records,
				.flags = last->flags,
			};
			return 0;
		}
		decision->cut += scan.bytes + scan.cut_before;
		decision->drop++;
	}
	channel_states_release(&resume->states);
	return 0;
}

/*
 * What is missing in front can be restored whatever is written behind. A segment behind the
 * newest could not: its number would be taken.
 */
static int look_for_missing(struct resume *resume, const struct resume_options *options,
			    struct r3ring_error *err)
{
	struct archive_listing listing;
	uint64_t newest;
	int r = archive_listing_read(&listing, options->dir_fd);

	if (r < 0)
		return r3ring_error_set(err, r, "%s: %s", options->dir, strerror(-r));
	resume->missing = archive_missing_segment(&listing, options->dir_fd);
	newest = archive_missing_newest(&listing, options->dir, resume->start.uuid);
	archive_listing_free(&listing);
	if (!newest)
		return 0;
	return refuse(options, newest, -EBADMSG,
		      "is not there, but the index knows it: restore it from a copy, say that it "
		      "is gone with r3ring verify --reindex, or record into another directory",
		      err);
}

static int cut_last(const struct resume *resume, const struct resume_options *options,
		    const struct decision *decision)
{
	struct segment_file *last = &resume->start.files.files[resume->start.files.count - 1];
	char name[ARCHIVE_NAME_MAX];
	int fd, r;

	fd = openat(options->dir_fd, archive_segment_name(name, last->number),
		    O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	r = ftruncate(fd, (off_t)decision->whole) < 0 ? -errno : 0;
	/* Not only the cut: what is gone on from must be there first. */
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	close(fd);
	return r;
}

static int apply(struct resume *resume, const struct resume_options *options,
		 const struct decision *decision, struct r3ring_error *err)
{
	struct segment_files *files = &resume->start.files;
	int r = 0;

	for (size_t i = 0; r == 0 && i < decision->drop; i++)
		r = segment_files_drop_last(files, options->dir_fd);
	if (r == 0 && files->count) {
		struct segment_file *last = &files->files[files->count - 1];

		r = cut_last(resume, options, decision);
		files->bytes -= last->bytes - decision->whole;
		last->bytes = decision->whole;
	}
	if (r == 0 && fsync(options->dir_fd) < 0)
		r = -errno;
	if (r < 0)
		r3ring_error_set(err, r, "%s: cutting what is not whole: %s", options->dir,
				 strerror(-r));
	resume->resumed.cut_bytes = decision->cut;
	return r;
}

int archive_resume(struct resume *resume, const struct resume_options *options,
		   struct r3ring_error *err)
{
	struct decision decision;
	int r;

	*resume = (struct resume){0};
	r = segment_files_list(&resume->start.files, options->dir_fd);
	if (r < 0)
		return r3ring_error_set(err, r, "%s: %s", options->dir, strerror(-r));
	r = decide(resume, options, &decision, err);
	if (r == 0)
		r = look_for_missing(resume, options, err);
	if (r == 0)
		r = apply(resume, options, &decision, err);
	if (r < 0)
		archive_resume_release(resume);
	else
		resume->found = resume->start.files.count > 0;
	return r;
}

void archive_resume_release(struct resume *resume)
{
	segment_files_release(&resume->start.files);
	channel_states_release(&resume->states);
}
