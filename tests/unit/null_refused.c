/* SPDX-License-Identifier: Apache-2.0 */
/* A NULL where a header allows none is refused, and what is behind the other pointers stays. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <r3ring/assembler.h>
#include <r3ring/eplb.h>
#include <r3ring/load.h>
#include <r3ring/predict.h>
#include <r3ring/reserve.h>
#include <r3ring/signature.h>

#include "tests/unit/reserve_fixture.h"

static struct r3ring_error err;

/* Refused, in these words. */
#define REFUSED(call, words)                                                                       \
	do {                                                                                       \
		memset(&err, 0, sizeof(err));                                                      \
		cr_expect_eq((call), -EINVAL, "%s", #call);                                        \
		cr_expect(strstr(err.text, words), "%s: \"%s\"", #call, err.text);                 \
	} while (0)

#define REFUSED_PLAINLY(call) cr_expect_eq((call), -EINVAL, "%s", #call)

Test(null_refused, where_a_handle_is_to_go)
{
	const struct r3ring_book_options book = {
		.size = sizeof(book), .shape = book_small, .gpus = 2, .capacity = 1};
	const struct r3ring_eplb_options options = {.size = sizeof(options), 4, 2, 0, 0};
	const double load[4] = {0};

	REFUSED(r3ring_load_create(NULL, NULL, &err), "load is NULL");
	REFUSED(r3ring_signatures_create(NULL, NULL, &err), "signatures is NULL");
	REFUSED(r3ring_assembler_create(NULL, NULL, &err), "assembler is NULL");
	REFUSED(r3ring_book_create(NULL, &book, &err), "book is NULL");
	REFUSED(r3ring_history_create(NULL, NULL, &err), "history is NULL");
	REFUSED(r3ring_eplb_map_create(NULL, 1, 4, 1, 4, 2, &err), "map is NULL");
	REFUSED(r3ring_eplb_map_plain(NULL, 1, 4, 2, &err), "map is NULL");
	REFUSED(r3ring_eplb_place(NULL, load, 1, 4, &options, &err), "map is NULL");
	REFUSED_PLAINLY(r3ring_load_snapshot_create(NULL));
	REFUSED_PLAINLY(r3ring_signature_create(NULL));
	REFUSED_PLAINLY(r3ring_demand_create(NULL, &book_small));
}

Test(null_refused, of_what_a_book_is_made)
{
	struct r3ring_book *book = NULL;
	struct r3ring_demand *demand = NULL;

	REFUSED(r3ring_book_create(&book, NULL, &err), "options is NULL");
	cr_expect_null(book);
	REFUSED_PLAINLY(r3ring_demand_create(&demand, NULL));
	cr_expect_null(demand);
}

Test(null_refused, by_a_book_which_stays_as_it_was)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, NULL, 1);
	const struct r3ring_reserve_request request = {.key = "b"};
	struct r3ring_reserve_answer answer, granted;

	cr_assert_eq(book_make(book, "a", 1, demand, &granted), 0);
	REFUSED_PLAINLY(r3ring_book_make(book, &request, demand, NULL));
	REFUSED_PLAINLY(r3ring_book_make(book, &request, NULL, &answer));
	REFUSED_PLAINLY(r3ring_book_make(book, NULL, demand, &answer));
	REFUSED_PLAINLY(r3ring_book_ask(book, demand, NULL));
	REFUSED_PLAINLY(r3ring_book_ask(book, NULL, &answer));
	REFUSED_PLAINLY(r3ring_book_update(book, granted.reservation, demand, NULL));
	REFUSED_PLAINLY(r3ring_book_update(book, granted.reservation, NULL, &answer));
	REFUSED_PLAINLY(r3ring_book_ended(book, NULL));
	REFUSED(r3ring_book_map(book, NULL, &err), "map is NULL");
	cr_expect_eq(r3ring_book_free(book, granted.reservation), 0);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(null_refused, by_predictors_and_their_memory)
{
	struct r3ring_demand *demand = book_demand(&book_small, NULL, 1);
	const struct r3ring_known known = {.shape = book_small};
	const struct r3ring_finished finished = {.id = "a", .layers = 2, .experts = 4};
	const struct r3ring_labels labels = {.class_name = "code"};
	struct r3ring_evidence evidence = {0};
	struct r3ring_history *history;
	uint32_t counts[8];

	cr_assert_eq(r3ring_history_create(&history, NULL, NULL), 0);
	REFUSED_PLAINLY(r3ring_demand_predict(demand, NULL, 1));
	REFUSED_PLAINLY(r3ring_demand_predict(NULL, &evidence, 1));
	REFUSED_PLAINLY(r3ring_predict(R3RING_PREDICT_AUTO, &known, counts, NULL, NULL));
	REFUSED_PLAINLY(r3ring_predict(R3RING_PREDICT_AUTO, &known, NULL, &evidence, NULL));
	REFUSED_PLAINLY(r3ring_predict(R3RING_PREDICT_AUTO, NULL, counts, &evidence, NULL));
	cr_expect_eq(r3ring_predictor_named(NULL), -ENOENT);
	REFUSED_PLAINLY(r3ring_history_label(history, NULL, &labels));
	REFUSED_PLAINLY(r3ring_history_label(history, "a", NULL));
	REFUSED_PLAINLY(r3ring_history_add(history, NULL));
	REFUSED_PLAINLY(r3ring_history_add(history, &finished));
	r3ring_history_destroy(history);
	r3ring_demand_destroy(demand);
}

Test(null_refused, by_loads_and_signatures)
{
	struct r3ring_load *load;
	struct r3ring_signatures *signatures;
	struct r3ring_signature *signature;
	struct r3ring_load_figures figures;
	const double value = 1;

	cr_assert_eq(r3ring_load_create(&load, NULL, NULL), 0);
	cr_assert_eq(r3ring_signatures_create(&signatures, NULL, NULL), 0);
	cr_assert_eq(r3ring_signature_create(&signature), 0);
	REFUSED_PLAINLY(r3ring_load_read(load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
					 R3RING_LOAD_ANY_EPOCH, NULL));
	REFUSED_PLAINLY(r3ring_load_measure(NULL, 1, 8, &figures));
	REFUSED_PLAINLY(r3ring_load_measure(&value, 1, 8, NULL));
	REFUSED_PLAINLY(r3ring_signatures_get(signatures, "a", NULL));
	REFUSED_PLAINLY(r3ring_signatures_keep(signatures, NULL));
	cr_expect_eq(r3ring_signatures_get(signatures, NULL, signature), -ENOENT);
	r3ring_signature_free(signature);
	r3ring_signatures_destroy(signatures);
	r3ring_load_destroy(load);
}

Test(null_refused, by_who_places_replicas)
{
	const struct r3ring_eplb_options options = {.size = sizeof(options), 4, 2, 0, 0};
	const double load[4] = {0};
	struct r3ring_eplb_map *map = NULL;

	REFUSED(r3ring_eplb_place(&map, load, 1, 4, NULL, &err), "options is NULL");
	REFUSED(r3ring_eplb_place(&map, NULL, 1, 4, &options, &err), "load is NULL");
	REFUSED(r3ring_eplb_map_check(NULL, &err), "map is NULL");
	cr_expect_null(map);
}

/* ---- tokens ----------------------------------------------------------------------- */

Test(null_refused, nor_is_a_demand_of_more_tokens_than_a_step_has_taken)
{
	struct r3ring_demand *demand = book_demand(&book_small, NULL, 3);
	const struct r3ring_evidence evidence = {0};
	const uint64_t before = r3ring_demand_of(demand, 0, 0);

	REFUSED_PLAINLY(r3ring_demand_predict(demand, &evidence, R3RING_DEMAND_TOKENS_MAX + 1));
	cr_expect_eq(r3ring_demand_of(demand, 0, 0), before);
	cr_expect_eq(r3ring_demand_predict(demand, &evidence, R3RING_DEMAND_TOKENS_MAX), 0);
	cr_expect_eq(r3ring_demand_predict(demand, &evidence, 0), 0);
	cr_expect_eq(r3ring_demand_of(demand, 0, 0), 0);
	r3ring_demand_destroy(demand);
}
