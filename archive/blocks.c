/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks between the threads that fill, compress and write them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive/block.h"
#include "archive/blocks.h"

#define AREA_ALIGN 4096u

static size_t area_bytes(void)
{
	return archive_align(sizeof(struct archive_block_head) + ARCHIVE_BLOCK_BYTES, AREA_ALIGN);
}

static void lay_out(struct blocks *blocks)
{
	uint8_t *at = blocks->memory;

	for (unsigned int i = 0; i < BLOCKS; i++) {
		struct block *block = &blocks->blocks[i];

		block->raw = at;
		at += area_bytes();
		block->capacity = blocks->capacity;
		if (!blocks->level)
			continue;
		block->packed = at;
		at += area_bytes();
	}
}

int blocks_init(struct blocks *blocks, size_t capacity, int level)
{
	*blocks = (struct blocks){.capacity = capacity, .level = level};
	blocks->memory_bytes = BLOCKS * (level ? 2 : 1) * area_bytes();
	blocks->memory = mmap(NULL, blocks->memory_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (blocks->memory == MAP_FAILED)
		return -ENOMEM;
	blocks->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (blocks->wake_fd < 0) {
		munmap(blocks->memory, blocks->memory_bytes);
		return -errno;
	}
	/* Thousands of faults fewer; refused where there are no huge pages. */
	madvise(blocks->memory, blocks->memory_bytes, MADV_HUGEPAGE);
	lay_out(blocks);
	pthread_mutex_init(&blocks->lock, NULL);
	pthread_cond_init(&blocks->freed, NULL);
	pthread_cond_init(&blocks->given, NULL);
	return 0;
}

void blocks_release(struct blocks *blocks)
{
	for (unsigned int i = 0; i < BLOCKS; i++)
		free(blocks->blocks[i].large);
	munmap(blocks->memory, blocks->memory_bytes);
	close(blocks->wake_fd);
	pthread_cond_destroy(&blocks->given);
	pthread_cond_destroy(&blocks->freed);
	pthread_mutex_destroy(&blocks->lock);
}

void blocks_wake(const struct blocks *blocks)
{
	const uint64_t one = 1;

	/* Refused only where 2^64 - 1 are waiting, and then it is awake. */
	if (write(blocks->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- filling ------------------------------------------------------------ */

struct block *blocks_take(struct blocks *blocks)
{
	struct block *block;

	pthread_mutex_lock(&blocks->lock);
	while (blocks->n_given - blocks->n_freed == BLOCKS)
		pthread_cond_wait(&blocks->freed, &blocks->lock);
	block = &blocks->blocks[blocks->n_given % BLOCKS];
	pthread_mutex_unlock(&blocks->lock);
	block->head = (struct archive_block_head){.magic = ARCHIVE_BLOCK_MAGIC};
	block->begins_segment = false;
	block->has_state = false;
	return block;
}

/* One area holds the entries; where they shrink they still need another. */
int block_enlarge(struct block *block, size_t bytes)
{
	size_t area = archive_align(sizeof(struct archive_block_head) + bytes, ARCHIVE_ALIGN);

	if (bytes <= block->capacity)
		return 0;
	block->large = aligned_alloc(ARCHIVE_ALIGN, (block->packed ? 2 : 1) * area);
	if (!block->large)
		return -ENOMEM;
	block->capacity = area - sizeof(struct archive_block_head);
	return 0;
}

void blocks_give(struct blocks *blocks, struct block *block)
{
	pthread_mutex_lock(&blocks->lock);
	if (block->begins_segment) {
		blocks->segment++;
		blocks->segment_bytes = 0;
		blocks->segment_unpacked = 0;
	}
	blocks->segment_unpacked += block->head.raw;
	block->segment = blocks->segment;
	block->is_packed = false;
	block->is_written = false;
	blocks->n_given++;
	pthread_cond_signal(&blocks->given);
	pthread_mutex_unlock(&blocks->lock);
}

void blocks_close(struct blocks *blocks)
{
	pthread_mutex_lock(&blocks->lock);
	blocks->closed = true;
	pthread_cond_broadcast(&blocks->given);
	pthread_mutex_unlock(&blocks->lock);
	blocks_wake(blocks);
}

uint64_t blocks_segment_bytes(struct blocks *blocks)
{
	double shrunk = 1;
	uint64_t bytes;

	pthread_mutex_lock(&blocks->lock);
	if (blocks->raw_bytes)
		shrunk = (double)blocks->packed_bytes / (double)blocks->raw_bytes;
	bytes = blocks->segment_bytes + (uint64_t)(shrunk * (double)blocks->segment_unpacked);
	pthread_mutex_unlock(&blocks->lock);
	return bytes;
}

/* ---- compressing -------------------------------------------------------- */

struct block *blocks_claim(struct blocks *blocks)
{
	struct block *block = NULL;

	pthread_mutex_lock(&blocks->lock);
	while (blocks->n_claimed == blocks->n_given && !blocks->closed)
		pthread_cond_wait(&blocks->given, &blocks->lock);
	if (blocks->n_claimed < blocks->n_given)
		block = &blocks->blocks[blocks->n_claimed++ % BLOCKS];
	pthread_mutex_unlock(&blocks->lock);
	return block;
}

void blocks_packed(struct blocks *blocks, struct block *block)
{
	pthread_mutex_lock(&blocks->lock);
	block->is_packed = true;
	blocks->raw_bytes += block->head.raw;
	blocks->packed_bytes += archive_block_span(&block->head);
	if (block->segment == blocks->segment) {
		blocks->segment_bytes += archive_block_span(&block->head);
		blocks->segment_unpacked -= block->head.raw;
	}
	pthread_mutex_unlock(&blocks->lock);
	blocks_wake(blocks);
}

/* ---- writing ------------------------------------------------------------ */

struct block *blocks_next(struct blocks *blocks, bool peek)
{
	struct block *block = NULL;

	pthread_mutex_lock(&blocks->lock);
	if (blocks->n_taken < blocks->n_claimed)
		block = &blocks->blocks[blocks->n_taken % BLOCKS];
	if (block && !block->is_packed)
		block = NULL;
	if (block && !peek)
		blocks->n_taken++;
	pthread_mutex_unlock(&blocks->lock);
	return block;
}

void blocks_written(struct blocks *blocks, struct block *block,
		    void (*note)(void *ctx, const struct block *block), void *ctx)
{
	pthread_mutex_lock(&blocks->lock);
	block->is_written = true;
	while (blocks->n_freed < blocks->n_taken) {
		block = &blocks->blocks[blocks->n_freed % BLOCKS];
		if (!block->is_written)
			break;
		note(ctx, block);
		free(block->large);
		block->large = NULL;
		block->capacity = blocks->capacity;
		blocks->n_freed++;
		pthread_cond_signal(&blocks->freed);
	}
	pthread_mutex_unlock(&blocks->lock);
}

bool blocks_done(struct blocks *blocks)
{
	bool done;

	pthread_mutex_lock(&blocks->lock);
	done = blocks->closed && blocks->n_freed == blocks->n_given;
	pthread_mutex_unlock(&blocks->lock);
	return done;
}
