/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks by what their schemas say of the engine that they are part of: those that there must be,
 * and of which no channel is there. Ranks that tell no coordinates are engines of their own; of
 * tensor-parallel copies and of experts' places none is asked for.
 *
 *	{ note } ... -> absent -> free
 */
#ifndef ARCHIVE_RANKS_H
#define ARCHIVE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>

/* In the order in which one is a part of the other. */
enum archive_rank_level {
	ARCHIVE_RANK_DP, /* runs requests of its own */
	ARCHIVE_RANK_PP, /* has layers of its own */
	ARCHIVE_RANK_SP, /* these run rows of their own */
	ARCHIVE_RANK_CP,
	ARCHIVE_RANK_LEVELS,
};

#define ARCHIVE_RANKS_TOLD 8u

/* One that is not there: with all that would be a part of it. */
struct archive_absent_rank {
	char instance[R3RING_INSTANCE_MAX + 1];
	uint32_t level;                      /* enum archive_rank_level */
	uint16_t index[ARCHIVE_RANK_LEVELS]; /* [level + 1], of */
	uint16_t size[ARCHIVE_RANK_LEVELS];  /* so many */
};

struct archive_absent_ranks {
	uint64_t count;
	uint64_t parts; /* of these: of engines of which other parts are there */
	uint32_t told;
	struct archive_absent_rank rank[ARCHIVE_RANKS_TOLD]; /* [told], the first */
};

/* Zeroed: none was noted. */
struct archive_ranks {
	struct archive_engine *engine; /* [engines] by instance and sizes */
	uint32_t engines;
};

void archive_ranks_free(struct archive_ranks *ranks);

/* What the channel "INSTANCE/RANK[.draft]" tells; a draft's is of no account. Returns 0, -ENOMEM. */
int archive_ranks_note(struct archive_ranks *ranks, const char *channel,
		       const struct r3ring_schema_record *schema);

void archive_ranks_absent(const struct archive_ranks *ranks, struct archive_absent_ranks *absent);

#define ARCHIVE_RANK_TEXT 224

/* "pipeline stage 1 of 2, counted from 0, of demo". */
void archive_absent_rank_text(char text[ARCHIVE_RANK_TEXT], const struct archive_absent_rank *rank);

#endif
