/* SPDX-License-Identifier: Apache-2.0 */
/* How many refusals the log lists. */
#include <criterion/criterion.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/refusals.h"

#define WHILE_NS (REFUSALS_SECONDS * NS_PER_SECOND)

static struct refusals refusals;

static unsigned int listed_of(unsigned int count, uint64_t now_ns)
{
	unsigned int listed = 0;

	while (count--)
		listed += refusals_list(&refusals, now_ns);
	return listed;
}

Test(daemon_refusals, a_peer_that_asks_without_end_is_listed_so_often_and_no_more)
{
	cr_expect_eq(listed_of(3000, 1), REFUSALS_LISTED);
	cr_expect_eq(refusals_left_out(&refusals, WHILE_NS), 0);
	cr_expect_eq(listed_of(1, WHILE_NS), 0);
}

Test(daemon_refusals, what_was_left_out_is_counted_once_and_then_listed_again)
{
	listed_of(3000, 1);
	cr_expect_eq(refusals_left_out(&refusals, WHILE_NS + 1), 3000 - REFUSALS_LISTED);
	cr_expect_eq(refusals_left_out(&refusals, 2 * WHILE_NS + 1), 0);
	cr_expect_eq(listed_of(1, 2 * WHILE_NS + 1), 1);
}

Test(daemon_refusals, seldom_ones_are_all_listed)
{
	for (uint64_t i = 1; i <= 10 * REFUSALS_LISTED; i++) {
		cr_expect_eq(refusals_left_out(&refusals, i * NS_PER_SECOND), 0);
		cr_expect_eq(listed_of(1, i * NS_PER_SECOND), 1);
	}
}
