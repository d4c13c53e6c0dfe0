/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of one request that run or find tokens behind keys of a prefix cache. */
#ifndef TESTS_KEY_FEED_H
#define TESTS_KEY_FEED_H

#include "tests/unit/record_feed.h"

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
