/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the index says of one segment, made from its entries alone: which requests it has
 * something of. Entries of one segment after the other are taken, those said again too.
 *
 * Steps that are not at their end when their segment is go on in the next: what comes of
 * them there is counted apart, for who reads only that one cannot know of it.
 */
#ifndef ARCHIVE_INDEX_TALLY_H
#define ARCHIVE_INDEX_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#include <r3ring/record.h>

#include "archive/reader.h"

/* A request within a generation of a channel. */
struct index_key {
	uint8_t uuid[16]; /* of the ring */
	uint64_t handle;
};

struct index_texts {
	char *id;                            /* NULL: not known, nobody said its beginning */
	const char *session, *turn, *sample; /* behind it */
};

/* What a segment has of it. Positions, rows and layers are those that it announced. */
struct index_part {
	struct index_key key;
	struct index_texts texts;
	const char *channel;
	uint64_t generation;
	uint64_t first_step, last_step;            /* 0: none */
	uint64_t first_position, end_position;     /* first >= end: none */
	uint64_t rows;                             /* run for it */
	uint64_t layer_rows;                       /* of those, in LAYER records: rows x layers */
	uint64_t carried_rows, carried_layer_rows; /* likewise, of steps begun in front of it */
	uint64_t weight_min, weight_max;           /* versions that ran */
	uint64_t first_offset, last_offset;        /* of blocks with a record of it */
	uint64_t begin_ns, end_ns;                 /* CLOCK_REALTIME of these blocks; 0: not here */
	uint32_t prompt_tokens, accepted_tokens;   /* R3RING_UNKNOWN_U32 */
	uint16_t attempts;                         /* 1 + the highest */
	uint8_t end_reason;                        /* of the newest end; 0: none here */
	bool touched; /* there is a record of it here, not only said again */
	UT_hash_handle hh;
};

/* Whether there is something to say of it: it has a name, and something in the segment. */
static inline bool index_part_tells(const struct index_part *part)
{
	return part->texts.id && (part->touched || part->carried_rows || part->carried_layer_rows);
}

/* What is known of a step that is not over. */
enum index_open_kind {
	INDEX_OPEN_STEP = 0,        /* it was announced */
	INDEX_OPEN_STEP_FOLLOW = 1, /* and spans of it are still to come, also behind its end */
	INDEX_OPEN_SPAN = 2,
	INDEX_OPEN_LAYERS = 3, /* so many LAYER records of these rows have come; of STEP_FOLLOW */
};

struct index_open {
	uint8_t uuid[16]; /* of the ring */
	uint64_t step;
	uint64_t handle; /* SPAN */
	uint32_t row, rows;
	uint32_t layers;
	uint32_t kind;
};

struct index_tally;

struct index_tally *index_tally_create(void); /* NULL: no memory */
void index_tally_destroy(struct index_tally *tally);

/* A segment begins: parts are those of it from now on. */
void index_tally_segment(struct index_tally *tally);

/* Not all that is in front of the next segment was taken: what was open there may be so no more. */
void index_tally_forget_open(struct index_tally *tally);

/* Takes an entry. Returns 0 or -ENOMEM. */
int index_tally_take(struct index_tally *tally, const struct archive_item *item);

/* The segment's parts, a uthash table; valid until the next call. */
const struct index_part *index_tally_parts(const struct index_tally *tally);

/*
 * What is open at its end, [count], to be freed; and the same given back to who begins with
 * the next segment. Return 0 or -ENOMEM.
 */
int index_tally_get_open(const struct index_tally *tally, struct index_open **open,
			 uint32_t *count);
int index_tally_set_open(struct index_tally *tally, const struct index_open *open, uint32_t count);

/*
 * At the end of a segment that was read without the one before it: takes over, of what is open
 * there, what was so before it began. Returns 0, 1 (@open lacks something that is open), or
 * -ENOMEM.
 */
int index_tally_adopt_open(struct index_tally *tally, const struct index_open *open,
			   uint32_t count);

#endif
