/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which positions of a request are counted, of one pipeline stage: two bits each. A signature's
 * counts alone do not tell how many positions they lack.
 */
#ifndef CONSUMER_SIGNATURE_MARKS_H
#define CONSUMER_SIGNATURE_MARKS_H

#include <stdint.h>

enum mark {
	MARK_NONE = 0, /* nothing of it is counted */
	MARK_PART,     /* some layers are */
	MARK_WHOLE,    /* all are */
};

struct marks {
	struct marks *next; /* of the same request */
	uint32_t stage;
	uint32_t end;     /* positions below it are known to be the request's */
	uint16_t attempt; /* newest that was counted */
	uint32_t blocks;  /* of 64 positions */
	uint64_t *bits;   /* [blocks][2] in part, whole */
	uint64_t part, whole;
};

/* What its bits take, */
uint64_t marks_bytes(const struct marks *marks);
/* and what more is taken for the position to have a mark. */
uint64_t marks_growth(const struct marks *marks, uint32_t position);
/* Returns 0 or -ENOMEM. */
int marks_reach(struct marks *marks, uint32_t position);
/* Of a position that has none: MARK_NONE. */
enum mark marks_get(const struct marks *marks, uint32_t position);
/* One that was reached. */
void marks_set(struct marks *marks, uint32_t position, enum mark mark);
/* Positions from @end on are none of the request's. */
void marks_cut(struct marks *marks, uint32_t end);
/* Positions that are not counted whole. */
uint64_t marks_missing(const struct marks *marks);

#endif
