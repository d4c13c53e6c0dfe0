/* SPDX-License-Identifier: Apache-2.0 */
/* Promises of expert capacity. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/reserve/book.h"
#include "tests/unit/reserve_fixture.h"

/* In layer 1 they weigh 1, 1, 6 and 1: of nine tokens expert 2 gets six. */
static const uint32_t wants_2[] = {0, 0, 0, 0, 0, 0, 5, 0};

Test(reserve_book, what_fits_is_granted_and_what_does_not_is_told_where_and_how_much)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer answer;

	cr_expect_eq(book_make(book, "a", 0, demand, &answer), 0);
	cr_expect_eq(answer.layer, 1);
	cr_expect_eq(answer.gpu, 1);
	cr_expect_eq(answer.expert, 2);
	cr_expect_eq(answer.margin, 3 * (int64_t)R3RING_DEMAND_TOKEN);
	cr_expect_eq(answer.evidence_age_ns, 9);
	cr_expect_neq(answer.reservation, 0);

	cr_expect_eq(book_make(book, "b", 0, demand, &answer), -EBUSY);
	cr_expect_eq(answer.reservation, 0);
	cr_expect_eq(answer.layer, 1);
	cr_expect_eq(answer.gpu, 1);
	cr_expect_eq(answer.expert, 2);
	cr_expect_eq(answer.margin, -4 * (int64_t)R3RING_DEMAND_TOKEN);

	cr_expect_eq(r3ring_book_ended(book, "a"), 0);
	cr_expect_eq(book_make(book, "b", 0, demand, &answer), 0, "there is room again");
	cr_expect_eq(r3ring_book_free(book, answer.reservation), 0);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_book, of_places_and_experts_that_are_equal_the_first_is_told)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *uniform = book_demand(&book_small, NULL, 8);
	struct r3ring_reserve_answer answer;

	cr_expect_eq(r3ring_book_ask(book, uniform, &answer), 0);
	cr_expect_eq(answer.layer, 0);
	cr_expect_eq(answer.gpu, 0);
	cr_expect_eq(answer.expert, 0);
	cr_expect_eq(r3ring_book_set_capacity(book, 1, 1, 5), 0);
	cr_expect_eq(r3ring_book_ask(book, uniform, &answer), 0);
	cr_expect_eq(answer.layer, 1);
	cr_expect_eq(answer.gpu, 1);
	cr_expect_eq(answer.expert, 2);
	r3ring_demand_destroy(uniform);
	r3ring_book_destroy(book);
}

Test(reserve_book, of_two_experts_of_a_gpu_the_one_that_needs_more_is_told)
{
	/* Of layer 1, on GPU 1. */
	static const uint32_t first[] = {0, 0, 0, 0, 0, 0, 9, 5},
			      second[] = {0, 0, 0, 0, 0, 0, 5, 9};
	struct r3ring_book *book = book_open(&book_small, 2, 20);
	struct r3ring_demand *demand[] = {book_demand(&book_small, first, 18),
					  book_demand(&book_small, second, 18)};
	struct r3ring_reserve_answer answer;

	for (uint32_t i = 0; i < 2; i++) {
		cr_expect_eq(r3ring_book_ask(book, demand[i], &answer), 0);
		cr_expect_eq(answer.layer, 1);
		cr_expect_eq(answer.gpu, 1);
		cr_expect_eq(answer.expert, 2 + i);
		r3ring_demand_destroy(demand[i]);
	}
	r3ring_book_destroy(book);
}

/* So many reservations are not made in a test: the sum is set. */
Test(reserve_book, more_units_than_can_be_told_apart_are_refused)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *none = book_demand(&book_small, NULL, 0);
	struct r3ring_demand *one = book_demand(&book_small, NULL, 1);
	struct r3ring_reserve_answer made, answer;
	const uint64_t most = 2 * (LAYER_UNITS_MAX - 1);

	cr_assert_eq(book_make(book, "a", 0, none, &made), 0);
	book->stats.units = most;
	cr_expect_eq(book_make(book, "b", 0, one, &answer), -ENOBUFS);
	cr_expect_eq(r3ring_book_ask(book, one, &answer), -ENOBUFS);
	cr_expect_eq(r3ring_book_update(book, made.reservation, one, &answer), -ENOBUFS);
	cr_expect_eq(r3ring_book_update(book, made.reservation, none, &answer), 0);
	cr_expect_eq(r3ring_book_ask(book, none, &answer), 0);
	cr_expect_eq(book->stats.units, most);
	book->stats.units += 2;
	cr_expect_eq(r3ring_book_ask(book, none, &answer), -ENOBUFS);
	book->stats.units = 0;
	cr_expect_eq(r3ring_book_free(book, made.reservation), 0);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(none);
	r3ring_demand_destroy(one);
	r3ring_book_destroy(book);
}

Test(reserve_book, a_demand_without_evidence_is_an_equal_load_of_all_experts)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *uniform = book_demand(&book_small, NULL, 8);
	struct r3ring_reserve_answer answer;
	uint64_t gpu[2 * 2], expert[2 * 4];

	cr_assert_eq(book_make(book, "a", 0, uniform, &answer), 0);
	r3ring_book_load(book, gpu, expert);
	for (uint32_t i = 0; i < 2 * 2; i++)
		cr_expect_eq(gpu[i], 4 * R3RING_DEMAND_TOKEN);
	for (uint32_t i = 0; i < 2 * 4; i++)
		cr_expect_eq(expert[i], 2 * R3RING_DEMAND_TOKEN);
	r3ring_demand_destroy(uniform);
	r3ring_book_destroy(book);
}

Test(reserve_book, asking_adds_nothing)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer answer;

	cr_expect_eq(r3ring_book_ask(book, demand, &answer), 0);
	cr_expect_eq(answer.margin, 3 * (int64_t)R3RING_DEMAND_TOKEN);
	cr_expect_eq(answer.reservation, 0);
	book_expect_empty(book, 2, 2, 4);
	cr_expect_eq(r3ring_book_set_capacity(book, 1, 1, 6), 0);
	cr_expect_eq(r3ring_book_ask(book, demand, &answer), -EBUSY);
	cr_expect_eq(answer.margin, -1 * (int64_t)R3RING_DEMAND_TOKEN);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_book, a_map_moves_what_is_reserved_to_where_the_experts_are_now)
{
	/* In layer 1 expert 2 has a replica on each GPU. */
	uint16_t places[] = {0, 0xFFFF, 1, 0xFFFF, 3, 0xFFFF, 4, 0xFFFF,
			     0, 0xFFFF, 3, 0xFFFF, 2, 4,      5, 0xFFFF};
	const struct r3ring_eplb_map map = {
		.epoch = 3,
		.layers = 2,
		.experts = 4,
		.replicas = 2,
		.physical = 6,
		.gpus = 2,
		.map = places,
	};
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer answer;
	struct r3ring_error err = {0};
	uint64_t load[4];

	cr_assert_eq(book_make(book, "a", 0, demand, &answer), 0);
	cr_expect_eq(answer.epoch, 0);
	cr_assert_eq(r3ring_book_map(book, &map, &err), 0, "%s", err.text);
	r3ring_book_load(book, load, NULL);
	/* GPU 0: expert 0 and half of 2. GPU 1: 1, 3 and the other half. */
	cr_expect_eq(load[2], 4 * R3RING_DEMAND_TOKEN);
	cr_expect_eq(load[3], 5 * R3RING_DEMAND_TOKEN);
	cr_expect_eq(book_make(book, "b", 0, demand, &answer), 0, "now there is room for two");
	cr_expect_eq(answer.epoch, 3);
	cr_expect_eq(answer.margin, 0);
	cr_expect_eq(answer.gpu, 1);
	cr_expect_eq(answer.expert, 2, "its second replica");
	cr_expect_eq(r3ring_book_ended(book, "a"), 0);
	cr_expect_eq(r3ring_book_ended(book, "b"), 0);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

static int try_map(struct r3ring_book *book, struct r3ring_eplb_map map, const char *text)
{
	struct r3ring_error err = {0};
	int r = r3ring_book_map(book, &map, &err);

	cr_expect(strstr(err.text, text), "\"%s\" is not in: %s", text, err.text);
	return r;
}

Test(reserve_book, a_map_that_cannot_be_is_refused_and_changes_nothing)
{
	uint16_t places[] = {0, 1, 2, 3, 0, 1, 2, 3};
	const struct r3ring_eplb_map map = {.epoch = 5,
					    .layers = 2,
					    .experts = 4,
					    .replicas = 1,
					    .physical = 4,
					    .gpus = 2,
					    .map = places};
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_eplb_map other = map;
	struct r3ring_book_stats stats;

	places[6] = R3RING_MISSING;
	cr_expect_eq(try_map(book, map, "layer 1 of the map has an expert without a place"),
		     -EINVAL);
	places[6] = 4;
	cr_expect_eq(try_map(book, map, "beyond the 4"), -EINVAL);
	places[6] = 2;
	other.experts = 8;
	cr_expect_eq(try_map(book, other, "of 8 experts"), -EINVAL);
	other = map;
	other.layers = 1;
	cr_expect_eq(try_map(book, other, "1 layers"), -EINVAL);
	other = map;
	other.gpus = 4;
	cr_expect_eq(try_map(book, other, "on 4 GPUs"), -EINVAL);
	r3ring_book_get_stats(book, &stats);
	cr_expect_eq(stats.epoch, 0);
	cr_expect_eq(try_map(book, map, ""), 0);
	other = map;
	other.epoch = 4;
	cr_expect_eq(try_map(book, other, "epoch 4"), -ESTALE);
	r3ring_book_forget_epoch(book);
	cr_expect_eq(try_map(book, other, ""), 0);
	r3ring_book_get_stats(book, &stats);
	cr_expect_eq(stats.epoch, 4);
	r3ring_book_destroy(book);
}

Test(reserve_book, the_same_key_reserves_once_and_belongs_to_its_owner)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer first, second;

	cr_expect_eq(book_make(book, "a", 1, demand, &first), 0);
	cr_expect_not(first.existed);
	cr_expect_eq(book_make(book, "a", 1, demand, &second), 0);
	cr_expect(second.existed);
	cr_expect_eq(second.reservation, first.reservation);
	cr_expect_eq(second.margin, first.margin);
	cr_expect_eq(book_make(book, "a", 2, demand, &second), -EEXIST);
	cr_expect_eq(second.reservation, 0);
	cr_expect_eq(r3ring_book_free(book, first.reservation), 0);
	cr_expect_eq(r3ring_book_free(book, first.reservation), -ENOENT);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_book, what_was_granted_and_refused_is_counted_and_takes_bytes_by_its_experts)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *uniform = book_demand(&book_small, NULL, 1);
	struct r3ring_demand *named = book_demand(&book_small, wants_2, 1);
	struct r3ring_demand *many = book_demand(&book_small, wants_2, 100);
	struct r3ring_reserve_answer answer;
	struct r3ring_book_stats one, both;

	cr_assert_eq(book_make(book, "a", 0, uniform, &answer), 0);
	r3ring_book_get_stats(book, &one);
	cr_assert_eq(book_make(book, "b", 0, named, &answer), 0);
	cr_assert_eq(book_make(book, "c", 0, many, &answer), -EBUSY);
	r3ring_book_get_stats(book, &both);
	cr_expect_eq(one.granted, 1);
	cr_expect_eq(both.granted, 2);
	cr_expect_eq(both.refused, 1);
	cr_expect_gt(both.bytes, 2 * one.bytes);
	r3ring_demand_destroy(uniform);
	r3ring_demand_destroy(named);
	r3ring_demand_destroy(many);
	r3ring_book_destroy(book);
}

Test(reserve_book, another_demand_under_a_key_is_refused_and_the_same_is_not)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *one = book_demand(&book_small, wants_2, 1);
	struct r3ring_demand *elsewhere = book_demand(&book_small, NULL, 1);
	struct r3ring_demand *many = book_demand(&book_small, wants_2, 100);
	struct r3ring_reserve_answer made, answer;

	cr_assert_eq(book_make(book, "a", 0, one, &made), 0);
	cr_expect_eq(book_make(book, "a", 0, many, &answer), -EALREADY);
	cr_expect_eq(answer.reservation, made.reservation);
	cr_expect(answer.existed);
	cr_expect_eq(answer.margin, made.margin, "nothing is changed");
	cr_expect_eq(book_make(book, "a", 0, elsewhere, &answer), 0);
	cr_expect_eq(book_make(book, "a", 1, many, &answer), -EEXIST);
	cr_expect_eq(answer.reservation, 0);
	cr_expect_eq(r3ring_book_ended(book, "a"), 0);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(one);
	r3ring_demand_destroy(elsewhere);
	r3ring_demand_destroy(many);
	r3ring_book_destroy(book);
}

Test(reserve_book, a_request_that_runs_may_need_more_than_there_is_and_is_told)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_demand *more = book_demand(&book_small, wants_2, 18);
	struct r3ring_reserve_answer made, answer;

	cr_assert_eq(book_make(book, "a", 0, demand, &made), 0);
	cr_expect_eq(r3ring_book_update(book, made.reservation, more, &answer), 0);
	cr_expect_eq(answer.margin, -4 * (int64_t)R3RING_DEMAND_TOKEN);
	cr_expect_eq(answer.reservation, made.reservation);
	cr_expect(answer.existed);
	cr_expect_eq(r3ring_book_update(book, made.reservation + 1, more, &answer), -ENOENT);
	cr_expect_eq(r3ring_book_update(book, made.reservation, demand, &answer), 0);
	cr_expect_eq(answer.margin, made.margin);
	cr_expect_eq(r3ring_book_ended(book, "a"), 0);
	cr_expect_eq(r3ring_book_ended(book, "a"), -ENOENT);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_demand_destroy(more);
	r3ring_book_destroy(book);
}

Test(reserve_book, options_keys_and_shapes_that_cannot_be_are_refused)
{
	struct r3ring_book_options options = {
		.size = sizeof(options), .shape = book_small, .gpus = 2, .max_reservations = 1};
	const struct r3ring_demand_shape other = {.layers = 3, .experts = 4, .top_k = 1};
	struct r3ring_demand *wrong = book_demand(&other, NULL, 1);
	struct r3ring_demand *none = book_demand(&book_small, NULL, 0);
	const struct r3ring_reserve_answer unlike = {.reservation = 1, .margin = 1};
	struct r3ring_reserve_answer answer;
	char long_key[R3RING_TEXT_ID_MAX + 2];
	struct r3ring_error err = {0};
	struct r3ring_book *book;

	options.gpus = 0;
	cr_expect_eq(r3ring_book_create(&book, &options, &err), -EINVAL);
	cr_expect(strstr(err.text, "gpus"));
	options.gpus = 2;
	options.shape.top_k = 5;
	cr_expect_eq(r3ring_book_create(&book, &options, &err), -EINVAL);
	options.shape = book_small;
	cr_assert_eq(r3ring_book_create(&book, &options, &err), 0);
	memset(long_key, 'k', sizeof(long_key) - 1);
	long_key[sizeof(long_key) - 1] = '\0';
	cr_expect_eq(book_make(book, "", 0, none, &answer), -EINVAL);
	cr_expect_eq(book_make(book, NULL, 0, none, &answer), -EINVAL);
	cr_expect_eq(book_make(book, long_key, 0, none, &answer), -EINVAL);
	long_key[R3RING_TEXT_ID_MAX] = '\0';
	cr_expect_eq(book_make(book, "a", 0, wrong, &answer), -EINVAL);
	answer = unlike;
	cr_expect_eq(r3ring_book_ask(book, wrong, &answer), -EINVAL);
	cr_expect_eq(answer.reservation, 0);
	cr_expect_eq(answer.margin, 0);
	answer = unlike;
	cr_expect_eq(r3ring_book_update(book, 1, wrong, &answer), -EINVAL);
	cr_expect_eq(answer.reservation, 0);
	cr_expect_eq(answer.margin, 0);
	cr_expect_eq(r3ring_book_set_capacity(book, 2, 0, 1), -ERANGE);
	cr_expect_eq(r3ring_book_set_capacity(book, 0, 2, 1), -ERANGE);
	cr_expect_eq(book_make(book, long_key, 0, none, &answer), 0);
	cr_expect_eq(book_make(book, "b", 0, none, &answer), -ENOBUFS, "one is the most here");
	r3ring_demand_destroy(wrong);
	r3ring_demand_destroy(none);
	r3ring_book_destroy(book);
}
