/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signatures' parts:
 *
 *	create.c    an assembler of its own, fed and looked at
 *	count.c     rows that it places are counted
 *	passes.c    if they are of the pass that counts; how long a request was
 *	missing.c   of which positions there is none, or not all layers
 *	marks.c     a position's two bits
 *	slots.c     where: a slot each request, taken from others when there is none
 *	read.c      copies of slots, for any thread
 *	keep.c      those of requests that ended go to a history
 *	compare.c   how alike two are
 *
 * A slot's words are relaxed atomics while it is held, since it is read while its request
 * is counted; what it is of is plain and changes only when nobody is in it.
 */
#ifndef CONSUMER_SIGNATURE_SIGNATURE_H
#define CONSUMER_SIGNATURE_SIGNATURE_H

#include <r3ring/signature.h>

#include "consumer/assembler/assembled.h"
#include "consumer/assembler/assembler.h"
#include "consumer/hold.h"
#include "consumer/signature/marks.h"

/* Different layer tables, that is pipeline stages. */
#define SIGNATURE_STAGES 32u

struct signature_stage {
	uint32_t layers;
	struct r3ring_layer_entry *layer;
};

struct slot {
	uint32_t hold;
	uint32_t flags;                  /* read by others */
	char id[R3RING_TEXT_ID_MAX + 1]; /* "": free */
	uint64_t begun;                  /* that of its request, and of no other */
	uint64_t touched;                /* by the feeding thread's clock of rows */
	uint32_t prompt;                 /* read by others, as what follows */
	uint64_t updated_ns;
	uint64_t rows[R3RING_SIGNATURE_PHASES];
	uint64_t inherited, missing, part;
	struct marks *marks; /* of its stages, while it lives */
	/* uint16_t *[layers][experts] of each stage; 0: none yet */
	uint64_t counts[SIGNATURE_STAGES][R3RING_SIGNATURE_PHASES];
};

struct r3ring_signatures {
	struct r3ring_signatures_options options;
	struct r3ring_signatures_stats stats;
	struct r3ring_assembler *assembler;
	uint64_t now_ns; /* when the step that is counted was published */
	uint64_t touches;
	uint64_t *seq, *generation; /* [channels] of the last record */
	uint32_t channels;
	uint32_t experts; /* read by others */
	uint32_t stages;  /* likewise */
	struct signature_stage stage[SIGNATURE_STAGES];
	struct r3ring_assembled passes; /* of the request that was asked for last, */
	uint64_t passes_at;             /* as of the assembler's clock then */
	struct row_pool *pool;          /* of the row that was counted last, */
	uint32_t pool_stage;            /* and its stage */
	struct slot *slot;              /* [options.max_requests] */
	uint32_t *hash; /* [options.max_requests] of their ids, 0: free. Read by others */
	struct r3ring_history *history; /* NULL: nobody wants those that ended */
	struct r3ring_signature *ended; /* the copy that it is given */
};

static inline uint16_t *slot_counts(const struct slot *slot, uint32_t stage,
				    enum r3ring_signature_phase phase)
{
	/* Pairs with the release in slot_reach(): the counts are zeroed. */
	return (uint16_t *)(uintptr_t)r3ring_load_acquire_u64(&slot->counts[stage][phase]);
}

static inline size_t stage_bytes(const struct r3ring_signatures *signatures, uint32_t stage)
{
	return (size_t)signatures->stage[stage].layers * signatures->experts * sizeof(uint16_t);
}

uint32_t signature_hash(const char *id); /* never 0 */

/* count.c: for the assembler */
void signature_begun(void *ctx, struct request *first);
void signature_row(void *ctx, const struct placed_row *placed);
void signature_over(void *ctx, struct request *request, uint32_t flags);

/* Of the layers; SIGNATURE_STAGES: there are too many. */
uint32_t signature_stage(struct r3ring_signatures *signatures, struct row_pool *pool);

/* passes.c: by the records that were fed */
/* Whether the row is of the first pass over its position whose token was kept. */
bool signature_is_first(struct r3ring_signatures *signatures, const struct placed_row *placed);
/* Positions that attempts before that of the row can count at. */
uint32_t signature_kept_before(struct r3ring_signatures *signatures,
			       const struct placed_row *placed);
/* Positions of a request that is over that some pass consumed, or may have. */
uint32_t signature_length(struct r3ring_signatures *signatures, struct request *request);

/* missing.c */
/* What is counted of the slot's request in a stage, with room for @position; NULL without memory,
 * or stages. */
struct marks *slot_marks(struct r3ring_signatures *signatures, struct slot *slot, uint32_t stage,
			 uint32_t position);
void slot_tell_missing(struct r3ring_signatures *signatures, struct slot *slot);
/* Tells what a request that is over lacks. Returns its slot, also of one of which nothing was placed
 * that should have been; NULL: it has none, or had to go. */
struct slot *signature_missing(struct r3ring_signatures *signatures, struct request *request);
void slot_drop_marks(struct r3ring_signatures *signatures, struct slot *slot);

/* slots.c; all by the feeding thread */
/* The slot of a request, made when it has none; NULL: there is no room, or it had to go. */
struct slot *slot_of(struct r3ring_signatures *signatures, struct request *request);
/* The request has gone; its slot is kept as that of an ended one. */
void slot_end(struct r3ring_signatures *signatures, struct slot *slot, uint32_t flags);
/* Its counts, made when there are none; NULL: no room. */
uint16_t *slot_reach(struct r3ring_signatures *signatures, struct slot *slot, uint32_t stage,
		     enum r3ring_signature_phase phase);
void slots_free(struct r3ring_signatures *signatures);

/* read.c: fills @to; whoever calls is in the slot, or the feeding thread. Returns 0 or -ENOMEM. */
int slot_read(const struct r3ring_signatures *signatures, const struct slot *slot,
	      struct r3ring_signature *to);

/* keep.c */
void slot_keep(struct r3ring_signatures *signatures, const struct slot *slot);

#endif
