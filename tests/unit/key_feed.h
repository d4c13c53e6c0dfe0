/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of one request that run tokens, or find them behind keys of a prefix cache, on a channel
 * or on two.
 */
#ifndef TESTS_KEY_FEED_H
#define TESTS_KEY_FEED_H

#include "tests/unit/record_feed.h"

/* A channel whose keys are slots of two tokens. */
void feed_create_slots(struct feed *feed, const struct r3ring_assembler_options *options);
/* "test/0" and @name, which is returned, by both of which a request's end must be told. */
struct feed feed_create_pair(struct feed *one, const char *name);

/* The next request is of two that these channels ran, and says so and no more. */
void feed_expect_mixed(struct feed *from, const char *id, const char *one, const char *other);

struct r3ring_span keyed_span(uint64_t request, uint8_t kind, uint32_t position, uint32_t row,
			      uint32_t rows, uint32_t keys);

void feed_computed(struct feed *feed, uint64_t step, uint64_t request, uint32_t position,
		   uint32_t rows, const uint64_t *keys, uint32_t key_count);
/* @rows positions from a cache, then one row that is run. */
void feed_cached(struct feed *feed, uint64_t step, uint64_t request, uint32_t rows,
		 const uint64_t *keys, uint32_t key_count);
/* Ends the request, and takes it. */
struct r3ring_assembled *feed_finish(struct feed *feed, uint64_t request, const char *id,
				     uint32_t accepted);

#endif
