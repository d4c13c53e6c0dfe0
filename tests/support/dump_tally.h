/* SPDX-License-Identifier: Apache-2.0 */
/* What `r3ring dump --json` printed of a test engine's channel, added up. */
#ifndef TESTS_SUPPORT_DUMP_TALLY_H
#define TESTS_SUPPORT_DUMP_TALLY_H

#include <jansson.h>

#include "tests/support/tool_stage.h"

struct dump_tally {
	unsigned int objects, steps, layers, gaps, schemas;
	unsigned int wrong_ids, wrong_gaps, attributed;
	json_int_t first_seq, last_seq, last_generation;
	json_int_t first_lost, lost_records; /* what the gaps tell */
	json_t *lost;                        /* the newest LOST object */
};

/* Of all lines, each of which must be an object. Pairs with dump_tally_free(). */
struct dump_tally dump_tally(const char *text);
void dump_tally_free(struct dump_tally *tally);

#endif
