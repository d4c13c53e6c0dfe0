/* SPDX-License-Identifier: Apache-2.0 */
/* Counts over time, and the table of requests. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "report/requests.h"
#include "report/series.h"

#define MS INT64_C(1000000)
#define EXPERTS 4u

/* ---- time ------------------------------------------------------------------------- */

static double counts[2 * EXPERTS], rows[2], no_expert[2];
static struct r3ring_layer_entry layer[2] = {{.layer_id = 7}, {.layer_id = 3}};
static struct r3ring_load_info info = {
	.layers = 1,
	.experts = EXPERTS,
	.top_k = 2,
	.layer = layer,
	.counts = counts,
	.rows = rows,
	.no_expert = no_expert,
};
static struct series series;
static struct r3ring_load_accounts accounts;

/* @tokens more go to expert @expert at a point in time. */
static void run(uint64_t ns, uint32_t expert, uint32_t tokens)
{
	counts[expert] += tokens;
	rows[0] += tokens;
	info.accounts.counted += tokens;
	cr_assert_eq(series_take(&series, &info, series_find(&series, ns), &accounts), 0);
}

static uint64_t counted_between(int64_t from_ns, int64_t end_ns)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SERIES_PIECES; i++) {
		int64_t ns = series.start_ns + (int64_t)(i * series.width_ns);

		sum += ns >= from_ns && ns < end_ns ? series.piece[i].counted : 0;
	}
	return sum;
}

Test(report_series, pieces_get_longer_as_time_goes_on_and_lose_nothing)
{
	for (uint64_t i = 0; i < 1000; i++)
		run((5000 + i) * 1000000, i % EXPERTS, (uint32_t)i);
	/* 1000 ms need 16 ms for each of 96 pieces. */
	cr_assert_eq(series.width_ns, 16 * MS);
	cr_assert_eq(series.start_ns, 5000 * MS);
	cr_assert_eq(accounts.counted, 999 * 1000 / 2);
	cr_assert_eq(counted_between(INT64_MIN, INT64_MAX), 999 * 1000 / 2);
	cr_assert_eq(series.piece[0].counted, 15 * 16 / 2);
	cr_assert_eq(series.piece[3].counted, (48 + 63) * 16 / 2);
	cr_assert_eq(series.layer[0].counts[1], 250 * (1 + 997) / 2);
	series_free(&series);
}

Test(report_series, time_before_the_beginning_is_reached_too)
{
	run(500 * MS, 0, 3);
	run(100 * MS, 1, 5);
	run(501 * MS, 2, 7);
	cr_assert_leq(series.start_ns, 100 * MS);
	cr_assert_eq(counted_between(0, 200 * MS), 5);
	cr_assert_eq(counted_between(400 * MS, 600 * MS), 10);
	cr_assert_eq(series.first_ns, 100 * MS);
	cr_assert_eq(series.last_ns, 501 * MS);
	series_free(&series);
}

Test(report_series, times_of_strangers_end_nowhere)
{
	run(UINT64_MAX, 0, 3);
	run(0, 1, 5);
	run(INT64_MAX, 1, 5);
	cr_assert_eq(counted_between(INT64_MIN, INT64_MAX), 13);
	series_free(&series);
}

Test(report_series, a_pieces_balance_is_that_of_what_ran_in_it)
{
	run(10 * MS, 0, 8);
	run(10 * MS, 1, 2);
	run(20 * MS, 0, 1);
	run(20 * MS, 1, 1);
	run(20 * MS, 2, 1);
	run(20 * MS, 3, 1);
	cr_assert_float_eq(series_balance(&series, 0, series_find(&series, 10 * MS)), 3.2, 1e-6);
	cr_assert_float_eq(series_balance(&series, 0, series_find(&series, 20 * MS)), 1, 1e-6);
	cr_assert_float_eq(series_balance(&series, 0, series_find(&series, 15 * MS)), 0, 1e-6);
	series_free(&series);
}

Test(report_series, counts_go_on_beyond_32_bits_and_what_was_not_asked_for_stays_out)
{
	run(10 * MS, 0, 4000000000u);
	/* As a snapshot has it: modulo 2^32. */
	counts[0] = (double)((4000000000u + UINT64_C(1000000000)) % (UINT64_C(1) << 32));
	cr_assert_eq(series_take(&series, &info, series_find(&series, 11 * MS), &accounts), 0);
	cr_assert_eq(series.layer[0].counts[0], UINT64_C(5000000000));
	counts[0] += 17;
	cr_assert_eq(series_take(&series, &info, SERIES_NOWHERE, &accounts), 0);
	counts[0] += 1;
	cr_assert_eq(series_take(&series, &info, series_find(&series, 12 * MS), &accounts), 0);
	cr_assert_eq(series.layer[0].counts[0], UINT64_C(5000000001));
	series_free(&series);
}

Test(report_series, layers_that_come_later_are_put_into_the_models_order)
{
	run(10 * MS, 0, 3);
	info.layers = 2;
	counts[EXPERTS + 1] = 9;
	rows[1] = 9;
	run(11 * MS, 0, 3);
	series_sort(&series);
	cr_assert_eq(series.layers, 2);
	cr_assert_eq(series.layer[0].entry.layer_id, 3);
	cr_assert_eq(series.layer[0].counts[1], 9);
	cr_assert_eq(series.layer[1].counts[0], 6);
	cr_assert_float_eq(series.layer[1].rows, 6, 1e-9);
	series_free(&series);
}

/* ---- requests ------------------------------------------------------------------------ */

static void end_request(struct request_table *table, const char *id, uint64_t gap,
			uint64_t external)
{
	struct r3ring_assembled_info request = {
		.id = id, .session = "", .tokens = 10, .cells = 100};

	request.cells_missing[R3RING_MISSING_GAP] = gap;
	request.cells_missing[R3RING_MISSING_EXTERNAL] = external;
	request.cells_missing[R3RING_MISSING_NOT_FED] = 3;
	cr_assert_eq(request_table_take(table, &request, 0), 0);
}

Test(report_requests, those_that_lost_most_stay_when_there_is_no_room_for_all)
{
	struct request_table table;
	char id[16];

	cr_assert_eq(request_table_make(&table, 4), 0);
	for (uint32_t i = 1; i <= 1000; i++) {
		snprintf(id, sizeof(id), "request-%u", i);
		end_request(&table, id, i == 17 || i == 990 ? i : 0, 50);
	}
	request_table_sort(&table);
	cr_assert_eq(table.seen, 1000);
	cr_assert_eq(table.count, 4);
	cr_expect_str_eq(table.row[0].id, "request-1");
	cr_expect_str_eq(table.row[1].id, "request-2");
	cr_expect_str_eq(table.row[2].id, "request-17");
	cr_expect_str_eq(table.row[3].id, "request-990");
	cr_expect_eq(table.row[2].lost, 17, "what came from elsewhere was not lost");
	request_table_free(&table);
}

Test(report_requests, a_table_without_rows_counts_all_the_same)
{
	struct request_table table;

	cr_assert_eq(request_table_make(&table, 0), 0);
	end_request(&table, "a", 1, 0);
	end_request(&table, "b", 2, 0);
	cr_assert_eq(table.seen, 2);
	cr_assert_eq(table.count, 0);
	request_table_free(&table);
}
