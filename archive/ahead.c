/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "archive/ahead.h"
#include "archive/block.h"
#include "archive/entry.h"
#include "archive/zeros.h"

#define WORKERS_MAX 4u
#define SLOTS_MAX (2 * WORKERS_MAX + 2)
#define RAW_MAX (4u << 20) /* larger blocks are not held here */
/* Blocks are of many sizes: room for each new largest one would leave holes behind. */
#define ROOM_STEP (256u << 10)

enum state { FREE, WAITING, AT_WORK, WHOLE, BROKEN };

/* A block on its way. What is behind `state` is its worker's while it is AT_WORK. */
struct slot {
	enum state state; /* under the lock */
	int fd;
	uint64_t offset;
	struct archive_block_head head;
	uint8_t *stored, *raw;
	size_t stored_room, raw_room;
	const uint8_t *entries;
	struct archive_content content;
};

struct worker {
	struct archive_ahead *ahead;
	pthread_t thread;
	ZSTD_DCtx *zstd;
};

struct archive_ahead {
	pthread_mutex_t lock;
	pthread_cond_t given, done;
	struct slot slot[SLOTS_MAX];
	uint32_t slots;
	uint64_t first, next; /* slots [first, next) modulo `slots` hold blocks, in their order */
	bool shown;           /* the entries of the first are with the caller */
	bool closing;
	struct worker worker[WORKERS_MAX];
	unsigned int workers;
	ZSTD_DCtx *zstd; /* the caller's own */
};

/* ---- a block ------------------------------------------------------------ */

static bool make_room(uint8_t **bytes, size_t *room, size_t needed)
{
	if (needed <= *room)
		return true;
	needed = archive_align(needed, ROOM_STEP);
	free(*bytes);
	*bytes = aligned_alloc(ARCHIVE_ALIGN, needed);
	*room = *bytes ? needed : 0;
	return *bytes;
}

static bool read_all(int fd, uint8_t *to, size_t bytes, uint64_t offset)
{
	while (bytes) {
		ssize_t got = pread(fd, to, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		bytes -= (size_t)got;
		offset += (uint64_t)got;
	}
	return true;
}

static bool decompress(struct slot *slot, ZSTD_DCtx *zstd)
{
	size_t bytes;

	if (!make_room(&slot->raw, &slot->raw_room, slot->head.raw + 1u))
		return false;
	bytes = ZSTD_decompressDCtx(zstd, slot->raw, slot->head.raw, slot->stored,
				    slot->head.stored);
	return !ZSTD_isError(bytes) && bytes == slot->head.raw;
}

static bool read_block(struct slot *slot, ZSTD_DCtx *zstd)
{
	const struct archive_block_head *head = &slot->head;
	const size_t bytes = archive_align(head->stored, ARCHIVE_ALIGN);
	const bool packed = head->flags & ARCHIVE_BLOCK_ZSTD;

	if (!make_room(&slot->stored, &slot->stored_room, bytes + 1) ||
	    !read_all(slot->fd, slot->stored, bytes, slot->offset + sizeof(*head)) ||
	    archive_hash(slot->stored, head->stored) != head->stored_hash ||
	    !archive_all_zero(slot->stored + head->stored, bytes - head->stored))
		return false;
	if (packed && !decompress(slot, zstd))
		return false;
	slot->entries = packed ? slot->raw : slot->stored;
	return !archive_entries_check(slot->entries, head->raw, head->entries, &slot->content);
}

/* ---- workers ------------------------------------------------------------ */

static void work(struct archive_ahead *ahead, struct slot *slot, ZSTD_DCtx *zstd)
{
	bool whole;

	slot->state = AT_WORK;
	pthread_mutex_unlock(&ahead->lock);
	whole = read_block(slot, zstd);
	pthread_mutex_lock(&ahead->lock);
	slot->state = whole ? WHOLE : BROKEN;
	pthread_cond_broadcast(&ahead->done);
}

static struct slot *slot_at(struct archive_ahead *ahead, uint64_t number)
{
	return &ahead->slot[number % ahead->slots];
}

static struct slot *oldest_waiting(struct archive_ahead *ahead)
{
	for (uint64_t i = ahead->first; i < ahead->next; i++)
		if (slot_at(ahead, i)->state == WAITING)
			return slot_at(ahead, i);
	return NULL;
}

static void *run(void *arg)
{
	struct worker *worker = arg;
	struct archive_ahead *ahead = worker->ahead;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->closing) {
		struct slot *slot = oldest_waiting(ahead);

		if (slot)
			work(ahead, slot, worker->zstd);
		else
			pthread_cond_wait(&ahead->given, &ahead->lock);
	}
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

static unsigned int processors_to_spare(void)
{
	cpu_set_t set;
	unsigned int count;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	count = (unsigned int)CPU_COUNT(&set) - 1;
	return count < WORKERS_MAX ? count : WORKERS_MAX;
}

static bool start_worker(struct archive_ahead *ahead)
{
	struct worker *worker = &ahead->worker[ahead->workers];
	sigset_t all, before;
	int rc;

	*worker = (struct worker){.ahead = ahead, .zstd = ZSTD_createDCtx()};
	if (!worker->zstd)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&worker->thread, NULL, run, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		ZSTD_freeDCtx(worker->zstd);
		return false;
	}
	ahead->workers++;
	return true;
}

struct archive_ahead *archive_ahead_create(void)
{
	const unsigned int count = processors_to_spare();
	struct archive_ahead *ahead = count ? calloc(1, sizeof(*ahead)) : NULL;

	if (!ahead)
		return NULL;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->given, NULL);
	pthread_cond_init(&ahead->done, NULL);
	ahead->slots = 2 * count + 2;
	ahead->zstd = ZSTD_createDCtx();
	while (ahead->zstd && ahead->workers < count && start_worker(ahead))
		;
	if (ahead->workers)
		return ahead;
	archive_ahead_destroy(ahead);
	return NULL;
}

void archive_ahead_destroy(struct archive_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->closing = true;
	pthread_cond_broadcast(&ahead->given);
	pthread_mutex_unlock(&ahead->lock);
	for (unsigned int i = 0; i < ahead->workers; i++) {
		pthread_join(ahead->worker[i].thread, NULL);
		ZSTD_freeDCtx(ahead->worker[i].zstd);
	}
	for (uint32_t i = 0; i < SLOTS_MAX; i++) {
		free(ahead->slot[i].stored);
		free(ahead->slot[i].raw);
	}
	ZSTD_freeDCtx(ahead->zstd);
	pthread_cond_destroy(&ahead->given);
	pthread_cond_destroy(&ahead->done);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}

/* ---- interface ---------------------------------------------------------- */

/* Under the lock. */
static void forget(struct archive_ahead *ahead)
{
	for (; ahead->first < ahead->next; ahead->first++) {
		struct slot *slot = slot_at(ahead, ahead->first);

		while (slot->state == AT_WORK)
			pthread_cond_wait(&ahead->done, &ahead->lock);
		slot->state = FREE;
	}
	ahead->shown = false;
}

void archive_ahead_forget(struct archive_ahead *ahead)
{
	pthread_mutex_lock(&ahead->lock);
	forget(ahead);
	pthread_mutex_unlock(&ahead->lock);
}

static void give(struct archive_ahead *ahead, int fd, uint64_t offset,
		 const struct archive_block_head *head)
{
	struct slot *slot = slot_at(ahead, ahead->next++);

	slot->fd = fd;
	slot->offset = offset;
	slot->head = *head;
	slot->state = WAITING;
	pthread_cond_signal(&ahead->given);
}

static bool can_hold(const struct archive_block_head *head)
{
	return head->raw <= RAW_MAX && head->stored <= RAW_MAX;
}

/* The blocks behind the newest, as far as they are there and look like blocks. */
static void go_on(struct archive_ahead *ahead, int fd, uint64_t bytes)
{
	while (ahead->next - ahead->first < ahead->slots) {
		const struct slot *newest = slot_at(ahead, ahead->next - 1);
		const uint64_t offset = newest->offset + archive_block_span(&newest->head);
		struct archive_block_head head;

		if (newest->head.flags & ARCHIVE_BLOCK_LAST || offset > bytes ||
		    bytes - offset < sizeof(head) ||
		    !read_all(fd, (uint8_t *)&head, sizeof(head), offset) ||
		    !archive_block_intact(&head) || !can_hold(&head) ||
		    archive_block_span(&head) > bytes - offset)
			return;
		give(ahead, fd, offset, &head);
	}
}

/* The block that is asked for becomes the first. */
static bool find(struct archive_ahead *ahead, int fd, uint64_t offset,
		 const struct archive_block_head *head)
{
	const struct slot *first;

	if (ahead->shown) {
		slot_at(ahead, ahead->first++)->state = FREE;
		ahead->shown = false;
	}
	first = slot_at(ahead, ahead->first);
	if (ahead->first < ahead->next && first->fd == fd && first->offset == offset &&
	    !memcmp(&first->head, head, sizeof(*head)))
		return true;
	forget(ahead);
	if (!can_hold(head))
		return false;
	give(ahead, fd, offset, head);
	return true;
}

/* Who would only wait has time for a block, too. */
static void help_or_wait(struct archive_ahead *ahead)
{
	struct slot *slot = oldest_waiting(ahead);

	if (slot)
		work(ahead, slot, ahead->zstd);
	else
		pthread_cond_wait(&ahead->done, &ahead->lock);
}

const uint8_t *archive_ahead_take(struct archive_ahead *ahead, int fd, uint64_t bytes,
				  uint64_t offset, const struct archive_block_head *head,
				  struct archive_content *content)
{
	const uint8_t *entries = NULL;
	struct slot *slot;

	pthread_mutex_lock(&ahead->lock);
	if (find(ahead, fd, offset, head)) {
		go_on(ahead, fd, bytes);
		slot = slot_at(ahead, ahead->first);
		while (slot->state == WAITING || slot->state == AT_WORK)
			help_or_wait(ahead);
		ahead->shown = slot->state == WHOLE;
		if (ahead->shown) {
			entries = slot->entries;
			*content = slot->content;
		} else {
			forget(ahead);
		}
	}
	pthread_mutex_unlock(&ahead->lock);
	return entries;
}
