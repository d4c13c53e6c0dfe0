/* SPDX-License-Identifier: Apache-2.0 */
/* Compressing. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include <zstd.h>

#include "archive/block.h"
#include "archive/pack.h"

#define HEAD sizeof(struct archive_block_head)

struct areas {
	uint8_t *raw, *packed;
};

static struct areas areas_of(const struct block *block)
{
	if (block->large)
		return (struct areas){block->large, block->large + HEAD + block->capacity};
	return (struct areas){block->raw, block->packed};
}

/* Bytes that it shrank to; 0: it did not. */
static size_t compress(struct ZSTD_CCtx_s *zstd, const struct areas *areas, size_t raw)
{
	size_t bytes;

	if (!zstd || !raw)
		return 0;
	/* What does not fit into less than its size is stored as it is. */
	bytes = ZSTD_compress2(zstd, areas->packed + HEAD, raw - 1, areas->raw + HEAD, raw);
	return ZSTD_isError(bytes) ? 0 : bytes;
}

static void pack(const struct packer *packer, struct block *block)
{
	struct areas areas = areas_of(block);
	struct archive_block_head *head = &block->head;
	size_t bytes = compress(packer->zstd, &areas, head->raw);

	block->ready = bytes ? areas.packed : areas.raw;
	head->stored = bytes ? (uint32_t)bytes : head->raw;
	if (bytes)
		head->flags |= ARCHIVE_BLOCK_ZSTD;
	head->stored_hash = archive_hash(block->ready + HEAD, head->stored);
}

static void *pack_all(void *arg)
{
	const struct packer *packer = arg;
	struct block *block;

	while ((block = blocks_claim(packer->blocks))) {
		pack(packer, block);
		blocks_packed(packer->blocks, block);
	}
	return NULL;
}

/* Half of the processors, for the engine has use for them too. */
static unsigned int by_processors(void)
{
	cpu_set_t set;
	unsigned int count;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	count = (unsigned int)CPU_COUNT(&set) / 2;
	if (count > PACKERS_MAX / 2)
		count = PACKERS_MAX / 2;
	return count ? count : 1;
}

static int start_one(struct packers *packers, struct blocks *blocks)
{
	struct packer *packer = &packers->packer[packers->count];

	*packer = (struct packer){.blocks = blocks};
	if (blocks->level) {
		packer->zstd = ZSTD_createCCtx();
		if (!packer->zstd)
			return -ENOMEM;
		ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, blocks->level);
	}
	if (pthread_create(&packer->thread, NULL, pack_all, packer)) {
		ZSTD_freeCCtx(packer->zstd);
		return -EAGAIN;
	}
	packers->count++;
	return 0;
}

int packers_start(struct packers *packers, struct blocks *blocks, unsigned int count)
{
	packers->count = 0;
	if (!count || count > PACKERS_MAX)
		count = by_processors();
	while (packers->count < count) {
		int r = start_one(packers, blocks);

		/* Fewer will do. */
		if (r)
			return packers->count ? 0 : r;
	}
	return 0;
}

void packers_join(struct packers *packers)
{
	for (unsigned int i = 0; i < packers->count; i++) {
		pthread_join(packers->packer[i].thread, NULL);
		ZSTD_freeCCtx(packers->packer[i].zstd);
	}
	packers->count = 0;
}
