/* SPDX-License-Identifier: Apache-2.0 */
/* How well each predictor foretells a request's next rows. */
#ifndef WORTH_FORETELL_H
#define WORTH_FORETELL_H

#include <jansson.h>

#include "tests/bench/worth/corpus.h"

/* Prints a table and adds its rows to @json. Returns 0 or -ENOMEM. */
int foretell(const struct corpus *corpus, uint32_t seeds, json_t *json);

#endif
