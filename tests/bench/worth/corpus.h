/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that the worth of reservation is measured on: recorded routing, split at random
 * into requests that predictors are fitted on and requests that they are tested on.
 *
 * A recording has no rows of prompts; an archive may. A request's first PROMPT_ROWS rows stand for
 * its prompt: they are known when it is placed, and it is served from the row behind them on.
 */
#ifndef WORTH_CORPUS_H
#define WORTH_CORPUS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "producer/reference/trace.h"

#define PROMPT_ROWS 32u
#define ROWS_MIN (2 * PROMPT_ROWS) /* shorter requests are left out */
#define EXPERTS_MOST 1024u

struct recorded {
	const uint16_t *ids; /* [rows][layers][top_k] */
	uint32_t rows;
	uint32_t subject;    /* equal for requests from one directory, DATA/COLLECTION/SUBJECT */
	uint32_t collection; /* equal for those from one DATA/COLLECTION */
};

struct corpus {
	struct trace trace;
	struct recorded *request; /* [count] */
	uint32_t count;
	uint32_t cells; /* layers x experts */
};

/* Reads a recording, or an archive where @path is a directory. Returns 0, as trace_read() or
 * archive_reader_open(), or -EINVAL (too little is in it); free with corpus_free(). */
int corpus_read(struct corpus *corpus, const char *path, struct r3ring_error *err);

/* Adds the requests of an archive to an empty corpus: those of the first one's model, each from the
 * last PROMPT_ROWS of its prompt on, as far as its rows are known. Those of one session are of one subject. */
int corpus_read_archive(struct corpus *corpus, const char *dir, struct r3ring_error *err);
void corpus_free(struct corpus *corpus);

/* Adds the visits of rows [row, end) of a request to counts [layers][experts]. */
void corpus_count(const struct corpus *corpus, uint32_t request, uint32_t row, uint32_t end,
		  uint32_t *counts);

/* Half of the requests, drawn by a seed: true for those that are fitted on. */
void corpus_split(const struct corpus *corpus, uint64_t seed, bool *fitted);

/* A random number below @bound; moves the state on. */
uint32_t draw(uint64_t *state, uint32_t bound);

#endif
