/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a request before its next rows: the evidence of each predictor. */
#ifndef WORTH_PREDICTORS_H
#define WORTH_PREDICTORS_H

#include <r3ring/signature.h>

#include "tests/bench/worth/corpus.h"

/* What was learnt from the requests that are fitted on. */
struct knowledge {
	const struct corpus *corpus;
	const bool *fitted;  /* [requests] */
	uint32_t *global;    /* [cells] all their visits */
	uint16_t *signature; /* [requests][cells] each one's */
};

/* Returns 0 or -ENOMEM; @fitted must live as long. */
int knowledge_make(struct knowledge *knowledge, const struct corpus *corpus, const bool *fitted);
void knowledge_free(struct knowledge *knowledge);

struct predictor {
	const char *name;
	/* Fills counts, [cells], zeroed, with what it goes by when the request's first @row
	 * rows are known. */
	void (*fill)(const struct knowledge *knowledge, uint32_t request, uint32_t row,
		     uint32_t *counts);
};

extern const struct predictor predictors[];
extern const uint32_t predictor_count;

/* The one of that name. */
const struct predictor *predictor_named(const char *name);

#endif
