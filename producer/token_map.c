/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token map of a step: the caller's arrays are interleaved and checked in one
 * pass without branches, because a step may have a thousand spans.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "producer/token_map.h"

#define LINES_AHEAD 16u
#define SPANS_PER_LINE (64u / sizeof(struct r3ring_span))

/*
 * The caller's arrays. One that is left out is a single default: its index is
 * always masked to 0.
 */
struct columns {
	const uint64_t *request;
	const uint32_t *position, *row, *rows, *accepted, *keys;
	const uint16_t *attempt;
	const uint8_t *kind, *flags;
	uint32_t row_mask, accepted_mask, keys_mask, attempt_mask, kind_mask, flags_mask;
};

static const uint32_t zero32, unknown32 = R3RING_UNKNOWN_U32;
static const uint16_t zero16;
static const uint8_t zero8; /* R3RING_SPAN_COMPUTED, and no flags */

static uint32_t mask_of(const void *array)
{
	return array ? UINT32_MAX : 0;
}

static struct columns columns_of(const struct r3ring_step *step)
{
	return (struct columns){
		.request = step->span_request,
		.position = step->span_position,
		.row = step->span_row ? step->span_row : &zero32,
		.rows = step->span_rows,
		.accepted = step->span_accepted ? step->span_accepted : &unknown32,
		.keys = step->span_keys ? step->span_keys : &zero32,
		.attempt = step->span_attempt ? step->span_attempt : &zero16,
		.kind = step->span_kind ? step->span_kind : &zero8,
		.flags = step->span_flags ? step->span_flags : &zero8,
		.row_mask = mask_of(step->span_row),
		.accepted_mask = mask_of(step->span_accepted),
		.keys_mask = mask_of(step->span_keys),
		.attempt_mask = mask_of(step->span_attempt),
		.kind_mask = mask_of(step->span_kind),
		.flags_mask = mask_of(step->span_flags),
	};
}

static inline struct r3ring_span span_at(const struct columns *c, uint32_t i)
{
	return (struct r3ring_span){
		.request = c->request[i],
		.position = c->position[i],
		.row = c->row[i & c->row_mask],
		.rows = c->rows[i],
		.accepted = c->accepted[i & c->accepted_mask],
		.keys = c->keys[i & c->keys_mask],
		.attempt = c->attempt[i & c->attempt_mask],
		.kind = c->kind[i & c->kind_mask],
		.flags = c->flags[i & c->flags_mask],
	};
}

static inline uint64_t pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

/* As it lies in memory, in four stores instead of nine. */
static inline void span_store(uint64_t *out, const struct r3ring_span *span)
{
	uint32_t last = span->attempt | (uint32_t)span->kind << 16 | (uint32_t)span->flags << 24;

	out[0] = span->request;
	out[1] = pair(span->position, span->row);
	out[2] = pair(span->rows, span->accepted);
	out[3] = pair(span->keys, last);
}

R3RING_STATIC_ASSERT(offsetof(struct r3ring_span, row) == 12 &&
			     offsetof(struct r3ring_span, accepted) == 20 &&
			     offsetof(struct r3ring_span, attempt) == 28 &&
			     offsetof(struct r3ring_span, kind) == 30 &&
			     offsetof(struct r3ring_span, flags) == 31,
		     "span layout as span_store() has it");

/* Bits, so that a loop can gather them without a branch. */
enum span_fault {
	FAULT_KIND = 1u << 0,
	FAULT_FLAGS = 1u << 1,
	FAULT_POSITION = 1u << 2,
	FAULT_ROWS = 1u << 3,
	FAULT_ACCEPTED = 1u << 4,
};

static inline uint32_t span_faults(const struct r3ring_span *span, uint32_t rows)
{
	bool computed = span->kind == R3RING_SPAN_COMPUTED;
	bool draft = span->flags & R3RING_SPAN_DRAFT;
	bool known = span->accepted != R3RING_UNKNOWN_U32;
	uint64_t end = (uint64_t)span->position + span->rows;
	uint64_t row_end = (uint64_t)span->row + span->rows;

	return (span->kind > R3RING_SPAN_EXTERNAL) * FAULT_KIND |
	       (span->flags > R3RING_SPAN_DRAFT) * FAULT_FLAGS |
	       (end > R3RING_UNKNOWN_U32) * FAULT_POSITION |
	       (computed & (row_end > rows)) * FAULT_ROWS |
	       (draft & known & (span->accepted > span->rows)) * FAULT_ACCEPTED;
}

static const char *fault_text(uint32_t faults)
{
	if (faults & FAULT_KIND)
		return "span_kind has an unknown kind";
	if (faults & FAULT_FLAGS)
		return "span_flags has an unknown flag";
	if (faults & FAULT_POSITION)
		return "a span ends beyond the last position";
	if (faults & FAULT_ROWS)
		return "a COMPUTED span has rows outside of the step";
	return "a DRAFT span has more accepted than drafted";
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

/* Gathers faults and the sum of keys; writes where there is an @out. */
static inline uint32_t walk(const struct columns *columns, uint32_t spans, uint32_t rows,
			    uint64_t *out, uint64_t *keys)
{
	uint32_t faults = 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < spans; i++) {
		struct r3ring_span span = span_at(columns, i);

		faults |= span_faults(&span, rows);
		sum += span.keys;
		if (!out)
			continue;
		if (i % SPANS_PER_LINE == 0)
			r3ring_prefetch_write(out + LINES_AHEAD * 8);
		span_store(out, &span);
		out += sizeof(span) / sizeof(*out);
	}
	*keys = sum;
	return faults;
}

const char *token_map_write(const struct r3ring_step *step, uint32_t rows, void *out)
{
	const char *fault = keys_fault(step);
	struct columns columns = columns_of(step);
	uint64_t keys;
	uint32_t faults;

	if (fault)
		return fault;
	if (step->spans && (!step->span_request || !step->span_position || !step->span_rows))
		return "span_request, span_position or span_rows is NULL, but spans is not 0";

	/* Two calls, so that each becomes a loop that does not ask. */
	faults = out ? walk(&columns, step->spans, rows, out, &keys)
		     : walk(&columns, step->spans, rows, NULL, &keys);
	if (faults)
		return fault_text(faults);
	if (keys != step->keys)
		return "the sum of span_keys is not keys";
	if (out && step->keys)
		memcpy((struct r3ring_span *)out + step->spans, step->key,
		       step->keys * sizeof(uint64_t));
	return NULL;
}
