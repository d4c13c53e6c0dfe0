/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that compress blocks, so that zstd does not hold up the reading of a ring. */
#ifndef ARCHIVE_PACK_H
#define ARCHIVE_PACK_H

#include <pthread.h>

#include "archive/blocks.h"

#define PACKERS_MAX 8u

struct packer {
	pthread_t thread;
	struct blocks *blocks;
	struct ZSTD_CCtx_s *zstd; /* NULL: no compression */
};

struct packers {
	struct packer packer[PACKERS_MAX];
	unsigned int count;
};

/* @count: 0: by the processors. Returns 0 or -errno. */
int packers_start(struct packers *packers, struct blocks *blocks, unsigned int count);

/* They end once blocks_close() was called and all is packed. */
void packers_join(struct packers *packers);

#endif
