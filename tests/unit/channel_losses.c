/* SPDX-License-Identifier: Apache-2.0 */
/* What a channel lost, by LOST records and totals told by hand. */
#include <criterion/criterion.h>

#include "consumer/channel_losses.h"

#define FULL R3RING_CAUSE_RING_FULL

static struct channel_losses losses;

static void begin(void)
{
	channel_losses_generation(&losses, losses.generation + 1, true);
}

TestSuite(channel_losses, .init = begin);

static void lose(uint64_t steps, uint64_t rows, bool counts)
{
	const struct r3ring_record record = {
		.type = R3RING_LOST, .u.lost = {.steps = steps, .rows = rows, .cause = FULL}};

	channel_losses_record(&losses, &record, counts);
}

/* A keyframe by which so much was lost since the generation began. */
static void total(uint64_t steps, uint64_t rows, bool counts)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.totals.lost_steps[FULL] = steps;
	record.u.keyframe.totals.lost_rows[FULL] = rows;
	channel_losses_record(&losses, &record, counts);
}

static void expect(uint64_t steps, uint64_t rows)
{
	cr_expect_eq(losses.account.steps[FULL], steps, "%lu steps", losses.account.steps[FULL]);
	cr_expect_eq(losses.account.rows[FULL], rows, "%lu rows", losses.account.rows[FULL]);
	cr_expect_eq(lost_account_steps(&losses.account), steps);
}

static void expect_unheard(uint64_t steps, uint64_t rows)
{
	cr_expect_eq(losses.account.unheard_steps[FULL], steps);
	cr_expect_eq(losses.account.unheard_rows[FULL], rows);
	cr_expect_eq(lost_account_unheard(&losses.account), steps);
}

Test(channel_losses, a_keyframe_proves_what_was_lost_since_the_one_before_and_was_not_told)
{
	lose(2, 20, true);
	total(2, 20, true);
	channel_losses_gap(&losses, true);
	lose(1, 10, true);
	total(6, 63, true);
	expect(6, 63);
	expect_unheard(3, 33);
	cr_expect_eq(losses.account.unproved, 0);
}

Test(channel_losses, the_next_generations_totals_begin_at_nothing)
{
	lose(9, 90, true);
	total(9, 90, true);
	channel_losses_generation(&losses, losses.generation + 1, true);
	channel_losses_gap(&losses, true);
	total(3, 33, true);
	expect(12, 123);
	expect_unheard(3, 33);
}

Test(channel_losses, of_a_generation_that_is_not_read_whole_the_first_keyframe_proves_nothing)
{
	channel_losses_generation(&losses, losses.generation + 1, false);
	channel_losses_gap(&losses, true);
	total(5, 50, true);
	expect(0, 0);
	cr_expect_eq(losses.account.unproved, 1);
	channel_losses_gap(&losses, true);
	total(7, 70, true);
	expect(2, 20);
	cr_expect_eq(losses.account.unproved, 1);
}

/* Who lies has lost no more for it, and no less. */
Test(channel_losses, totals_that_are_less_than_was_told_change_nothing)
{
	lose(5, 50, true);
	total(3, 30, true);
	expect(5, 50);
	total(2, 20, true);
	expect(5, 50);
	expect_unheard(0, 0);
}

Test(channel_losses, what_was_told_outside_of_the_time_is_not_proved_inside)
{
	lose(5, 50, false);
	expect(0, 0);
	channel_losses_gap(&losses, true);
	total(6, 60, true);
	expect(1, 10);
	expect_unheard(1, 10);
}

Test(channel_losses, what_a_keyframe_proves_belongs_to_the_time_of_the_gap)
{
	channel_losses_gap(&losses, true);
	total(3, 33, false);
	expect(3, 33);
	channel_losses_gap(&losses, false);
	total(7, 77, true);
	expect(3, 33);
	cr_expect_eq(losses.account.unproved, 0);
}

Test(channel_losses, without_a_gap_it_belongs_to_that_of_the_keyframe)
{
	total(3, 33, false);
	expect(0, 0);
	total(5, 55, true);
	expect(2, 22);
}

static void close_with(enum r3ring_closed_reason reason)
{
	const struct r3ring_record record = {.type = R3RING_CLOSED, .u.closed.reason = reason};

	channel_losses_record(&losses, &record, true);
}

/* The next generation, of an engine that goes on from so many before; 0: of another one. */
static void begin_behind(uint16_t continues)
{
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	begin();
	record.u.schema.head.continues = continues;
	channel_losses_record(&losses, &record, true);
}

Test(channel_losses, an_end_is_followed_by_its_engine_though_another_one_came_in_between)
{
	close_with(R3RING_CLOSED_CRASHED);
	begin_behind(0);
	close_with(R3RING_CLOSED_NEXT);
	cr_expect_eq(losses.account.unfollowed, 1);
	begin_behind(2);
	cr_expect_eq(losses.account.unfollowed, 0);
}

Test(channel_losses, the_end_of_the_engine_in_between_stays_open)
{
	close_with(R3RING_CLOSED_CRASHED);
	begin_behind(0);
	close_with(R3RING_CLOSED_CRASHED);
	cr_expect_eq(losses.account.unfollowed, 2);
	begin_behind(2);
	cr_expect_eq(losses.account.unfollowed, 1);
	close_with(R3RING_CLOSED_NEXT);
	begin_behind(2);
	cr_expect_eq(losses.account.unfollowed, 0);
}

Test(channel_losses, accounts_of_several_channels_are_added_for_every_cause)
{
	struct lost_account sum = {0};

	for (uint32_t cause = 1; cause < R3RING_CAUSE_COUNT; cause++) {
		struct lost_account one = {.unproved = 1, .unfollowed = 2};

		one.steps[cause] = cause;
		one.rows[cause] = 10 * cause;
		one.unheard_steps[cause] = 1;
		one.unheard_rows[cause] = 2;
		lost_account_add(&sum, &one);
		lost_account_add(&sum, &one);
		cr_expect_eq(sum.steps[cause], 2 * cause);
		cr_expect_eq(sum.rows[cause], 20 * cause);
		cr_expect_eq(sum.unheard_rows[cause], 4);
	}
	cr_expect_eq(sum.unproved, 2 * 11);
	cr_expect_eq(sum.unfollowed, 2 * 22);
	cr_expect_eq(lost_account_steps(&sum), 2 * 66);
	cr_expect_eq(lost_account_unheard(&sum), 2 * 11);
}
