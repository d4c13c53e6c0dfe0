/* SPDX-License-Identifier: Apache-2.0 */
/* How long reservations last: until their time is over, or their owner has gone. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>

#include "tests/unit/reserve_fixture.h"

/* In layer 1 they weigh 1, 1, 6 and 1: of nine tokens expert 2 gets six. */
static const uint32_t wants_2[] = {0, 0, 0, 0, 0, 0, 5, 0};

/* The end that a reservation has which is made, committed or renewed at time 1000 for so long. */
static void expect_expiry(uint64_t ttl_ns, uint64_t expires_ns)
{
	struct r3ring_book *book = book_open(&book_small, 2, 10);
	struct r3ring_demand *demand = book_demand(&book_small, NULL, 1);
	const struct r3ring_reserve_request request = {
		.key = "a", .ttl_ns = ttl_ns, .now_ns = 1000};
	struct r3ring_reservation_info info;
	struct r3ring_reserve_answer answer;

	cr_assert_eq(r3ring_book_make(book, &request, demand, &answer), 0);
	cr_assert_eq(r3ring_book_list(book, 0, &info, 1), 1);
	cr_expect_eq(info.expires_ns, expires_ns, "made: %lu", info.expires_ns);
	cr_assert_eq(r3ring_book_renew(book, answer.reservation, 5, 1000), 0);
	cr_assert_eq(r3ring_book_renew(book, answer.reservation, ttl_ns, 1000), 0);
	cr_assert_eq(r3ring_book_list(book, 0, &info, 1), 1);
	cr_expect_eq(info.expires_ns, expires_ns, "renewed: %lu", info.expires_ns);
	cr_assert_eq(r3ring_book_renew(book, answer.reservation, 5, 1000), 0);
	cr_assert_eq(r3ring_book_commit(book, answer.reservation, ttl_ns, 1000), 0);
	cr_assert_eq(r3ring_book_list(book, 0, &info, 1), 1);
	cr_expect_eq(info.expires_ns, expires_ns, "committed: %lu", info.expires_ns);
	cr_expect_eq(r3ring_book_expire(book, 1001), 0);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_expiry, a_ttl_that_no_clock_comes_to_is_for_ever)
{
	expect_expiry(100, 1100);
	expect_expiry(UINT64_MAX - 1000, UINT64_MAX);
	expect_expiry(UINT64_MAX - 999, 0);
	expect_expiry(UINT64_MAX, 0);
	expect_expiry(0, 0);
}

Test(reserve_expiry, a_reservation_that_is_not_committed_in_time_expires)
{
	struct r3ring_book *book = book_open(&book_small, 2, 100);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer kept, leased, lost;
	struct r3ring_book_stats stats;

	cr_assert_eq(book_make(book, "kept", 0, demand, &kept), 0);
	cr_assert_eq(book_make(book, "leased", 0, demand, &leased), 0);
	cr_assert_eq(book_make(book, "lost", 0, demand, &lost), 0);
	cr_expect_eq(r3ring_book_commit(book, kept.reservation, 0, 1050), 0);
	cr_expect_eq(r3ring_book_commit(book, kept.reservation, 0, 1050), 0,
		     "as often as one likes");
	cr_expect_eq(r3ring_book_commit(book, leased.reservation, 200, 1050), 0);
	cr_expect_eq(r3ring_book_expire(book, 1099), 0);
	cr_expect_eq(r3ring_book_expire(book, 1100), 1);
	cr_expect_eq(r3ring_book_commit(book, lost.reservation, 0, 1100), -ENOENT);
	cr_expect_eq(r3ring_book_expire(book, 1250), 1);
	cr_expect_eq(r3ring_book_expire(book, UINT64_MAX), 0);
	r3ring_book_get_stats(book, &stats);
	cr_expect_eq(stats.expired, 2);
	cr_expect_eq(stats.committed, 1);
	cr_expect_eq(r3ring_book_free(book, kept.reservation), 0);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_expiry, what_a_dead_owner_held_is_freed_and_nothing_else)
{
	struct r3ring_book *book = book_open(&book_small, 2, 100);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer answer;
	struct r3ring_reservation_info info[4];
	struct r3ring_book_stats stats;

	cr_assert_eq(book_make(book, "a", 1, demand, &answer), 0);
	cr_assert_eq(book_make(book, "b", 2, demand, &answer), 0);
	cr_assert_eq(book_make(book, "c", 1, demand, &answer), 0);
	cr_assert_eq(book_make(book, "d", 0, demand, &answer), 0);
	cr_expect_eq(r3ring_book_owner_gone(book, 1), 2);
	cr_expect_eq(r3ring_book_owner_gone(book, 0), 0, "nobody's are not one owner's");
	cr_assert_eq(r3ring_book_list(book, 0, info, 4), 2);
	cr_expect_str_eq(info[0].key, "b");
	cr_expect_str_eq(info[1].key, "d");
	cr_expect_eq(info[0].owner, 2);
	cr_expect_eq(info[0].expires_ns, 1100);
	cr_expect_eq(r3ring_book_list(book, info[0].reservation, info, 4), 1);
	r3ring_book_get_stats(book, &stats);
	cr_expect_eq(stats.orphaned, 2);
	cr_expect_eq(stats.units, 2 * 2 * 9 * R3RING_DEMAND_TOKEN);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_expiry, a_reservation_is_renewed_without_being_committed)
{
	struct r3ring_book *book = book_open(&book_small, 2, 100);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	struct r3ring_reserve_answer answer;
	struct r3ring_reservation_info info;

	cr_assert_eq(book_make(book, "a", 0, demand, &answer), 0);
	cr_expect_eq(r3ring_book_renew(book, answer.reservation, 200, 1050), 0);
	cr_assert_eq(r3ring_book_list(book, 0, &info, 1), 1);
	cr_expect_eq(info.expires_ns, 1250);
	cr_expect_not(info.committed);
	cr_expect_eq(r3ring_book_commit(book, answer.reservation, 0, 1050), 0);
	cr_expect_eq(r3ring_book_renew(book, answer.reservation, 10, 1050), 0);
	cr_assert_eq(r3ring_book_list(book, 0, &info, 1), 1);
	cr_expect(info.committed);
	cr_expect_eq(r3ring_book_expire(book, 1060), 1);
	cr_expect_eq(r3ring_book_renew(book, answer.reservation, 10, 1060), -ENOENT);
	book_expect_empty(book, 2, 2, 4);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}

Test(reserve_expiry, one_without_a_time_lasts_for_ever_and_so_does_one_that_is_renewed_without)
{
	struct r3ring_book *book = book_open(&book_small, 2, 100);
	struct r3ring_demand *demand = book_demand(&book_small, wants_2, 9);
	const struct r3ring_reserve_request request = {.key = "a", .now_ns = 1000};
	struct r3ring_reserve_answer answer;

	cr_assert_eq(r3ring_book_make(book, &request, demand, &answer), 0);
	cr_expect_eq(r3ring_book_expire(book, UINT64_MAX), 0);
	cr_expect_eq(r3ring_book_renew(book, answer.reservation, 10, 1000), 0);
	cr_expect_eq(r3ring_book_renew(book, answer.reservation, 0, 1000), 0);
	cr_expect_eq(r3ring_book_expire(book, UINT64_MAX), 0);
	cr_expect_eq(r3ring_book_free(book, answer.reservation), 0);
	r3ring_demand_destroy(demand);
	r3ring_book_destroy(book);
}
