/* SPDX-License-Identifier: Apache-2.0 */
/* A book goes by an EPLB map, by an earlier one, and by none again. */
#include <criterion/criterion.h>

#include <errno.h>

#include "tests/unit/reserve_fixture.h"

static const struct r3ring_demand_shape one_layer = {1, 4, 1};

/* A map of one layer of four experts on two GPUs. */
static struct r3ring_eplb_map map_of(uint64_t epoch, uint32_t replicas, uint32_t physical,
				     uint16_t *places)
{
	return (struct r3ring_eplb_map){
		.epoch = epoch,
		.layers = 1,
		.experts = 4,
		.replicas = replicas,
		.physical = physical,
		.gpus = 2,
		.map = places,
	};
}

/* To the unit, which what is spread is rounded down to. */
static void expect_load(struct r3ring_book *book, uint64_t on_0, uint64_t on_1)
{
	const uint64_t wanted[] = {on_0 * R3RING_DEMAND_TOKEN, on_1 * R3RING_DEMAND_TOKEN};
	uint64_t load[2];

	r3ring_book_load(book, load, NULL);
	for (int gpu = 0; gpu < 2; gpu++)
		cr_expect(load[gpu] == wanted[gpu] || load[gpu] + 1 == wanted[gpu],
			  "GPU %d: %lu units", gpu, load[gpu]);
}

static uint64_t epoch_told(struct r3ring_book *book, const struct r3ring_demand *demand)
{
	struct r3ring_reserve_answer answer;

	cr_assert_eq(r3ring_book_ask(book, demand, &answer), 0);
	return answer.epoch;
}

Test(reserve_maps, without_a_map_again_what_is_reserved_lies_in_order_again)
{
	/* Expert 0 has three replicas, two of them on GPU 1. */
	uint16_t places[] = {0, 3, 4, 1, 0xFFFF, 0xFFFF, 2, 0xFFFF, 0xFFFF, 5, 0xFFFF, 0xFFFF};
	const struct r3ring_eplb_map map = map_of(7, 3, 6, places), anew = map_of(1, 3, 6, places);
	struct r3ring_book *book = book_open(&one_layer, 2, 100);
	struct r3ring_demand *demand = book_demand(&one_layer, (const uint32_t[]){20, 0, 0, 0}, 24);
	struct r3ring_reserve_answer answer;

	/* Of 24 tokens expert 0 gets 21, each other 1. */
	cr_assert_eq(book_make(book, "a", 0, demand, &answer), 0);
	expect_load(book, 22, 2);
	cr_assert_eq(r3ring_book_map(book, &map, NULL), 0);
	expect_load(book, 9, 15);
	r3ring_book_forget_map(book);
	expect_load(book, 22, 2);
	cr_expect_eq(epoch_told(book, demand), 0);
	/* The epochs of whoever comes next begin anew. */
	cr_expect_eq(r3ring_book_map(book, &anew, NULL), 0);
	expect_load(book, 9, 15);
	cr_expect_eq(r3ring_book_ended(book, "a"), 0);
	book_expect_empty(book, 1, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_maps, until_an_earlier_map_comes_the_epoch_of_the_one_that_is_charged_by_is_told)
{
	uint16_t places[] = {0, 1, 2, 3};
	const struct r3ring_eplb_map later = map_of(5, 1, 4, places),
				     earlier = map_of(2, 1, 4, places);
	struct r3ring_book *book = book_open(&one_layer, 2, 100);
	struct r3ring_demand *demand = book_demand(&one_layer, NULL, 4);

	cr_assert_eq(r3ring_book_map(book, &later, NULL), 0);
	cr_expect_eq(r3ring_book_map(book, &earlier, NULL), -ESTALE);
	r3ring_book_forget_epoch(book);
	cr_expect_eq(epoch_told(book, demand), 5);
	cr_expect_eq(r3ring_book_map(book, &earlier, NULL), 0);
	cr_expect_eq(epoch_told(book, demand), 2);
	r3ring_book_forget_epoch(book);
	cr_expect_eq(r3ring_book_map(book, &later, NULL), 0);
	cr_expect_eq(r3ring_book_map(book, &earlier, NULL), -ESTALE, "once, for the next map");
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_maps, the_expert_that_is_told_has_the_most_on_that_gpu_with_its_part_of_what_is_spread)
{
	/* GPU 0 has a whole expert 3 and half of expert 0, GPU 1 the rest. */
	uint16_t one_each[] = {0, 3, 4, 0xFFFF, 5, 0xFFFF, 1, 0xFFFF};
	/* GPU 0 has all of expert 3, twice, and half of expert 0. */
	uint16_t twice[] = {0, 3, 4, 0xFFFF, 5, 0xFFFF, 1, 2};
	const struct r3ring_eplb_map maps[] = {map_of(1, 2, 6, one_each), map_of(2, 2, 6, twice)};
	struct r3ring_book *book = book_open(&one_layer, 2, 100);
	struct r3ring_demand *uniform = book_demand(&one_layer, NULL, 4);
	struct r3ring_reserve_answer answer;

	cr_assert_eq(r3ring_book_set_capacity(book, 0, 0, 10), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(r3ring_book_map(book, &maps[i], NULL), 0);
		cr_assert_eq(r3ring_book_ask(book, uniform, &answer), 0);
		cr_expect_eq(answer.gpu, 0);
		cr_expect_eq(answer.expert, 3, "map %d: %u", i, answer.expert);
	}
	r3ring_demand_destroy(uniform);
	r3ring_book_destroy(book);
}
