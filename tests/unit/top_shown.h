/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of `r3ring top` that a test draws, and what it expects to be shown. */
#ifndef TESTS_UNIT_TOP_SHOWN_H
#define TESTS_UNIT_TOP_SHOWN_H

#include "tests/support/top_stage.h"

/* A daemon whose only channel loses nothing. */
#define TOP_QUIET                                                                                  \
	"{\"daemon\":{\"pid\":7},\"channels\":[{\"channel\":\"a/0\",\"model\":\"m\","              \
	"\"state\":\"live\",\"generation\":3,\"steps\":10,\"bound_layers\":[3,4]}]}"

/* One a process: what the functions below speak of. */
extern struct top_stage stage;

/* For .fini. */
void top_shown_free(void);

void expect_shown(const char *part);
void expect_not_shown(const char *part);
enum grid_style style_at(uint32_t row, uint32_t column);

/* Counts of two layers: the first one's 4 experts are even, in the second one has half of the ids. */
extern const double top_two_layers[2][4];

/* Counts of so many layers: all even, but that the last one's last expert is hot. To be freed. */
double *top_many(uint32_t layers, uint32_t experts);

#endif
