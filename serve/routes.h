/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes of an engine's requests, position by position: an assembler (r3ring/assembler.h) over
 * a reader of its own, in memory that is bounded. The reader is one that writers never wait
 * for and never have to wake; what it did not read in time is missing, as a gap.
 *
 * Requests that have ended are kept while there is room, the oldest leave first. Where those
 * that live need more, the one that was quiet longest is evicted. Either is counted, and its id
 * remembered for some time.
 */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/assembler.h>
#include <r3ring/error.h>

#define ROUTES_ENDED_MAX 1024u      /* requests that have ended, of an engine */
#define ROUTES_PARTED_MAX 4096u     /* ids of those that had to go */
#define ROUTES_IDS_MAX (128u << 10) /* expert ids in one excerpt */

struct routes;

struct routes_options {
	const char *instance;
	const char *runtime_dir; /* NULL: as readers find it */
	uint64_t max_bytes;      /* as r3ring_assembler_options has it */
};

/*
 * Begins to read @options->instance, be it there or not; names are copied.
 * Returns 0 or -ENOMEM, with a message. Pairs with routes_close(), NULL is fine.
 */
int routes_open(struct routes **routes, const struct routes_options *options,
		struct r3ring_error *err);
void routes_close(struct routes *routes);

struct routes_stats {
	uint64_t live, ended;       /* requests that are kept now */
	uint64_t evicted;           /* that lived and had to go */
	uint64_t forgotten;         /* that had ended and had to go */
	uint64_t bytes, max_bytes;  /* held, and that may be */
	uint64_t rows;              /* that got a position in a request, so far */
	uint64_t rows_unattributed; /* of requests that nobody announced, or that were evicted */
	uint64_t gaps;              /* how often records were gone before they were read */
};

/* Any thread. */
void routes_get_stats(struct routes *routes, struct routes_stats *stats);

/* ---- one request ------------------------------------------------------------ */

enum routes_state {
	ROUTES_RUNNING,
	ROUTES_ENDED,
	ROUTES_EVICTED,   /* nothing of it is there any more */
	ROUTES_FORGOTTEN, /* likewise; it had ended */
};

/* What is asked for; what is beyond the request is left out. */
struct routes_range {
	uint32_t from, to;            /* positions, @to not among them */
	int32_t layer_from, layer_to; /* the model's numbers of layers, likewise */
};

/* Missing rows that lie side by side and are missing for one cause. */
struct routes_run {
	uint32_t from, to; /* positions, @to not among them */
	uint32_t cause;
};

#define ROUTES_RUNS_TOLD 32u

struct routes_excerpt {
	enum routes_state state;
	bool evicted_before; /* it went on after it was evicted: what was before is missing */
	uint32_t tokens, prompt_tokens, attempts;
	uint32_t flags; /* enum r3ring_assembled_flags */
	uint32_t experts, top_k;

	/* Of the whole request; a row is known when all its layers are. */
	uint64_t rows_known;
	uint64_t rows_in_part;                        /* missing, but not in all layers */
	uint64_t rows_missing[R3RING_MISSING_CAUSES]; /* by the cause of the first layer that is */
	uint64_t cells, cells_known;
	uint64_t runs;                           /* of missing rows */
	struct routes_run run[ROUTES_RUNS_TOLD]; /* the first of them */

	/* The range that came of the one that was asked for: no more than fits in
	 * ROUTES_IDS_MAX, but a row at least. */
	uint32_t from, to;
	uint32_t layers;
	struct r3ring_layer_entry *layer; /* [layers] */
	uint16_t *ids;                    /* [to - from][layers][top_k] */
	uint8_t *cause;                   /* [to - from][layers] 0: the ids are there */
	uint64_t *weight_version;         /* [to - from] 0 where no layer is there */
	uint16_t *attempt;                /* [to - from] */
};

/*
 * Reads routes of the request; one that lives goes before one that ended. Any thread; the reader
 * waits meanwhile.
 *
 * Returns 0 (of one that is not there any more nothing but the state), -ENOENT (no such request
 * is remembered), -ENOMEM. Pairs with routes_excerpt_free().
 */
int routes_read(struct routes *routes, const char *id, const struct routes_range *range,
		struct routes_excerpt *excerpt);
void routes_excerpt_free(struct routes_excerpt *excerpt);

/* The same of a request that somebody has; fills all but state and evicted_before. */
int routes_excerpt_of(const struct r3ring_assembled *assembled, const struct routes_range *range,
		      struct routes_excerpt *excerpt);

/* ---- all of them -------------------------------------------------------------- */

struct routes_entry {
	char id[R3RING_TEXT_ID_MAX + 1];
	enum routes_state state;
};

/* Those that live first, the busiest before others; then those that ended, the newest first.
 * Returns how many there are in @entries, or -ENOMEM. Any thread. */
int routes_list(struct routes *routes, struct routes_entry *entries, uint32_t most);

#endif
