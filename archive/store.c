/* SPDX-License-Identifier: Apache-2.0 */
/* Writing blocks. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "archive/block.h"
#include "archive/store.h"
#include "channel/clock.h"

#define WAIT_MS 1000
#define MS_NS 1000000ull
#define TAG_SYNC UINT64_MAX
#define TAG_PUSH (UINT64_MAX - 1)
#define WRITES_IN_FLIGHT (DISK_IN_FLIGHT - 2) /* a sync and a push besides */
#define PUSH_BYTES (4u << 20)

/* ---- one block ---------------------------------------------------------- */

static void seal(struct store *store, struct block *block)
{
	struct archive_block_head *head = &block->head;

	store->given.records += head->own;
	head->records = store->given.records;
	head->number = ++store->given.block;
	head->state = store->given.state;
	head->time_ns = clock_real_ns();
	head->previous_hash = store->given.hash;
	head->synced = store->synced_block;
	archive_block_seal(head);
	store->given.hash = head->head_hash;
	store->given.flags = head->flags;
	if (block->has_state)
		store->given.state = head->number;
	block->left = (uint32_t)archive_block_span(head);
	block->offset = store->offset;
	store->offset += block->left;
}

/* The head goes in front of the stored bytes, zeros behind them. */
static void complete(struct block *block)
{
	uint8_t *bytes = (uint8_t *)(uintptr_t)block->ready;
	size_t end = sizeof(block->head) + block->head.stored;

	memcpy(bytes, &block->head, sizeof(block->head));
	memset(bytes + end, 0, block->left - end);
}

static void write_rest(struct store *store, const struct block *block)
{
	uint32_t done = (uint32_t)archive_block_span(&block->head) - block->left;
	const struct disk_write write = {
		.fd = store->fd,
		.bytes = block->ready + done,
		.count = block->left,
		.offset = block->offset + done,
		.tag = (uint64_t)(block - store->blocks->blocks),
	};

	disk_write(&store->disk, &write);
}

/* ---- what was done ------------------------------------------------------ */

/* In the order of the blocks. */
static void note_written(void *ctx, const struct block *block)
{
	struct store *store = ctx;
	uint64_t records = block->head.records - store->written.records;

	if (!block->stored || store->hole) {
		store->hole = true;
		store->unwritten_bytes += archive_block_span(&block->head);
		store->unwritten_records += block->head.own;
		return;
	}
	store->written = (struct store_chain){
		.block = block->head.number,
		.hash = block->head.head_hash,
		.records = block->head.records,
		.flags = block->head.flags,
		.state = block->has_state ? block->head.number : block->head.state,
	};
	store->written_to = block->offset + archive_block_span(&block->head);
	pthread_mutex_lock(&store->lock);
	store->stats.stored_records += records;
	store->stats.entry_bytes += block->head.raw;
	store->stats.stored_bytes += archive_block_span(&block->head);
	store->stats.archive_bytes = store->files.bytes + store->written_to;
	pthread_mutex_unlock(&store->lock);
}

static void write_done(struct store *store, struct block *block, int result)
{
	if (result == -EINTR || result == -EAGAIN)
		result = 0;
	else if (result == 0)
		result = -ENOSPC; /* as write(2): a device that takes nothing more */
	if (result >= 0 && (uint32_t)result < block->left) {
		block->left -= (uint32_t)result;
		write_rest(store, block);
		return;
	}
	block->stored = result > 0;
	if (result < 0)
		store_fail(store, result, "writing");
	blocks_written(store->blocks, block, note_written, store);
}

static void sync_done(struct store *store, int result)
{
	store->syncing = false;
	if (result < 0) {
		store_fail(store, result, "syncing");
		return;
	}
	store->synced_block = store->sync_block;
	pthread_mutex_lock(&store->lock);
	store->stats.synced_records = store->sync_records;
	pthread_mutex_unlock(&store->lock);
}

/* Where it is not to be had (seccomp) a sync does all. But what it says of the device, a sync
 * may not say again. */
static void push_done(struct store *store, int result)
{
	store->pushing = false;
	if (result == -EIO || result == -ENOSPC || result == -EDQUOT)
		store_fail(store, result, "writing");
}

static void reap(struct store *store)
{
	struct disk_done done;

	while (disk_reap(&store->disk, &done)) {
		if (done.tag == TAG_SYNC)
			sync_done(store, done.result);
		else if (done.tag == TAG_PUSH)
			push_done(store, done.result);
		else
			write_done(store, &store->blocks->blocks[done.tag], done.result);
	}
}

/* ---- what is next ------------------------------------------------------- */

/* After a failure nothing more is written, and nobody waits. */
static void discard(struct store *store)
{
	struct block *block;

	while ((block = blocks_next(store->blocks, false))) {
		block->stored = false;
		blocks_written(store->blocks, block, note_written, store);
	}
}

/* False: it must wait for what is in flight, or there is none. */
static bool write_next(struct store *store)
{
	struct block *block = blocks_next(store->blocks, true);

	if (!block || store->disk.in_flight >= WRITES_IN_FLIGHT)
		return false;
	if (block->begins_segment && store->disk.in_flight)
		return false;
	if (block->begins_segment && !store_begin_segment(store))
		return false;
	if (!store_has_room(store, archive_block_span(&block->head)))
		return false;
	block = blocks_next(store->blocks, false);
	seal(store, block);
	complete(block);
	write_rest(store, block);
	return true;
}

static void write_all(struct store *store)
{
	while (!store_failed(store) && write_next(store))
		;
	if (store_failed(store))
		discard(store);
}

/* Else the device would stand still from sync to sync, and each would take the longer. */
static void push_if_due(struct store *store)
{
	if (store->options.sync != ARCHIVE_SYNC_PERIOD || store->pushing ||
	    store->written_to - store->pushed_to < PUSH_BYTES || store_failed(store))
		return;
	store->pushing = true;
	store->pushed_to = store->written_to;
	disk_push(&store->disk, store->fd, TAG_PUSH);
}

static bool wants_sync(const struct store *store)
{
	return store->options.sync != ARCHIVE_SYNC_NEVER && !store->syncing && store->fd >= 0 &&
	       store->written.block > store->synced_block && !store_failed(store);
}

/* What was written by now, not what is in flight. Returns ms until it is time to. */
static int sync_if_due(struct store *store)
{
	uint64_t now = clock_now_ns();

	if (!wants_sync(store))
		return WAIT_MS;
	if (store->options.sync == ARCHIVE_SYNC_PERIOD && now < store->sync_at_ns) {
		uint64_t left_ms = (store->sync_at_ns - now) / MS_NS + 1;

		return left_ms < WAIT_MS ? (int)left_ms : WAIT_MS;
	}
	store->syncing = true;
	store->pushed_to = store->written_to;
	store->sync_block = store->written.block;
	store->sync_records = store->stats.stored_records;
	store->sync_at_ns = now + store->options.sync_ms * MS_NS;
	disk_sync(&store->disk, store->fd, TAG_SYNC);
	return 0;
}

static void *store_all(void *arg)
{
	struct store *store = arg;

	for (;;) {
		int wait_ms;

		reap(store);
		store_notice_removal(store);
		write_all(store);
		push_if_due(store);
		wait_ms = sync_if_due(store);
		if (blocks_done(store->blocks) && !store->disk.in_flight)
			break;
		disk_wait(&store->disk, wait_ms);
	}
	store_finish(store);
	return NULL;
}

/* ---- for others --------------------------------------------------------- */

int store_start(struct store *store, struct blocks *blocks, int dir_fd,
		const struct archive_writer_options *options, const struct store_start *start)
{
	*store = (struct store){
		.blocks = blocks,
		.options = *options,
		.dir_fd = dir_fd,
		.files = start->files,
		.fd = -1,
		.given = start->chain,
		.written = start->chain,
		.synced_block = start->chain.block,
	};
	store->stats.archive_bytes = start->files.bytes;
	if (start->files.count)
		store->stats.segment = start->files.files[start->files.count - 1].number;
	store_count_begin(store);
	memcpy(store->uuid, start->uuid, sizeof(store->uuid));
	pthread_mutex_init(&store->lock, NULL);
	disk_open(&store->disk, blocks->wake_fd, options->no_uring);
	store->stats.uring = store->disk.uring;
	if (pthread_create(&store->thread, NULL, store_all, store) == 0)
		return 0;
	disk_close(&store->disk);
	pthread_mutex_destroy(&store->lock);
	return -EAGAIN;
}

int store_join(struct store *store, uint64_t repeated, struct r3ring_error *err)
{
	int failed;

	pthread_join(store->thread, NULL);
	store_say_full(store, repeated);
	failed = store_failed(store);
	if (failed && err)
		*err = store->err;
	return failed;
}

void store_release(struct store *store)
{
	disk_close(&store->disk);
	segment_files_release(&store->files);
	pthread_mutex_destroy(&store->lock);
}

int store_failed(const struct store *store)
{
	/* Pairs with the release in store_fail(): the words are there. */
	return r3ring_load_acquire_u32(&store->failed) ? store->err.code : 0;
}

void store_get_stats(struct store *store, struct archive_writer_stats *stats)
{
	pthread_mutex_lock(&store->lock);
	*stats = store->stats;
	pthread_mutex_unlock(&store->lock);
}
