/* SPDX-License-Identifier: Apache-2.0 */
/* Going through all reservations of a book: lists, owners that died, time that is over. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/reserve_fixture.h"

enum { MANY = 1000 }; /* so many that the lock is let go in between */

static void make_many(struct r3ring_book *book, uint64_t *ids)
{
	struct r3ring_demand *none = book_demand(&book_small, NULL, 0);
	struct r3ring_reserve_answer answer;
	char key[16];

	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "%u", i);
		cr_assert_eq(book_make(book, key, 1 + i % 2, none, &answer), 0);
		ids[i] = answer.reservation;
	}
	r3ring_demand_destroy(none);
}

/* Pages of @capacity: expects every @each-th of what was made, in order, from @first on. */
static void expect_pages(struct r3ring_book *book, const uint64_t *ids, uint32_t first,
			 uint32_t each, uint32_t capacity)
{
	struct r3ring_reservation_info info[MANY];
	uint32_t next = first, count;
	uint64_t after = 0;

	do {
		count = r3ring_book_list(book, after, info, capacity);
		for (uint32_t i = 0; i < count; i++, next += each) {
			cr_assert_lt(next, MANY);
			cr_assert_eq(info[i].reservation, ids[next]);
			cr_assert_eq(strtoul(info[i].key, NULL, 10), next);
			after = info[i].reservation;
		}
		cr_assert(count == capacity || next >= MANY);
	} while (count);
	cr_expect_geq(next, MANY);
}

Test(reserve_list, pages_have_each_reservation_once_in_the_order_of_making)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_reservation_info info[2];
	uint64_t ids[MANY];

	make_many(book, ids);
	expect_pages(book, ids, 0, 1, 1);
	expect_pages(book, ids, 0, 1, 7);
	expect_pages(book, ids, 0, 1, MANY);
	cr_expect_eq(r3ring_book_list(book, 0, info, 0), 0);
	cr_expect_eq(r3ring_book_list(book, UINT64_MAX, info, 2), 0);
	cr_expect_eq(r3ring_book_list(book, ids[MANY - 1], info, 2), 0);
	r3ring_book_destroy(book);
}

Test(reserve_list, a_page_begins_behind_a_number_that_is_gone_as_behind_one_that_is_there)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_reservation_info info[2];
	uint64_t ids[MANY];

	make_many(book, ids);
	for (uint32_t i = 100; i < 300; i++)
		cr_assert_eq(r3ring_book_free(book, ids[i]), 0);
	for (uint32_t i = 99; i < 300; i++) {
		cr_assert_eq(r3ring_book_list(book, ids[i], info, 2), 2);
		cr_expect_eq(info[0].reservation, ids[300]);
		cr_expect_eq(info[1].reservation, ids[301]);
	}
	cr_expect_eq(r3ring_book_free(book, ids[299]), -ENOENT);
	cr_expect_eq(r3ring_book_free(book, ids[300]), 0);
	r3ring_book_destroy(book);
}

Test(reserve_list, a_list_ends_though_the_newest_were_freed_and_forgotten, .timeout = 20)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_reservation_info info[2];
	uint64_t ids[MANY];

	make_many(book, ids);
	for (uint32_t i = MANY - 1; i > 0; i--)
		cr_assert_eq(r3ring_book_free(book, ids[i]), 0);
	cr_expect_eq(r3ring_book_list(book, 0, info, 2), 1);
	cr_expect_eq(info[0].reservation, ids[0]);
	cr_expect_eq(r3ring_book_list(book, ids[0], info, 2), 0);
	r3ring_book_destroy(book);
}

/* Three in four go, so that what is left is moved together. */
Test(reserve_list, of_very_many_those_go_whose_owner_died_and_those_whose_time_is_over)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_book_stats stats;
	uint64_t ids[MANY];

	make_many(book, ids);
	cr_expect_eq(r3ring_book_owner_gone(book, 2), MANY / 2);
	expect_pages(book, ids, 0, 2, 7);
	for (uint32_t i = 2; i < MANY; i += 4)
		cr_expect_eq(r3ring_book_commit(book, ids[i], 0, 1000), 0);
	cr_expect_eq(r3ring_book_expire(book, 1099), 0);
	cr_expect_eq(r3ring_book_expire(book, 1100), MANY / 4);
	expect_pages(book, ids, 2, 4, 7);
	for (uint32_t i = 2; i < MANY; i += 4)
		cr_expect_eq(r3ring_book_free(book, ids[i]), 0);
	r3ring_book_get_stats(book, &stats);
	cr_expect_eq(stats.orphaned, MANY / 2);
	cr_expect_eq(stats.expired, MANY / 4);
	cr_expect_eq(stats.freed, MANY / 4);
	book_expect_empty(book, 2, 2, 4);
	r3ring_book_destroy(book);
}
