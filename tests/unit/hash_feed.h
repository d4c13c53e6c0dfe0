/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that run, load or find one block of two tokens, known by its hash. */
#ifndef TESTS_HASH_FEED_H
#define TESTS_HASH_FEED_H

#include "tests/unit/key_feed.h"

#define HASH UINT64_C(100)

extern const uint64_t hash_name; /* HASH */

/* A channel whose keys are hashes of two tokens. */
void hash_create(struct feed *feed, const struct r3ring_assembler_options *options);

/* The block of HASH, in a step of its own. */
void hash_run(struct feed *feed, uint64_t step, uint64_t request, const char *id);
void hash_load(struct feed *feed, uint64_t step, uint64_t request, const char *id);
/* The block is found, then a row is run. */
void hash_find(struct feed *feed, uint64_t step, uint64_t request, const char *id);
/* One request finds the block, and another runs it, in this order; or that of another hash. */
void hash_find_and_run(struct feed *feed, uint64_t step, uint64_t finder, const char *id,
		       uint64_t runner);
void hash_find_and_run_other(struct feed *feed, uint64_t step, uint64_t finder, const char *id,
			     uint64_t runner, uint64_t block);

/* Its draft rows fill the block; the host knows when it knows how many were accepted. */
struct r3ring_span hash_draft(struct feed *feed, uint64_t step, uint64_t request);
void hash_accept(struct feed *feed, uint64_t step, struct r3ring_span drafts);

/* Ends the request, and takes it. */
struct r3ring_assembled *hash_finish(struct feed *feed, uint64_t request, const char *id);
/* And its block is as this step ran it from the row on, or missing. */
void assert_found(struct feed *feed, uint64_t request, const char *id, uint64_t step, uint32_t row);
void assert_cause(struct feed *feed, uint64_t request, const char *id, uint8_t cause);
void assert_unknown(struct feed *feed, uint64_t request, const char *id);
/* In all cells of the block, between these steps. */
void assert_conflict(struct feed *feed, uint64_t request, const char *id, uint64_t step,
		     uint64_t other);

#endif
