/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a request before its next rows, as the library's predictors want it. */
#ifndef WORTH_PREDICTORS_H
#define WORTH_PREDICTORS_H

#include <r3ring/predict.h>

#include "tests/bench/worth/corpus.h"

/* What was learnt from the requests that are fitted on. */
struct knowledge {
	const struct corpus *corpus;
	const bool *fitted;             /* [requests] */
	uint32_t *global;               /* [cells] all their visits */
	struct r3ring_history *history; /* each one's; its class is its collection */
};

/* Returns 0 or -ENOMEM; @fitted must live as long. */
int knowledge_make(struct knowledge *knowledge, const struct corpus *corpus, const bool *fitted);
void knowledge_free(struct knowledge *knowledge);

/* A request whose first @row rows are known. */
struct moment {
	uint32_t request;
	uint32_t row;
};

/* Foretells its next @tokens rows; where the predictor knows nothing, every expert is as likely.
 * Returns 0 or -ENOMEM. */
int knowledge_predict(const struct knowledge *knowledge, enum r3ring_predictor predictor,
		      const struct moment *at, uint32_t tokens, struct r3ring_demand *demand);

#endif
