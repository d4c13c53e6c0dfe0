/* SPDX-License-Identifier: Apache-2.0 */
/* Token maps, written a block at a time by vector code, beside spans put together one
 * by one and what a decoder says of them. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <r3ring/record.h>

#include "producer/token_map.h"

#define SPANS_MAX 200u
#define ROWS 4096u
#define GUARD 0xA5u

/* The optional arrays, a bit each. */
enum { ROW = 1, ACCEPTED = 2, KEYS = 4, ATTEMPT = 8, KIND = 16, FLAGS = 32, ALL = 63 };

static uint64_t request[SPANS_MAX], key[SPANS_MAX * 4];
static uint32_t position[SPANS_MAX], row[SPANS_MAX], rows[SPANS_MAX], accepted[SPANS_MAX],
	keys[SPANS_MAX];
static uint16_t attempt[SPANS_MAX];
static uint8_t kind[SPANS_MAX], flags[SPANS_MAX];
static uint32_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * limit >> 32);
}

/* Spans that a decoder takes, with every bit of every field in use. */
static void fill_arrays(void)
{
	for (uint32_t i = 0; i < SPANS_MAX; i++) {
		request[i] = (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX);
		position[i] = random_below(UINT32_MAX - ROWS);
		keys[i] = random_below(4);
		attempt[i] = (uint16_t)random_below(UINT16_MAX);
		kind[i] = (uint8_t)random_below(R3RING_SPAN_EXTERNAL + 1);
		flags[i] = (uint8_t)random_below(2);
	}
}

static bool is_computed(uint32_t i, uint32_t arrays)
{
	return !(arrays & KIND) || kind[i] == R3RING_SPAN_COMPUTED;
}

/* COMPUTED ones in the order of their rows; of those that all begin at row 0 one has any. */
static void fill_rows(uint32_t arrays)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < SPANS_MAX; i++) {
		rows[i] = random_below(12);
		row[i] = random_below(ROWS);
		if (is_computed(i, arrays)) {
			rows[i] = next && !(arrays & ROW) ? 0 : rows[i];
			row[i] = next + random_below(8);
			next = row[i] + rows[i];
		}
		accepted[i] = random_below(4) ? random_below(rows[i] + 1) : R3RING_UNKNOWN_U32;
	}
}

static struct r3ring_step step_of(uint32_t spans, uint32_t arrays)
{
	struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.spans = spans,
		.span_request = request,
		.span_position = position,
		.span_rows = rows,
		.span_row = arrays & ROW ? row : NULL,
		.span_accepted = arrays & ACCEPTED ? accepted : NULL,
		.span_keys = arrays & KEYS ? keys : NULL,
		.span_attempt = arrays & ATTEMPT ? attempt : NULL,
		.span_kind = arrays & KIND ? kind : NULL,
		.span_flags = arrays & FLAGS ? flags : NULL,
	};

	for (uint32_t i = 0; arrays & KEYS && i < spans; i++)
		step.keys += keys[i];
	if (step.keys) {
		step.key = key;
		step.key_kind = R3RING_KEYS_SLOT;
		step.tokens_per_key = 1;
	}
	return step;
}

static struct r3ring_span span_of(const struct r3ring_step *step, uint32_t i)
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

static void assert_written(uint32_t spans, uint32_t arrays)
{
	static uint64_t out[(SPANS_MAX + 4) * sizeof(struct r3ring_span) / 8 + SPANS_MAX * 4];
	struct r3ring_step step;
	const uint8_t *bytes = (const uint8_t *)out;
	const char *fault;
	uint64_t size;

	fill_rows(arrays);
	step = step_of(spans, arrays);
	size = token_map_bytes(&step);
	memset(out, GUARD, sizeof(out));
	fault = token_map_write(&step, ROWS, out);
	cr_assert_null(fault, "%u spans, arrays %x: %s", spans, arrays, fault);
	for (uint32_t i = 0; i < spans; i++) {
		struct r3ring_span wanted = span_of(&step, i);

		cr_assert_arr_eq(bytes + i * sizeof(wanted), &wanted, sizeof(wanted),
				 "span %u of %u, arrays %x", i, spans, arrays);
	}
	cr_assert_arr_eq(bytes + spans * sizeof(struct r3ring_span), key,
			 step.keys * sizeof(uint64_t));
	for (uint64_t i = size; i < size + 64; i++)
		cr_assert_eq(bytes[i], GUARD, "%u spans, arrays %x: written behind", spans, arrays);
}

Test(token_map, every_field_of_every_span_is_in_its_place_whatever_arrays_there_are)
{
	fill_arrays();
	for (uint32_t i = 0; i < SPANS_MAX * 4; i++)
		key[i] = i * 0x0101010101010101u;
	for (uint32_t arrays = 0; arrays <= ALL; arrays++) {
		for (uint32_t spans = 0; spans <= SPANS_MAX; spans++)
			assert_written(spans, arrays);
	}
}

/* ---- faults -------------------------------------------------------------- */

/* What a decoder says of the map in a STEP record. */
static bool decoder_takes(const struct r3ring_step *step)
{
	struct r3ring_span spans[SPANS_MAX];
	uint8_t payload[sizeof(struct r3ring_step_record) + sizeof(spans)];
	const struct r3ring_step_record head = {
		.step = 1,
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.spans = step->spans,
	};
	struct r3ring_record record;

	for (uint32_t i = 0; i < step->spans; i++)
		spans[i] = span_of(step, i);
	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), spans, step->spans * sizeof(*spans));
	return r3ring_record_decode(&record, R3RING_STEP, payload,
				    sizeof(head) + step->spans * sizeof(*spans), NULL) == 0;
}

/* Whether a row of a COMPUTED span is one of the COMPUTED span with rows before it. */
static bool claims_twice(const struct r3ring_step *step)
{
	struct r3ring_span before = {0};

	for (uint32_t i = 0; i < step->spans; i++) {
		struct r3ring_span span = span_of(step, i);

		if (span.kind != R3RING_SPAN_COMPUTED || !span.rows)
			continue;
		for (uint32_t claimed = span.row; claimed < span.row + span.rows; claimed++)
			if (claimed >= before.row && claimed < before.row + before.rows)
				return true;
		before = span;
	}
	return false;
}

/* Near every limit, on both sides of it. */
static void make_doubtful(uint32_t i)
{
	static const uint32_t near[] = {0,    1,          2,          ROWS - 1,
					ROWS, UINT32_MAX, ROWS + 1,   UINT32_MAX - ROWS,
					2,    0x80000000, 0x7FFFFFFF, UINT32_MAX - 1};
	const uint32_t count = sizeof(near) / sizeof(*near);

	position[i] = near[random_below(count)];
	row[i] = near[random_below(count)];
	rows[i] = near[random_below(count)];
	accepted[i] = near[random_below(count)];
	kind[i] = (uint8_t)random_below(R3RING_SPAN_EXTERNAL + 2);
	flags[i] = (uint8_t)random_below(3);
}

Test(token_map, one_span_that_a_decoder_refuses_or_another_claims_is_found_wherever_it_is)
{
	uint32_t refused = 0, taken = 0, claimed = 0;

	for (uint32_t turn = 0; turn < 20000; turn++) {
		uint32_t spans = 1 + random_below(SPANS_MAX);
		uint32_t arrays = random_below(ALL + 1) & ~(uint32_t)KEYS;
		struct r3ring_step step = step_of(spans, arrays);
		bool takes;

		if (turn % 50 == 0)
			fill_arrays();
		fill_rows(arrays);
		make_doubtful(random_below(spans));
		takes = decoder_takes(&step);
		if (takes && claims_twice(&step)) {
			takes = false;
			claimed++;
		}
		cr_assert_eq(!token_map_write(&step, ROWS, NULL), takes, "turn %u", turn);
		refused += !takes;
		taken += takes;
		if (!takes)
			fill_arrays();
	}
	cr_assert_gt(refused, 1000);
	cr_assert_gt(taken, 1000);
	cr_assert_gt(claimed, 500);
}
