/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load of a small model whose tests count by themselves: what a step's rows hold is a
 * function of step, row and layer, and is added up here, slowly.
 */
#ifndef TESTS_LOAD_FIXTURE_H
#define TESTS_LOAD_FIXTURE_H

#include "tests/unit/record_feed.h"

#define LOAD_EXPERTS 8u

struct expected {
	double counts[FEED_LAYERS][LOAD_EXPERTS];
	double rows[FEED_LAYERS];
};

extern struct feed load_feed;
extern struct r3ring_load_snapshot *snapshot;

/* "test/0" with its schema, and a snapshot to read into. */
void load_open(const struct r3ring_load_options *options);
void load_close(void);

/* Rows [first, end) of a step were load. */
void expect_rows(struct expected *expected, uint64_t step, uint32_t first, uint32_t end);

/* Reads all steps of the window of steps, and compares. */
const struct r3ring_load_info *read_load(uint32_t channel);
void expect_load(const struct expected *expected, uint32_t channel);
void expect_info(const struct r3ring_load_info *info, const struct expected *expected);

struct r3ring_span load_span(uint64_t request, uint32_t position, uint32_t row, uint32_t rows);
struct r3ring_span load_draft(uint64_t request, uint32_t position, uint32_t row, uint32_t rows,
			      uint32_t accepted);

#endif
