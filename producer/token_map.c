/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token map of a step: the caller's arrays, checked and interleaved in one
 * pass. A step may have a thousand spans, so this works in blocks that stay in the
 * first cache, in plain loops that compilers turn into vector code.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "producer/token_map.h"

#define BLOCK 64u
#define SPAN_WORDS (sizeof(struct r3ring_span) / sizeof(uint64_t))
#define LINE_WORDS (64u / sizeof(uint64_t))

/* The caller's arrays from one span on; what was left out is NULL. */
struct columns {
	const uint64_t *request;
	const uint32_t *position, *row, *rows, *accepted, *keys;
	const uint16_t *attempt;
	const uint8_t *kind, *flags;
};

#define FROM(array, first) ((array) ? (array) + (first) : NULL)

static struct columns columns_from(const struct r3ring_step *step, uint32_t first)
{
	return (struct columns){
		.request = step->span_request + first,
		.position = step->span_position + first,
		.row = FROM(step->span_row, first),
		.rows = step->span_rows + first,
		.accepted = FROM(step->span_accepted, first),
		.keys = FROM(step->span_keys, first),
		.attempt = FROM(step->span_attempt, first),
		.kind = FROM(step->span_kind, first),
		.flags = FROM(step->span_flags, first),
	};
}

/* ---- checks: a decoder's ---------------------------------------------- */

static bool position_faults(const struct columns *c, uint32_t n)
{
	uint32_t bad = 0;

	/* A sum beyond 32 bits comes out less than its parts. */
	for (uint32_t i = 0; i < n; i++)
		bad |= c->position[i] + c->rows[i] < c->position[i];
	return bad;
}

static bool kind_faults(const struct columns *c, uint32_t n)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; c->kind && i < n; i++)
		bad |= c->kind[i] > R3RING_SPAN_EXTERNAL;
	return bad;
}

static bool flags_faults(const struct columns *c, uint32_t n)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; c->flags && i < n; i++)
		bad |= c->flags[i] > R3RING_SPAN_DRAFT;
	return bad;
}

/* Only COMPUTED spans have rows in the step. */
static bool row_faults(const struct columns *c, uint32_t n, uint32_t rows)
{
	uint32_t bad = 0;

	if (c->row && !c->kind) {
		for (uint32_t i = 0; i < n; i++)
			bad |= (c->row[i] > rows) | (c->rows[i] > rows - c->row[i]);
		return bad;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t end = (uint64_t)(c->row ? c->row[i] : 0) + c->rows[i];
		bool computed = !c->kind || c->kind[i] == R3RING_SPAN_COMPUTED;

		bad |= computed & (end > rows);
	}
	return bad;
}

static bool accepted_faults(const struct columns *c, uint32_t n)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; c->flags && c->accepted && i < n; i++) {
		bool draft = c->flags[i] & R3RING_SPAN_DRAFT;
		bool known = c->accepted[i] != R3RING_UNKNOWN_U32;

		bad |= draft & known & (c->accepted[i] > c->rows[i]);
	}
	return bad;
}

static const char *block_fault(const struct columns *c, uint32_t n, uint32_t rows)
{
	if (position_faults(c, n))
		return "a span ends beyond the last position";
	if (kind_faults(c, n))
		return "span_kind has an unknown kind";
	if (flags_faults(c, n))
		return "span_flags has an unknown flag";
	if (row_faults(c, n, rows))
		return "a COMPUTED span has rows outside of the step";
	if (accepted_faults(c, n))
		return "a DRAFT span has more accepted than drafted";
	return NULL;
}

static uint64_t sum_of_keys(const struct columns *c, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; c->keys && i < n; i++)
		sum += c->keys[i];
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

/* ---- interleaving ------------------------------------------------------ */

/* A span as four words; the first is the request. */
struct words {
	uint64_t places[BLOCK]; /* position, row */
	uint64_t counts[BLOCK]; /* rows, accepted */
	uint64_t kinds[BLOCK];  /* keys, attempt, kind, flags */
};

R3RING_STATIC_ASSERT(offsetof(struct r3ring_span, position) == 8 &&
			     offsetof(struct r3ring_span, row) == 12 &&
			     offsetof(struct r3ring_span, rows) == 16 &&
			     offsetof(struct r3ring_span, accepted) == 20 &&
			     offsetof(struct r3ring_span, keys) == 24 &&
			     offsetof(struct r3ring_span, attempt) == 28 &&
			     offsetof(struct r3ring_span, kind) == 30 &&
			     offsetof(struct r3ring_span, flags) == 31 &&
			     sizeof(struct r3ring_span) == 32,
		     "span layout in words");

static void pair(uint64_t *out, const uint32_t *low, const uint32_t *high, uint32_t otherwise,
		 uint32_t n)
{
	if (high) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = low[i] | (uint64_t)high[i] << 32;
	} else {
		for (uint32_t i = 0; i < n; i++)
			out[i] = low[i] | (uint64_t)otherwise << 32;
	}
}

static void fill_kinds(uint64_t *out, const struct columns *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = c->keys ? c->keys[i] : 0;
	for (uint32_t i = 0; c->attempt && i < n; i++)
		out[i] |= (uint64_t)c->attempt[i] << 32;
	for (uint32_t i = 0; c->kind && i < n; i++)
		out[i] |= (uint64_t)c->kind[i] << 48;
	for (uint32_t i = 0; c->flags && i < n; i++)
		out[i] |= (uint64_t)c->flags[i] << 56;
}

static void write_block(uint64_t *out, const struct columns *c, uint32_t n)
{
	struct words words;

	pair(words.places, c->position, c->row, 0, n);
	pair(words.counts, c->rows, c->accepted, R3RING_UNKNOWN_U32, n);
	fill_kinds(words.kinds, c, n);
	for (uint32_t i = 0; i < n; i++) {
		out[SPAN_WORDS * i] = c->request[i];
		/* cppcheck-suppress uninitvar ; pair() and fill_kinds() fill the first n */
		out[SPAN_WORDS * i + 1] = words.places[i];
		out[SPAN_WORDS * i + 2] = words.counts[i];
		out[SPAN_WORDS * i + 3] = words.kinds[i];
	}
}

/* The lines that come after a block were last read by the daemon's core: asked for
 * now, they are here when they are written. */
static void prefetch_block(const uint64_t *out, uint32_t n)
{
	for (uint32_t word = 0; word < n * SPAN_WORDS; word += LINE_WORDS)
		r3ring_prefetch_write(out + word);
}

const char *token_map_write(const struct r3ring_step *step, uint32_t rows, void *out)
{
	const char *fault = keys_fault(step);
	uint64_t *to = out;
	uint64_t keys = 0;

	if (!fault && step->spans &&
	    (!step->span_request || !step->span_position || !step->span_rows))
		fault = "span_request, span_position or span_rows is NULL, but spans is not 0";

	for (uint32_t first = 0; !fault && first < step->spans; first += BLOCK) {
		struct columns columns = columns_from(step, first);
		uint32_t rest = step->spans - first;
		uint32_t n = rest < BLOCK ? rest : BLOCK;

		if (to && rest > BLOCK)
			prefetch_block(to + (size_t)n * SPAN_WORDS,
				       rest - BLOCK < BLOCK ? rest - BLOCK : BLOCK);
		fault = block_fault(&columns, n, rows);
		keys += sum_of_keys(&columns, n);
		if (!to || fault)
			continue;
		write_block(to, &columns, n);
		to += (size_t)n * SPAN_WORDS;
	}
	if (!fault && keys != step->keys)
		fault = "the sum of span_keys is not keys";
	if (!fault && to && step->keys)
		memcpy(to, step->key, step->keys * sizeof(uint64_t));
	return fault;
}
