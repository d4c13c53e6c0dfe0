/* SPDX-License-Identifier: Apache-2.0 */
/* The token map of a step: checking the caller's arrays and interleaving them. */
#include <string.h>

#include "producer/token_map.h"

static inline struct r3ring_span span_at(const struct r3ring_step *step, uint32_t i)
{
	return (struct r3ring_span){
		.request = step->span_request[i],
		.position = step->span_position[i],
		.row = step->span_row ? step->span_row[i] : 0,
		.rows = step->span_rows[i],
		.accepted = step->span_accepted ? step->span_accepted[i] : R3RING_UNKNOWN_U32,
		.keys = step->span_keys ? step->span_keys[i] : 0,
		.attempt = step->span_attempt ? step->span_attempt[i] : 0,
		.kind = step->span_kind ? step->span_kind[i] : R3RING_SPAN_COMPUTED,
		.flags = step->span_flags ? step->span_flags[i] : 0,
	};
}

static inline bool span_fits(const struct r3ring_span *span, uint32_t rows)
{
	bool draft = span->flags & R3RING_SPAN_DRAFT;

	if (span->kind > R3RING_SPAN_EXTERNAL || (span->flags & ~(uint32_t)R3RING_SPAN_DRAFT))
		return false;
	if ((uint64_t)span->position + span->rows > R3RING_UNKNOWN_U32)
		return false;
	if (span->kind == R3RING_SPAN_COMPUTED && (uint64_t)span->row + span->rows > rows)
		return false;
	return !draft || span->accepted == R3RING_UNKNOWN_U32 || span->accepted <= span->rows;
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

const char *token_map_fault(const struct r3ring_step *step, uint32_t rows)
{
	const char *fault = keys_fault(step);
	uint64_t keys = 0;

	if (fault)
		return fault;
	if (step->spans && (!step->span_request || !step->span_position || !step->span_rows))
		return "span_request, span_position or span_rows is NULL, but spans is not 0";

	for (uint32_t i = 0; i < step->spans; i++) {
		struct r3ring_span span = span_at(step, i);

		if (!span_fits(&span, rows))
			return "a span has an unknown kind or flag, rows outside of the step, a "
			       "position out of range, or more accepted than drafted";
		keys += span.keys;
	}
	return keys == step->keys ? NULL : "the sum of span_keys is not keys";
}

void token_map_write(const struct r3ring_step *step, void *out)
{
	struct r3ring_span *spans = out;

	for (uint32_t i = 0; i < step->spans; i++)
		spans[i] = span_at(step, i);
	if (step->keys)
		memcpy(spans + step->spans, step->key, step->keys * sizeof(uint64_t));
}
