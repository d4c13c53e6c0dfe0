/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An assembled request: the rows of its parts as they came, and how to choose among
 * them. What counts at a position is decided when it is read.
 */
#ifndef CONSUMER_ASSEMBLER_ASSEMBLED_H
#define CONSUMER_ASSEMBLER_ASSEMBLED_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/assembler.h>

#include "consumer/assembler/requests.h"

#define LAYER_ELSEWHERE UINT16_MAX

/* One attempt of the request, as all channels together know it. */
struct pass {
	uint16_t number;
	uint32_t prompt;
	uint32_t sampled; /* tokens that it had when it ended; unknown: all, */
	uint32_t kept;    /* those that were kept of it: the least, */
	uint32_t most;    /* and the most, by what later attempts had */
	uint8_t cut_off;  /* cause, where nobody heard, or said, whether more than `kept` was */
	uint32_t sure;    /* tokens that no later attempt can have thrown away, */
	uint8_t doubt;    /* and cause, where others were that nobody heard of */
	bool unsure;      /* an engine did not say what it kept */
	bool orphan;      /* the attempt before it is not known */
};

/* Where a schema's rows have the request's layers. */
struct layer_map {
	const struct row_pool *pool;
	uint16_t *to_row; /* [layers of the request] or LAYER_ELSEWHERE */
	bool same;        /* the very same layers in the same order */
};

struct r3ring_assembled {
	struct r3ring_assembled *next;
	const struct r3ring_assembler *assembler;
	struct request *request;
	bool looked;        /* it lives on: it is its assembler's */
	uint64_t bytes;     /* of the request, its rows and itself, */
	uint64_t bytes_own; /* and of itself */
	enum r3ring_row_policy policy;
	bool joined;          /* of engines that `min_ends` says have a part of each request */
	bool lacks_shard;     /* of which no channel was fed, though the others lost nothing */
	bool mixed;           /* of requests that several ran, */
	uint32_t mixed_by[2]; /* these channels among them */
	struct pass *pass;    /* [passes], by number */
	uint32_t passes;
	bool counts; /* prompts of its later attempts count what was kept of the ones before */
	struct r3ring_layer_entry *layer; /* [layers] */
	uint32_t layers;
	struct layer_map *map; /* [maps] */
	uint32_t maps;
	struct r3ring_assembled_info info;
};

/* Of a request as it stands; NULL without memory. Who makes it says whose it is. */
struct r3ring_assembled *assembled_make(struct r3ring_assembler *assembler, struct request *request,
					uint32_t flags);

/* For who only asks which attempt counts, of an @assembled that has no more than its request,
 * policy and `joined`: finds its passes, anew; 0 or -1, without memory. Its caller frees them. */
int assembled_find_passes(const struct r3ring_assembler *assembler,
			  struct r3ring_assembled *assembled);
/* And its length, by them. */
void assembled_find_length(const struct r3ring_assembler *assembler,
			   struct r3ring_assembled *assembled);

/* unseen.c */
/* Whether the attempt may have run the position, of which no row is there, in records that were
 * lost. */
bool pass_may_have_run(const struct r3ring_assembled *assembled, const struct pass *pass,
		       uint32_t position);
/* Whether a rank of the part's engine heard of the attempt. */
bool engine_has_attempt(const struct r3ring_assembled *assembled, const struct part *part,
			uint16_t number);
/* Whether prompts of later attempts are seen to count what was kept of those before: an engine may
 * tell the length of the first prompt in all. */
bool prompts_count(const struct r3ring_assembled *assembled);
/* Whether the rows of a shard of its engines were never heard of, as no channel of it was fed. What is
 * missing otherwise is not told apart from them: false where a channel lost something. */
bool shard_is_unheard(const struct r3ring_assembled *assembled);
/* Whether an engine may have told the attempt's end, which nobody heard; */
bool pass_lost_end(const struct r3ring_assembled *assembled, const struct pass *pass);
/* or whether one left open how much was kept. */
bool pass_left_open(const struct r3ring_assembled *assembled, const struct pass *pass);

/* mixed.c */
/* Notes them; the first two that are noted stay. */
void strangers_find(const struct r3ring_assembler *assembler, struct r3ring_assembled *assembled);
void strangers_note(struct r3ring_assembled *assembled, uint32_t channel, uint32_t other);

/* Fills the accounts in info: cells, causes, conflicts, steps. */
void assembled_count(struct r3ring_assembled *assembled);

#endif
