/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of many requests in one step: where they lie, and what becomes of them when some go. */
#include <stdio.h>
#include <string.h>

#include "consumer/assembler/fill.h"
#include "consumer/assembler/row_pages.h"
#include "tests/unit/record_feed.h"

#define REQUESTS 150u
#define STEPS 8u

static struct feed channel;

static void open_channel(void)
{
	feed_create(&channel, NULL);
	feed_schema(&channel);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_rows, .init = open_channel, .fini = close_channel);

static const char *id_of(uint32_t request)
{
	static char id[16];

	snprintf(id, sizeof(id), "r%u", request);
	return id;
}

static void begin_all(uint32_t requests)
{
	for (uint32_t i = 0; i < requests; i++)
		feed_begin(&channel, i + 1, id_of(i), 1, 0);
}

/* Each request a row, at position @step - 1; those of [first, requests) that @apart divides. */
static void decode(uint64_t step, uint32_t requests, uint32_t apart)
{
	struct r3ring_span spans[REQUESTS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < requests; i += apart, count++)
		spans[count] = (struct r3ring_span){.request = i + 1,
						    .position = (uint32_t)step - 1,
						    .row = count,
						    .rows = 1,
						    .accepted = R3RING_UNKNOWN_U32};
	feed_whole(&channel, step, count, spans, count);
}

static struct r3ring_assembled *end(uint32_t request, uint32_t tokens)
{
	feed_end(&channel, request + 1, R3RING_END_FINISHED, 0, tokens);
	return take(&channel, id_of(request));
}

static struct r3ring_assembler_stats stats_of(void)
{
	struct r3ring_assembler_stats stats;

	r3ring_assembler_get_stats(channel.assembler, &stats);
	return stats;
}

Test(assembler_rows, those_that_outlive_the_others_of_their_steps_keep_their_ids_and_little_more)
{
	uint64_t all;

	begin_all(REQUESTS);
	for (uint64_t step = 1; step <= STEPS; step++)
		decode(step, REQUESTS, 1);
	all = stats_of().bytes;
	for (uint32_t i = 0; i < REQUESTS; i++)
		if (i % 10)
			r3ring_assembled_free(end(i, STEPS + 1));
	cr_assert_lt(stats_of().bytes, all - REQUESTS * STEPS / 2 * FEED_LAYERS * FEED_TOP_K * 2);
	for (uint32_t i = 0; i < REQUESTS; i += 10) {
		struct r3ring_assembled *got = end(i, STEPS + 1);

		for (uint32_t position = 0; position < STEPS; position++)
			assert_row(got, position, position + 1, i);
		r3ring_assembled_free(got);
	}
	cr_assert_eq(stats_of().bytes, 0);
}

Test(assembler_rows, what_requests_that_ended_left_goes_before_any_request_does)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options),
							 .max_bytes = 111000};
	struct r3ring_assembled *got;

	feed_destroy(&channel);
	feed_create(&channel, &options);
	feed_schema(&channel);
	begin_all(60);
	for (uint64_t step = 1; step <= 20; step++)
		decode(step, 60, 1);
	for (uint32_t i = 1; i < 60; i += 2)
		r3ring_assembled_free(end(i, 21));
	for (uint64_t step = 21; step <= 30; step++)
		decode(step, 60, 2);
	cr_assert_eq(stats_of().requests_evicted, 0);
	cr_assert_leq(stats_of().bytes, options.max_bytes);
	got = end(8, 31);
	for (uint32_t position = 0; position < 30; position++)
		assert_row(got, position, position + 1, position < 20 ? 8 : 4);
	r3ring_assembled_free(got);
}

Test(assembler_rows, a_handle_used_again_in_the_same_place_of_a_step_is_the_new_requests)
{
	struct r3ring_span spans[2] = {
		{.request = 1, .rows = 1, .accepted = R3RING_UNKNOWN_U32},
		{.request = 2, .row = 1, .rows = 1, .accepted = R3RING_UNKNOWN_U32},
	};
	struct r3ring_assembled *former, *got;

	begin_all(2);
	feed_whole(&channel, 1, 2, spans, 2);
	former = end(0, 2);
	feed_begin(&channel, 1, "again", 1, 0);
	spans[1].position = 1;
	feed_whole(&channel, 2, 2, spans, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&channel, "again");
	assert_row(got, 0, 2, 0);
	r3ring_assembled_free(former);
	r3ring_assembled_free(got);
}

/* ids[positions][layers][top_k] of a request whose rows are those of step 1. */
static void expect_ids(const uint16_t *ids, uint32_t position, uint32_t positions, uint32_t layer,
		       uint32_t layers)
{
	for (uint32_t i = 0; i < positions; i++)
		for (uint32_t j = 0; j < layers; j++)
			for (uint32_t k = 0; k < FEED_TOP_K; k++)
				cr_assert_eq(ids[(i * layers + j) * FEED_TOP_K + k],
					     feed_id(0, 1, position + i, layer + j, k));
}

Test(assembler_rows, read_at_once_and_one_by_one_are_the_same)
{
	const struct r3ring_span span = {
		.request = 1, .rows = REQUESTS, .accepted = R3RING_UNKNOWN_U32};
	uint16_t ids[REQUESTS * FEED_LAYERS * FEED_TOP_K];
	const struct r3ring_assembled_rows rows = {.ids = ids};
	struct r3ring_assembled *got;

	begin_all(1);
	feed_whole(&channel, 1, REQUESTS, &span, 1);
	got = end(0, REQUESTS + 1);
	for (int again = 0; again < 2; again++) {
		cr_assert_eq(r3ring_assembled_read(got, 0, REQUESTS, 0, FEED_LAYERS, &rows), 0);
		expect_ids(ids, 0, REQUESTS, 0, FEED_LAYERS);
		cr_assert_eq(r3ring_assembled_read(got, 30, 70, 1, 2, &rows), 0);
		expect_ids(ids, 30, 70, 1, 2);
		for (uint32_t position = 0; position < REQUESTS; position++) {
			cr_assert_eq(r3ring_assembled_read(got, position, 1, 1, 1, &rows), 0);
			expect_ids(ids, position, 1, 1, 1);
		}
	}
	r3ring_assembled_free(got);
}

/* ---- parts -------------------------------------------------------------- */

/* Cells of 5 layers of 9 rows, some of them, to where they lie row by row. */
static void gather(uint32_t top_k, bool loose)
{
	enum { LAYERS = 5, ROWS = 9, KEPT = 3 };
	static const uint32_t kept[KEPT] = {0, 4, 8};
	uint16_t ids[LAYERS * ROWS * 17], to[KEPT * LAYERS * 17 + 1];
	uint32_t from[KEPT];

	for (uint32_t i = 0; i < LAYERS * ROWS * top_k; i++)
		ids[i] = (uint16_t)(i + 1);
	for (uint32_t i = 0; i < KEPT; i++)
		from[i] = kept[i] * top_k;
	to[KEPT * LAYERS * top_k] = 77;
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		ids_gather(to + layer * top_k, LAYERS * top_k, ids + layer * ROWS * top_k, from,
			   KEPT, top_k, loose && layer + 1 < LAYERS);
	for (uint32_t i = 0; i < KEPT; i++)
		for (uint32_t layer = 0; layer < LAYERS; layer++)
			for (uint32_t k = 0; k < top_k; k++)
				cr_assert_eq(to[(i * LAYERS + layer) * top_k + k],
					     (layer * ROWS + kept[i]) * top_k + k + 1);
	cr_assert_eq(to[KEPT * LAYERS * top_k], 77);
}

Test(assembler_rows, cells_of_any_width_are_gathered)
{
	for (uint32_t top_k = 1; top_k <= 17; top_k++) {
		gather(top_k, false);
		gather(top_k, true);
	}
}

/* A tile of one row of @top_k ids in each of two layers. */
static struct tile *tile_of(uint32_t top_k, uint64_t *bytes)
{
	static const struct r3ring_layer_entry layers[2] = {{.layer_id = 0}, {.layer_id = 1}};
	const struct r3ring_schema_record schema = {.layers = 2, .top_k = (uint16_t)top_k};
	struct row_pool *pool = row_pool_create(&schema, layers, bytes);
	struct tile *tile = pool ? tile_take(pool, 1) : NULL;

	cr_assert(tile);
	return tile;
}

static void tile_forget(struct tile *tile)
{
	struct row_pool *pool = tile->pool;

	row_drop(&tile->row[0]);
	row_pool_destroy(pool);
}

Test(assembler_rows, an_id_that_is_no_expert_is_seen_wherever_it_is)
{
	uint16_t ids[200] = {0};
	uint64_t bytes = 0;

	for (uint32_t count = 1; count <= 200; count++) {
		struct tile *tile = tile_of(count, &bytes);

		tile->ids[count] = 77;
		for (uint32_t at = 0; at < count; at++) {
			ids[at] = 0x8001;
			cr_assert(tiles_fill(tile, 0, 0, 1, ids, 0x8001));
			cr_assert_not(tiles_fill(tile, 0, 0, 1, ids, 0x8002));
			cr_assert_eq(memcmp(tile->ids, ids, count * sizeof(*ids)), 0);
			cr_assert_eq(tile->ids[count], 77);
			ids[at] = 0;
		}
		tile_forget(tile);
	}
}

#define RUNS 100u
#define TURNS 40000u

/* Rows of runs that are held say whose they are. */
static void stamp(const struct row_pages *pages, const struct row_run *run, uint32_t owner)
{
	for (uint32_t i = 0; i < run->rows; i++)
		memcpy(row_run_memory(pages, run) + i * pages->row_bytes, &owner, sizeof(owner));
}

static void check_stamp(const struct row_pages *pages, const struct row_run *run, uint32_t owner)
{
	for (uint32_t i = 0; i < run->rows; i++) {
		uint32_t found;

		memcpy(&found, row_run_memory(pages, run) + i * pages->row_bytes, sizeof(found));
		cr_assert_eq(found, owner);
	}
}

/* Gives the first row back, or all of them. */
static void give(struct row_pages *pages, struct row_run *run, bool all)
{
	uint32_t rows = all ? run->rows : 1;

	row_pages_give(pages, run->page, row_bits(run->first, rows));
	run->first += rows;
	run->rows -= rows;
}

Test(assembler_rows, no_two_runs_overlap_and_what_lies_free_between_them_is_used)
{
	static struct row_run runs[RUNS];
	struct row_pages pages;
	uint64_t state = 1, held = 0, most = 0;

	row_pages_open(&pages, 4096);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint32_t owner = (uint32_t)((state = state * 6364136223846793005u + 1) >> 33);
		struct row_run *run = &runs[owner % RUNS];

		owner %= RUNS;
		if (run->rows) {
			check_stamp(&pages, run, owner);
			held -= run->rows;
			give(&pages, run, (state >> 60) < 4);
		} else {
			uint32_t wanted = 1 + (uint32_t)(state >> 40) % PAGE_ROWS;

			cr_assert_eq(row_pages_take(&pages, 1, wanted, run), 0);
			cr_assert(run->rows >= 1 && run->rows <= wanted);
			stamp(&pages, run, owner);
		}
		held += run->rows;
		most = held > most ? held : most;
	}
	/* The newest slab may be empty. */
	cr_assert_leq(pages.scattered, pages.pages * PAGE_ROWS);
	cr_assert_leq(pages.pages * PAGE_ROWS,
		      2 * most + (2u << 20) / (PAGE_ROWS * pages.row_bytes) * PAGE_ROWS);
	for (uint32_t i = 0; i < RUNS; i++)
		if (runs[i].rows)
			give(&pages, &runs[i], true);
	cr_assert_eq(pages.scattered, 0);
	cr_assert_null(pages.partial);
	row_pages_close(&pages);
}

Test(assembler_rows, pages_of_which_little_is_held_are_filled_before_there_are_more)
{
	struct row_pages pages;
	struct row_run run[40];
	uint64_t before, taken = 0;

	row_pages_open(&pages, 4096);
	for (uint32_t i = 0; i < 40; i++)
		cr_assert_eq(row_pages_take(&pages, PAGE_ROWS, PAGE_ROWS, &run[i]), 0);
	before = pages.pages;
	for (uint32_t i = 0; i < 40; i++)
		row_pages_give(&pages, run[i].page, ~UINT64_C(0x0001000100010001));
	while (taken < 24u * PAGE_ROWS) {
		cr_assert_eq(row_pages_take(&pages, 1, PAGE_ROWS, &run[0]), 0);
		taken += run[0].rows;
	}
	cr_assert_eq(pages.pages, before);
	row_pages_close(&pages);
}
