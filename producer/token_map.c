/* SPDX-License-Identifier: Apache-2.0 */
/* The token map of a step: the caller's arrays, checked and interleaved in one pass, a
 * block of spans at a time. */
#include <stddef.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "producer/span_block.h"
#include "producer/token_map.h"

#define LINE_WORDS (64u / sizeof(uint64_t))
#define FROM(array, first) ((array) ? (array) + (first) : NULL)

static struct span_block block_from(const struct r3ring_step *step, uint32_t first)
{
	uint32_t rest = step->spans - first;

	return (struct span_block){
		.request = step->span_request + first,
		.position = step->span_position + first,
		.row = FROM(step->span_row, first),
		.rows = step->span_rows + first,
		.accepted = FROM(step->span_accepted, first),
		.keys = FROM(step->span_keys, first),
		.attempt = FROM(step->span_attempt, first),
		.kind = FROM(step->span_kind, first),
		.flags = FROM(step->span_flags, first),
		.count = rest < SPAN_BLOCK ? rest : SPAN_BLOCK,
	};
}

static uint64_t sum_of_keys(const struct span_block *block)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; block->keys && i < block->count; i++)
		sum += block->keys[i];
	return sum;
}

static const char *keys_fault(const struct r3ring_step *step)
{
	if (step->key_kind > R3RING_KEYS_SLOT)
		return "key_kind is unknown";
	if (!step->keys)
		return NULL;
	if (!step->key)
		return "key is NULL, but keys is not 0";
	if (step->key_kind == R3RING_KEYS_NONE)
		return "there are keys, but key_kind is none";
	return step->tokens_per_key ? NULL : "there are keys, but tokens_per_key is 0";
}

/* The lines of the next block were last read by the daemon's core: asked for now, they
 * are here when they are written. @rest: spans from @out on, this block included. */
static void prefetch_next(const uint64_t *out, uint32_t rest)
{
	uint32_t end = rest < 2 * SPAN_BLOCK ? rest : 2 * SPAN_BLOCK;

	for (uint32_t word = SPAN_BLOCK * SPAN_WORDS; word < end * SPAN_WORDS; word += LINE_WORDS)
		r3ring_prefetch_write(out + word);
}

const char *token_map_write(const struct r3ring_step *step, uint32_t rows, void *out)
{
	const char *fault = keys_fault(step);
	struct span_rows before = {0, 0};
	uint64_t *to = out;
	uint64_t keys = 0;

	if (!fault && step->spans &&
	    (!step->span_request || !step->span_position || !step->span_rows))
		fault = "span_request, span_position or span_rows is NULL, but spans is not 0";

	for (uint32_t first = 0; !fault && first < step->spans; first += SPAN_BLOCK) {
		struct span_block block = block_from(step, first);

		if (to)
			prefetch_next(to, step->spans - first);
		fault = span_block_fault(&block, rows, &before);
		keys += sum_of_keys(&block);
		if (!to || fault)
			continue;
		span_block_write(to, &block);
		to += block.count * SPAN_WORDS;
	}
	if (!fault && keys != step->keys)
		fault = "the sum of span_keys is not keys";
	if (!fault && to && step->keys)
		memcpy(to, step->key, step->keys * sizeof(uint64_t));
	return fault;
}
