/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks are plain loops, compiled for each level of vector instructions (the
 * Makefile asks for vectorization in this file). Interleaving is left to the compiler
 * but on x86, where it takes twice as long as need be.
 */
#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "producer/span_block.h"

#define EVERY_LEVEL static inline __attribute__((always_inline))

/* ---- checks: a decoder's ---------------------------------------------- */

EVERY_LEVEL bool position_faults(const struct span_block *b)
{
	uint32_t bad = 0;

	/* A sum beyond 32 bits comes out less than its parts. */
	for (uint32_t i = 0; i < b->count; i++)
		bad |= b->position[i] + b->rows[i] < b->position[i];
	return bad;
}

EVERY_LEVEL bool kind_faults(const struct span_block *b)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; b->kind && i < b->count; i++)
		bad |= b->kind[i] > R3RING_SPAN_EXTERNAL;
	return bad;
}

EVERY_LEVEL bool flags_faults(const struct span_block *b)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; b->flags && i < b->count; i++)
		bad |= b->flags[i] > R3RING_SPAN_DRAFT;
	return bad;
}

/* Only COMPUTED spans have rows in the step. */
EVERY_LEVEL bool row_faults(const struct span_block *b, uint32_t rows)
{
	uint32_t bad = 0;

	if (b->row && !b->kind) {
		for (uint32_t i = 0; i < b->count; i++) {
			uint32_t end = b->row[i] + b->rows[i];

			bad |= (end < b->row[i]) | (end > rows);
		}
		return bad;
	}
	for (uint32_t i = 0; i < b->count; i++) {
		uint64_t end = (uint64_t)(b->row ? b->row[i] : 0) + b->rows[i];
		bool computed = !b->kind || b->kind[i] == R3RING_SPAN_COMPUTED;

		bad |= computed & (end > rows);
	}
	return bad;
}

EVERY_LEVEL bool accepted_faults(const struct span_block *b)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; b->flags && b->accepted && i < b->count; i++) {
		bool draft = b->flags[i] & R3RING_SPAN_DRAFT;
		bool known = b->accepted[i] != R3RING_UNKNOWN_U32;

		bad |= draft & known & (b->accepted[i] > b->rows[i]);
	}
	return bad;
}

/* ---- checks: rows that two spans claim ---------------------------------- */

/* Whether COMPUTED spans are in the order of their rows and apart, with one look at each. */
EVERY_LEVEL bool are_apart(const struct span_block *b, uint32_t end)
{
	uint32_t bad = b->row[0] < end;

	for (uint32_t i = 1; i < b->count; i++)
		bad |= b->row[i] < b->row[i - 1] + b->rows[i - 1];
	return !bad;
}

/* In any order, with spans between that have no rows: each beside the one before it. */
static bool overlap_before(const struct span_block *b, struct span_rows *before)
{
	bool bad = false;

	for (uint32_t i = 0; i < b->count; i++) {
		const uint32_t row = b->row ? b->row[i] : 0, end = row + b->rows[i];

		if (!b->rows[i] || (b->kind && b->kind[i] != R3RING_SPAN_COMPUTED))
			continue;
		bad |= row < before->end && before->row < end;
		*before = (struct span_rows){row, end};
	}
	return bad;
}

EVERY_LEVEL bool overlap_faults(const struct span_block *b, struct span_rows *before)
{
	const uint32_t last = b->count - 1;

	if (!b->row || b->kind || !are_apart(b, before->end))
		return overlap_before(b, before);
	*before = (struct span_rows){b->row[last], b->row[last] + b->rows[last]};
	return false;
}

EVERY_LEVEL const char *fault_of(const struct span_block *b, uint32_t rows,
				 struct span_rows *before)
{
	if (position_faults(b))
		return "a span ends beyond the last position";
	if (kind_faults(b))
		return "span_kind has an unknown kind";
	if (flags_faults(b))
		return "span_flags has an unknown flag";
	if (row_faults(b, rows))
		return "a COMPUTED span has rows outside of the step";
	if (accepted_faults(b))
		return "a DRAFT span has more accepted than drafted";
	if (overlap_faults(b, before))
		return "spans overlap: two COMPUTED spans claim a row";
	return NULL;
}

/* ---- interleaving ------------------------------------------------------ */

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

/* Arrays for all of a span: the words that it is made of. */
struct whole {
	const uint64_t *request;
	const uint32_t *position, *row;
	const uint32_t *rows, *accepted;
	const uint64_t *kinds; /* keys, attempt, kind, flags */
};

/* What stands for an array that was left out. */
static const uint64_t no_kinds[SPAN_BLOCK];
static const uint32_t first_row[SPAN_BLOCK];
static const uint32_t not_known[SPAN_BLOCK] = {[0 ... SPAN_BLOCK - 1] = R3RING_UNKNOWN_U32};

EVERY_LEVEL void fill_kinds(uint64_t *kinds, const struct span_block *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		kinds[i] = b->keys ? b->keys[i] : 0;
	for (uint32_t i = 0; b->attempt && i < b->count; i++)
		kinds[i] |= (uint64_t)b->attempt[i] << 32;
	for (uint32_t i = 0; b->kind && i < b->count; i++)
		kinds[i] |= (uint64_t)b->kind[i] << 48;
	for (uint32_t i = 0; b->flags && i < b->count; i++)
		kinds[i] |= (uint64_t)b->flags[i] << 56;
}

/* @kinds: room for SPAN_BLOCK. */
EVERY_LEVEL struct whole whole_of(const struct span_block *b, uint64_t *kinds)
{
	bool plain = !b->keys && !b->attempt && !b->kind && !b->flags;

	if (!plain)
		fill_kinds(kinds, b);
	return (struct whole){
		.request = b->request,
		.position = b->position,
		.row = b->row ? b->row : first_row,
		.rows = b->rows,
		.accepted = b->accepted ? b->accepted : not_known,
		.kinds = plain ? no_kinds : kinds,
	};
}

EVERY_LEVEL void interleave(uint64_t *out, const struct whole *w, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		out[SPAN_WORDS * i] = w->request[i];
		out[SPAN_WORDS * i + 1] = w->position[i] | (uint64_t)w->row[i] << 32;
		out[SPAN_WORDS * i + 2] = w->rows[i] | (uint64_t)w->accepted[i] << 32;
		out[SPAN_WORDS * i + 3] = w->kinds[i];
	}
}

static void write_plain(uint64_t *out, const struct span_block *block)
{
	uint64_t kinds[SPAN_BLOCK];
	struct whole whole = whole_of(block, kinds);

	interleave(out, &whole, 0, block->count);
}

/* ---- levels ------------------------------------------------------------- */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m128i load(const void *from)
{
	return _mm_loadu_si128(from);
}

/* Two spans from two words of each kind. */
AVX2 static inline void write_two(uint64_t *out, __m128i request, __m128i places, __m128i counts,
				  __m128i kinds)
{
	__m256i even = _mm256_inserti128_si256(_mm256_castsi128_si256(request), counts, 1);
	__m256i odd = _mm256_inserti128_si256(_mm256_castsi128_si256(places), kinds, 1);
	__m256i *to = (__m256i *)(void *)out;

	_mm256_storeu_si256(to, _mm256_unpacklo_epi64(even, odd));
	_mm256_storeu_si256(to + 1, _mm256_unpackhi_epi64(even, odd));
}

AVX2 static inline void write_four(uint64_t *out, const struct whole *w, uint32_t i)
{
	__m128i position = load(w->position + i), row = load(w->row + i);
	__m128i rows = load(w->rows + i), accepted = load(w->accepted + i);

	out += SPAN_WORDS * i;
	write_two(out, load(w->request + i), _mm_unpacklo_epi32(position, row),
		  _mm_unpacklo_epi32(rows, accepted), load(w->kinds + i));
	write_two(out + 2 * SPAN_WORDS, load(w->request + i + 2), _mm_unpackhi_epi32(position, row),
		  _mm_unpackhi_epi32(rows, accepted), load(w->kinds + i + 2));
}

AVX2 static void write_avx2(uint64_t *out, const struct span_block *block)
{
	uint64_t kinds[SPAN_BLOCK];
	struct whole whole = whole_of(block, kinds);
	uint32_t fours = block->count & ~3u;

	for (uint32_t i = 0; i < fours; i += 4)
		write_four(out, &whole, i);
	interleave(out, &whole, fours, block->count);
}

AVX2 static const char *fault_avx2(const struct span_block *block, uint32_t rows,
				   struct span_rows *before)
{
	return fault_of(block, rows, before);
}

const char *span_block_fault(const struct span_block *block, uint32_t rows,
			     struct span_rows *before)
{
	return __builtin_cpu_supports("avx2") ? fault_avx2(block, rows, before)
					      : fault_of(block, rows, before);
}

void span_block_write(uint64_t *out, const struct span_block *block)
{
	if (__builtin_cpu_supports("avx2"))
		write_avx2(out, block);
	else
		write_plain(out, block);
}

#else

/* The baseline of other machines has vector instructions (NEON). */
const char *span_block_fault(const struct span_block *block, uint32_t rows,
			     struct span_rows *before)
{
	return fault_of(block, rows, before);
}

void span_block_write(uint64_t *out, const struct span_block *block)
{
	write_plain(out, block);
}

#endif
