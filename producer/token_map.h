/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token map of a step: from the caller's arrays by field to the spans of a
 * record. Checks what a decoder checks, so that what is sent is never refused.
 */
#ifndef PRODUCER_TOKEN_MAP_H
#define PRODUCER_TOKEN_MAP_H

#include <stdint.h>

#include <r3ring/producer.h>

/* Bytes of spans and keys as a record has them. */
static inline uint64_t token_map_bytes(const struct r3ring_step *step)
{
	return (uint64_t)step->spans * sizeof(struct r3ring_span) +
	       (uint64_t)step->keys * sizeof(uint64_t);
}

/*
 * Writes spans and keys, token_map_bytes() in all, to @out, 8-byte aligned; with
 * NULL it only checks.
 *
 * @rows: rows that there can be in the step.
 *
 * Returns what is wrong with the map (then @out holds nothing of use), or NULL.
 */
const char *token_map_write(const struct r3ring_step *step, uint32_t rows, void *out);

#endif
