/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of a small model whose tests count by themselves: what a step's rows hold is a
 * function of step, row and layer, and is added up here, slowly.
 */
#ifndef TESTS_SIGNATURE_FIXTURE_H
#define TESTS_SIGNATURE_FIXTURE_H

#include "tests/unit/key_feed.h"

#define SIGNATURE_EXPERTS 16u

struct signature_expected {
	uint16_t counts[R3RING_SIGNATURE_PHASES][FEED_LAYERS * SIGNATURE_EXPERTS];
	uint64_t rows[R3RING_SIGNATURE_PHASES];
};

extern struct feed signature_feed;
extern struct r3ring_signature *signature;

/* "test/0" with its schema, and a signature to read into. */
void signature_open(const struct r3ring_signatures_options *options);
void signature_close(void);

/* Rows [first, end) of a step are in it. */
void signature_count(struct signature_expected *expected, enum r3ring_signature_phase phase,
		     uint64_t step, uint32_t first, uint32_t end);

/* A request whose prompt of three tokens is run in that step. */
void signature_live(uint64_t handle, const char *id, uint64_t step);

const struct r3ring_signature_info *signature_get(const char *id);
void signature_expect(const char *id, const struct signature_expected *expected);
void signature_expect_gone(const char *id);
struct r3ring_signatures_stats signature_stats(void);

#endif
