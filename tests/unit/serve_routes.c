/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a request's routes: how much is known, which rows, and why one is missing. */
#include <limits.h>
#include <string.h>

#include "tests/unit/record_feed.h"
#include "tools/serve_routes.h"

static struct feed feed;
static struct r3ring_assembled *assembled;

/* Four positions: the second without its last layer, the third lost whole, the last token, which
 * nobody fed. */
static void assemble(void)
{
	struct r3ring_span one = {.request = 1, .rows = 1, .accepted = R3RING_UNKNOWN_U32};

	feed_create(&feed, NULL);
	feed.weight_version = 7;
	feed.experts = 100;
	feed.first_layer = 3;
	feed_schema(&feed);
	feed_begin(&feed, 1, "a", 1, 0);
	feed_whole(&feed, 1, 1, &one, 1);
	one.position = 1;
	feed_step(&feed, 2, 1, &one, 1, NULL, 0);
	feed_layers(&feed, 2, 1, 0, 2);
	feed_step_end(&feed, 2, 5, R3RING_CAUSE_RING_FULL);
	feed_lost(&feed, 3, 3, R3RING_CAUSE_BUFFER_FULL, 1);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 4);
	assembled = take(&feed, "a");
}

static void free_all(void)
{
	r3ring_assembled_free(assembled);
	feed_destroy(&feed);
}

TestSuite(serve_routes, .init = assemble, .fini = free_all);

static const struct routes_range all = {.to = UINT32_MAX, .layer_to = INT_MAX};

static struct routes_excerpt excerpt_of(const struct routes_range *range)
{
	struct routes_excerpt excerpt;

	cr_assert_eq(routes_excerpt_of(assembled, range, &excerpt), 0);
	return excerpt;
}

Test(serve_routes, a_row_is_known_when_all_of_its_layers_are)
{
	struct routes_excerpt excerpt = excerpt_of(&all);

	cr_expect_eq(excerpt.tokens, 4);
	cr_expect_eq(excerpt.rows_known, 1);
	cr_expect_eq(excerpt.rows_in_part, 1);
	cr_expect_eq(excerpt.rows_missing[R3RING_CAUSE_RING_FULL], 1);
	cr_expect_eq(excerpt.rows_missing[R3RING_CAUSE_BUFFER_FULL], 1);
	cr_expect_eq(excerpt.rows_missing[R3RING_MISSING_NOT_FED], 1);
	cr_expect_eq(excerpt.cells, 4 * FEED_LAYERS);
	cr_expect_eq(excerpt.cells_known, 2 * FEED_LAYERS - 1);
	routes_excerpt_free(&excerpt);
}

Test(serve_routes, a_range_is_cut_to_what_there_is_and_counts_the_whole)
{
	const struct routes_range some = {.from = 1, .to = 3, .layer_from = 4, .layer_to = 9};
	const struct routes_range beyond = {.from = 9, .to = 12, .layer_to = 5};
	struct routes_excerpt excerpt = excerpt_of(&some);

	cr_expect_eq(excerpt.from, 1);
	cr_expect_eq(excerpt.to, 3);
	cr_assert_eq(excerpt.layers, 2);
	cr_expect_eq(excerpt.layer[0].layer_id, 4);
	cr_expect_eq(excerpt.layer[1].layer_id, 5);
	cr_expect_eq(excerpt.ids[1], feed_id(0, 2, 0, 1, 1) % 100);
	cr_expect_eq(excerpt.cause[0], 0);
	cr_expect_eq(excerpt.cause[1], R3RING_CAUSE_RING_FULL);
	cr_expect_eq(excerpt.cause[2], R3RING_CAUSE_BUFFER_FULL);
	cr_expect_eq(excerpt.rows_known, 1, "of the whole request");
	routes_excerpt_free(&excerpt);
	excerpt = excerpt_of(&beyond);
	cr_expect_eq(excerpt.from, excerpt.to);
	cr_expect_eq(excerpt.layers, 2, "the third is layer 5");
	cr_expect_eq(excerpt.tokens, 4);
	routes_excerpt_free(&excerpt);
}

Test(serve_routes, one_excerpt_has_a_bounded_number_of_ids_and_says_where_it_ends)
{
	const uint32_t rows = ROUTES_IDS_MAX / (FEED_LAYERS * FEED_TOP_K);
	struct r3ring_span long_one = {
		.request = 2, .rows = rows + 5, .accepted = R3RING_UNKNOWN_U32};
	struct routes_range range = all;
	struct routes_excerpt excerpt;

	feed_begin(&feed, 2, "long", rows + 5, 0);
	feed_whole(&feed, 4, rows + 5, &long_one, 1);
	feed_end(&feed, 2, R3RING_END_FINISHED, 0, rows + 5);
	r3ring_assembled_free(assembled);
	assembled = take(&feed, "long");
	excerpt = excerpt_of(&all);
	cr_expect_eq(excerpt.from, 0);
	cr_expect_eq(excerpt.to, rows);
	cr_expect_eq(excerpt.rows_known, rows + 5);
	range.from = excerpt.to;
	routes_excerpt_free(&excerpt);
	excerpt = excerpt_of(&range);
	cr_expect_eq(excerpt.to, rows + 5);
	cr_expect_eq(excerpt.ids[0], feed_id(0, 4, rows, 0, 0) % 100);
	routes_excerpt_free(&excerpt);
}

Test(serve_routes, a_missing_cell_says_why_and_is_never_an_expert)
{
	struct routes_excerpt excerpt = excerpt_of(&all);
	json_t *told = routes_json("a", &excerpt), *expected;
	char text[1024], *whole = json_dumps(told, JSON_COMPACT);
	uint32_t id[8];

	for (uint32_t i = 0; i < 6; i++)
		id[i] = feed_id(0, 1, 0, i / 2, i % 2) % 100;
	snprintf(text, sizeof(text),
		 "[{\"position\": 0, \"weight_version\": 7, \"attempt\": 0, \"routes\": "
		 "[[%u, %u], [%u, %u], [%u, %u]]},"
		 "{\"position\": 1, \"weight_version\": 7, \"attempt\": 0, \"routes\": "
		 "[[%u, %u], [%u, %u], \"ring_full\"]},"
		 "{\"position\": 2, \"weight_version\": null, \"attempt\": 0, \"routes\": "
		 "[\"buffer_full\", \"buffer_full\", \"buffer_full\"]},"
		 "{\"position\": 3, \"weight_version\": null, \"attempt\": 0, \"routes\": "
		 "[\"not_fed\", \"not_fed\", \"not_fed\"]}]",
		 id[0], id[1], id[2], id[3], id[4], id[5], feed_id(0, 2, 0, 0, 0) % 100,
		 feed_id(0, 2, 0, 0, 1) % 100, feed_id(0, 2, 0, 1, 0) % 100,
		 feed_id(0, 2, 0, 1, 1) % 100);
	expected = json_loads(text, 0, NULL);
	cr_expect(expected && json_equal(json_object_get(told, "rows"), expected), "%s", whole);
	cr_expect_null(strstr(whole, "65535"));
	json_decref(expected);
	expected = json_loads("{\"rows_known\": 1, \"rows_missing\": {\"ring_full\": 1, "
			      "\"buffer_full\": 1, \"not_fed\": 1}, \"rows_in_part\": 1, "
			      "\"cells\": 12, \"cells_known\": 5, \"runs\": 3, \"missing\": ["
			      "{\"from\": 1, \"to\": 2, \"cause\": \"ring_full\"},"
			      "{\"from\": 2, \"to\": 3, \"cause\": \"buffer_full\"},"
			      "{\"from\": 3, \"to\": 4, \"cause\": \"not_fed\"}]}",
			      0, NULL);
	cr_expect(expected && json_equal(json_object_get(told, "coverage"), expected), "%s", whole);
	json_decref(expected);
	json_decref(told);
	free(whole);
	routes_excerpt_free(&excerpt);
}

Test(serve_routes, rows_that_are_missing_side_by_side_for_one_cause_are_told_as_one)
{
	struct routes_excerpt excerpt;

	feed_begin(&feed, 2, "b", 40, 0);
	feed_end(&feed, 2, R3RING_END_FINISHED, 0, 41);
	r3ring_assembled_free(assembled);
	assembled = take(&feed, "b");
	excerpt = excerpt_of(&all);
	cr_assert_eq(excerpt.runs, 2);
	cr_expect(excerpt.run[0].from == 0 && excerpt.run[0].to == 40 &&
		  excerpt.run[0].cause == R3RING_MISSING_NOT_RUN);
	cr_expect(excerpt.run[1].from == 40 && excerpt.run[1].to == 41 &&
		  excerpt.run[1].cause == R3RING_MISSING_NOT_FED);
	routes_excerpt_free(&excerpt);
}

/* Every second row was lost. */
Test(serve_routes, runs_beyond_a_number_are_counted_and_not_told)
{
	struct r3ring_span one = {.request = 2, .rows = 1, .accepted = R3RING_UNKNOWN_U32};
	const uint32_t runs = ROUTES_RUNS_TOLD + 1;
	struct routes_excerpt excerpt;
	json_t *told;

	feed_begin(&feed, 2, "b", 2 * runs, 0);
	for (uint32_t i = 0; i < runs; i++) {
		one.position = 2 * i;
		feed_whole(&feed, 10 + i, 1, &one, 1);
	}
	/* The last token, which nobody feeds, would be a run of its own. */
	feed_end(&feed, 2, R3RING_END_FINISHED, 0, 2 * runs);
	r3ring_assembled_free(assembled);
	assembled = take(&feed, "b");
	excerpt = excerpt_of(&all);
	cr_expect_eq(excerpt.runs, runs, "%lu", excerpt.runs);
	cr_expect_eq(excerpt.run[ROUTES_RUNS_TOLD - 1].from, 2 * ROUTES_RUNS_TOLD - 1);
	cr_expect_eq(excerpt.run[ROUTES_RUNS_TOLD - 1].to, 2 * ROUTES_RUNS_TOLD);
	told = routes_json("b", &excerpt);
	cr_expect_eq(json_array_size(json_object_get(json_object_get(told, "coverage"), "missing")),
		     ROUTES_RUNS_TOLD);
	json_decref(told);
	routes_excerpt_free(&excerpt);
}

Test(serve_routes, a_range_that_ends_before_it_begins_has_no_row_and_one_without_layers_one)
{
	const struct routes_range backwards = {.from = 3, .to = 1, .layer_to = INT_MAX};
	const struct routes_range bare = {.to = UINT32_MAX, .layer_from = 90, .layer_to = 91};
	struct routes_excerpt excerpt = excerpt_of(&backwards);

	cr_expect_eq(excerpt.from, 3);
	cr_expect_eq(excerpt.to, 3);
	routes_excerpt_free(&excerpt);
	excerpt = excerpt_of(&bare);
	cr_expect_eq(excerpt.layers, 0);
	cr_expect_eq(excerpt.to, 1);
	routes_excerpt_free(&excerpt);
}

/* ---- in JSON --------------------------------------------------------------------------- */

Test(serve_routes, beside_its_rows_an_answer_says_what_they_are_of)
{
	const struct routes_range some = {.from = 1, .to = 3, .layer_from = 4, .layer_to = 9};
	struct routes_excerpt excerpt = excerpt_of(&some);
	json_t *told, *expected;

	excerpt.state = ROUTES_ENDED;
	told = routes_json("a", &excerpt);
	expected = json_loads("{\"request\": \"a\", \"state\": \"ended\", \"aborted\": false, "
			      "\"length_known\": true, \"evicted_before\": false, "
			      "\"mixed\": false, \"tokens\": 4, \"prompt_tokens\": 1, "
			      "\"attempts\": 1, \"experts\": 100, \"top_k\": 2, "
			      "\"from\": 1, \"to\": 3, \"layers\": ["
			      "{\"layer\": 4, \"kind\": \"moe\"},"
			      "{\"layer\": 5, \"kind\": \"moe\"}]}",
			      0, NULL);
	cr_expect_eq(json_array_size(json_object_get(told, "rows")), 2);
	json_object_del(told, "rows");
	json_object_del(told, "coverage");
	cr_expect(expected && json_equal(told, expected));
	json_decref(expected);
	json_decref(told);
	routes_excerpt_free(&excerpt);
}

/* Whether the answer of an excerpt with that flag says so, and what. */
static bool says(uint32_t flag, const char *name)
{
	struct routes_excerpt excerpt = excerpt_of(&all);
	json_t *told;
	bool said;

	excerpt.flags = flag;
	told = routes_json("a", &excerpt);
	said = json_is_true(json_object_get(told, name));
	json_decref(told);
	routes_excerpt_free(&excerpt);
	return said;
}

Test(serve_routes, what_is_special_of_a_request_is_said_by_name)
{
	cr_expect(says(R3RING_ASSEMBLED_ABORTED, "aborted"));
	cr_expect_not(says(R3RING_ASSEMBLED_MIXED, "aborted"));
	cr_expect(says(R3RING_ASSEMBLED_MIXED, "mixed"));
	cr_expect_not(says(R3RING_ASSEMBLED_ABORTED, "mixed"));
	cr_expect(says(R3RING_ASSEMBLED_MIXED, "length_known"));
	cr_expect_not(says(R3RING_ASSEMBLED_LENGTH_GUESSED, "length_known"));
}

/* ---- addresses ------------------------------------------------------------------------ */

Test(serve_routes, an_id_of_any_bytes_has_an_address)
{
	char path[ROUTES_PATH_MAX], id[R3RING_TEXT_ID_MAX + 1];

	routes_path("a-B_9", path);
	cr_expect_str_eq(path, "/v1/requests/a-B_9/routes");
	routes_path("azAZ09", path);
	cr_expect_str_eq(path, "/v1/requests/azAZ09/routes");
	routes_path("\xff/ ?#%\n.\"<", path);
	cr_expect_str_eq(path, "/v1/requests/%FF%2F%20%3F%23%25%0A%2E%22%3C/routes");
	memset(id, 0xff, sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	routes_path(id, path);
	cr_expect_str_eq(path + strlen(path) - 13, "%FF%FF/routes");
}

Test(serve_routes, a_range_is_two_numbers_of_which_either_may_be_left_out)
{
	uint32_t from = 7, to = 9;

	cr_expect(routes_parse_range(":", &from, &to));
	cr_expect(from == 7 && to == 9);
	cr_expect(routes_parse_range("3:", &from, &to));
	cr_expect(from == 3 && to == 9);
	cr_expect(routes_parse_range("5:4294967295", &from, &to));
	cr_expect(from == 5 && to == UINT32_MAX);
	cr_expect(routes_parse_range("100:100", &from, &to));
	cr_expect(from == 100 && to == 100);
	for (const char *const *bad = (const char *const[]){"", "3", "4:3", "a:", ":b", "-1:2",
							    "1:2:3", "0:4294967296", " 1:2", NULL};
	     *bad; bad++)
		cr_expect_not(routes_parse_range(*bad, &from, &to), "%s", *bad);
}
