/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: their beginning and end, and the room there is for them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "archive/block.h"
#include "archive/listing.h"
#include "archive/store.h"
#include "channel/clock.h"

#define LAST_SPAN sizeof(struct archive_block_head) /* of a block without entries */

/* ---- failing ------------------------------------------------------------ */

static uint64_t archive_bytes(const struct store *store)
{
	return store->files.bytes + (store->fd < 0 ? 0 : store->written_to);
}

/* What a new segment needs that has all that had no room in this one: @repeated bytes say
 * again what must be known. */
static uint64_t bytes_to_resume(const struct store *store, uint64_t repeated)
{
	return sizeof(struct archive_segment_head) + LAST_SPAN + repeated + store->unwritten_bytes;
}

static void say_full(struct store *store, const char *dir, uint64_t repeated)
{
	struct statvfs fs;
	unsigned long long free = 0, unit = 1024, wanted = bytes_to_resume(store, repeated);

	if (fstatvfs(store->dir_fd, &fs) == 0) {
		free = (unsigned long long)fs.f_bavail * fs.f_frsize;
		unit = fs.f_frsize;
	}
	wanted = (wanted + unit - 1) / unit * unit;
	r3ring_error_set(&store->err, -ENOSPC,
			 "%s: the disk is full: the archive is whole and has %llu KiB, %llu KiB "
			 "are free; %llu bytes could not be written (%llu records). At least %llu "
			 "KiB must be free to go on: make room and record into it again, or give "
			 "--max-size with --rotate",
			 dir, (unsigned long long)archive_bytes(store) >> 10, free >> 10,
			 (unsigned long long)store->unwritten_bytes,
			 (unsigned long long)store->unwritten_records, (wanted + 1023) >> 10);
}

static void say(struct store *store, int code, const char *what)
{
	char path[PATH_MAX];
	const char *dir = archive_dir_path(store->options.dir, store->dir_fd, path);

	dir = dir ? dir : store->options.dir;
	if (code == -ENOSPC)
		say_full(store, dir, 0);
	else if (code == -EDQUOT && store->options.max_bytes)
		r3ring_error_set(&store->err, code,
				 "%s: the archive is as large as it may be (%llu bytes)", dir,
				 (unsigned long long)store->options.max_bytes);
	else if (code == -EFBIG)
		r3ring_error_set(&store->err, code,
				 "%s: %s: a file may not be as large: raise ulimit -f, or give a "
				 "smaller --segment-size",
				 dir, what);
	else if (code == -EMSGSIZE)
		r3ring_error_set(&store->err, code, "%s: %s", dir, what);
	else if (code == -ESTALE)
		r3ring_error_set(&store->err, code,
				 "%s: the archive was removed while it was written, and what it "
				 "held is gone: record into a directory that is left alone",
				 dir);
	else
		r3ring_error_set(&store->err, code, "%s: %s: %s", dir, what, strerror(-code));
}

/* The first one counts. */
void store_fail(struct store *store, int code, const char *what)
{
	if (store_failed(store))
		return;
	say(store, code, what);
	/* Pairs with the acquire in store_failed(). */
	r3ring_store_release_u32(&store->failed, 1);
}

void store_say_full(struct store *store, uint64_t repeated)
{
	char path[PATH_MAX];
	const char *dir = archive_dir_path(store->options.dir, store->dir_fd, path);

	if (store_failed(store) == -ENOSPC)
		say_full(store, dir ? dir : store->options.dir, repeated);
}

/* An open file goes on being written long after its last name is gone. */
static bool is_removed(int fd)
{
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && status.st_nlink == 0;
}

void store_notice_removal(struct store *store)
{
	if (is_removed(store->dir_fd) || is_removed(store->fd))
		store_fail(store, -ESTALE, "");
}

/* ---- room --------------------------------------------------------------- */

/* The one that is written stays. */
static bool remove_oldest(struct store *store)
{
	uint64_t records;
	int r;

	if (!store->options.rotate || store->files.count < 2)
		return false;
	r = segment_files_drop_first(&store->files, store->dir_fd);
	if (r < 0) {
		store_fail(store, r, "removing the oldest segment");
		return false;
	}
	records = store_count_removed(store);
	pthread_mutex_lock(&store->lock);
	store->stats.removed_segments++;
	store->stats.removed_records += records;
	pthread_mutex_unlock(&store->lock);
	return true;
}

/* At its limit an archive ends, unless it is to rotate, or nothing is in it, nor on the way. */
static void fail_at_limit(struct store *store, uint64_t wanted)
{
	uint64_t limit = store->options.max_bytes;
	char what[128];

	if (!store->options.rotate && store->given.records) {
		store_fail(store, -EDQUOT, "");
		return;
	}
	snprintf(what, sizeof(what),
		 "%llu bytes are too few for what comes: give a --max-size of at least %llu",
		 (unsigned long long)limit, 2ull * (wanted > limit ? wanted : limit));
	store_fail(store, -EMSGSIZE, what);
}

bool store_has_room(struct store *store, uint64_t span)
{
	uint64_t limit = store->options.max_bytes;
	uint64_t wanted = store->offset + span + LAST_SPAN;

	while (limit && store->files.bytes + wanted > limit) {
		if (!remove_oldest(store)) {
			fail_at_limit(store, wanted);
			return false;
		}
	}
	return true;
}

/* ---- beginning ---------------------------------------------------------- */

static struct archive_segment_head make_head(const struct store *store, uint64_t number)
{
	struct archive_segment_head head = {
		.magic = ARCHIVE_MAGIC,
		.version = ARCHIVE_VERSION,
		.bytes = sizeof(head),
		.number = number,
		.first_block = store->given.block + 1,
		.previous_hash = store->given.hash,
		.level = (uint32_t)store->options.level,
		.layer_first = store->options.layer_first,
		.layer_end = store->options.layer_end,
		.flags = store->options.rotate ? ARCHIVE_SEGMENT_ROTATES : 0,
		.writer = "r3ring " R3RING_VERSION,
	};

	head.created_ns = clock_real_ns();
	memcpy(head.uuid, store->uuid, sizeof(head.uuid));
	archive_segment_seal(&head);
	return head;
}

static int write_head(struct store *store, uint64_t number)
{
	struct archive_segment_head head = make_head(store, number);
	ssize_t count = pwrite(store->fd, &head, sizeof(head), 0);

	if (count != (ssize_t)sizeof(head))
		return count < 0 ? -errno : -ENOSPC;
	store->offset = sizeof(head);
	store->written_to = sizeof(head);
	store->given.state = store->written.state = 0;
	/* Whatever the policy: blocks without a head are damage, blocks without a name none. */
	return fdatasync(store->fd) < 0 || fsync(store->dir_fd) < 0 ? -errno : 0;
}

static int make_segment(struct store *store)
{
	size_t count = store->files.count;
	uint64_t number = count ? store->files.files[count - 1].number + 1 : 1;
	char name[ARCHIVE_NAME_MAX];
	int r;

	store->written_to = 0;
	store->pushed_to = 0;
	store->segment_before = store->given.records;
	archive_segment_name(name, number);
	store->fd = openat(store->dir_fd, name,
			   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (store->fd < 0)
		return -errno;
	r = segment_files_add(&store->files, number, 0);
	if (r == 0)
		r = write_head(store, number);
	pthread_mutex_lock(&store->lock);
	if (r == 0)
		store->stats.segment = number;
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* A block without entries: it says that its segment was closed, and that all before it had
 * been synced, so that damage there is never taken for the end of a recorder that died. */
static int write_last(struct store *store, uint32_t flags)
{
	struct archive_block_head head = {
		.magic = ARCHIVE_BLOCK_MAGIC,
		.flags = ARCHIVE_BLOCK_LAST | flags,
		.number = store->written.block + 1,
		.records = store->written.records,
		.previous_hash = store->written.hash,
		.state = store->written.state,
		.synced = store->synced_block,
		.stored_hash = archive_hash("", 0),
	};
	ssize_t count;

	head.time_ns = clock_real_ns();
	archive_block_seal(&head);
	count = pwrite(store->fd, &head, sizeof(head), (off_t)store->written_to);
	if (count != (ssize_t)sizeof(head))
		return count < 0 ? -errno : -ENOSPC;
	store->end = (struct store_end){
		.segment = store->files.files[store->files.count - 1].number,
		.offset = store->written_to,
		.head = head,
	};
	store->written.block = head.number;
	store->written.hash = head.head_hash;
	store->written.flags = head.flags;
	store->written_to += LAST_SPAN;
	store->offset = store->written_to;
	store->given = store->written;
	return 0;
}

static int close_segment(struct store *store)
{
	struct segment_file *file;
	int r = fdatasync(store->fd) < 0 ? -errno : 0;

	if (close(store->fd) < 0 && r == 0)
		r = -errno;
	store->fd = -1;
	if (r < 0)
		return r;
	file = &store->files.files[store->files.count - 1];
	file->bytes = store->offset;
	store->files.bytes += store->offset;
	store->offset = 0;
	store->synced_block = store->written.block;
	pthread_mutex_lock(&store->lock);
	store->stats.synced_records = store->stats.stored_records;
	store->stats.archive_bytes = store->files.bytes;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

/* Whatever the policy: only the newest segment may ever be other than whole. */
static int end_segment(struct store *store, uint32_t flags)
{
	int r = fdatasync(store->fd) < 0 ? -errno : 0;

	if (r < 0)
		return r;
	store->synced_block = store->written.block;
	r = write_last(store, flags);
	return r < 0 ? r : close_segment(store);
}

/* The segment that was to follow does not. Where that cannot be said any more, readers tell
 * that it is missing, and the next recorder goes on. */
static void unsay_more(struct store *store)
{
	struct store_end *end = &store->end;
	char name[ARCHIVE_NAME_MAX];
	int fd;

	if (!(end->head.flags & ARCHIVE_BLOCK_MORE))
		return;
	fd = openat(store->dir_fd, archive_segment_name(name, end->segment),
		    O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	end->head.flags &= ~(uint32_t)ARCHIVE_BLOCK_MORE;
	archive_block_seal(&end->head);
	if (pwrite(fd, &end->head, sizeof(end->head), (off_t)end->offset) > 0)
		fdatasync(fd);
	close(fd);
}

bool store_begin_segment(struct store *store)
{
	int r = store->fd >= 0 ? end_segment(store, ARCHIVE_BLOCK_MORE) : 0;

	if (r < 0)
		store_fail(store, r, "ending a segment");
	else if (store_has_room(store, sizeof(struct archive_segment_head))) {
		r = make_segment(store);
		if (r < 0)
			store_fail(store, r, "beginning a segment");
	}
	if (store_failed(store) && store->fd < 0)
		unsay_more(store);
	return !store_failed(store);
}

/* ---- the end ------------------------------------------------------------ */

/* A segment with nothing whole in it is none. */
static void cut(struct store *store)
{
	char name[ARCHIVE_NAME_MAX];

	if (store->written_to > sizeof(struct archive_segment_head)) {
		if (ftruncate(store->fd, (off_t)store->written_to) < 0)
			store_fail(store, -errno, "cutting a segment");
		return;
	}
	archive_segment_name(name, store->files.files[store->files.count - 1].number);
	if (unlinkat(store->dir_fd, name, 0) < 0) {
		store_fail(store, -errno, "removing a segment");
	} else {
		store->files.count--;
		unsay_more(store);
	}
	close(store->fd);
	store->fd = -1;
}

/* On a full disk there may be no room for the mark: then the next recorder finds that
 * this one did not end in good order, and nothing else. */
static void mark_after_failure(struct store *store)
{
	if (write_last(store, 0) == 0)
		return;
	store->offset = store->written_to;
	if (ftruncate(store->fd, (off_t)store->written_to) < 0)
		store_fail(store, -errno, "cutting a segment");
}

void store_finish(struct store *store)
{
	int r;

	store_notice_removal(store);
	if (store->fd >= 0 && !store_failed(store)) {
		r = end_segment(store, 0);
		if (r < 0)
			store_fail(store, r, "ending the archive");
	}
	if (store->fd >= 0)
		cut(store);
	if (store->fd < 0)
		return;
	mark_after_failure(store);
	r = close_segment(store);
	if (r < 0)
		store_fail(store, r, "ending the archive");
}
