/* SPDX-License-Identifier: Apache-2.0 */
/* What `r3ring top` counts as lost, from picture to picture. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tools/top_losses.h"

/* A daemon with "a/0" of a generation, that has lost so many steps of four rows. */
static struct daemon_picture *picture(unsigned int generation, unsigned int lost,
				      unsigned int partial)
{
	char json[512];
	json_t *status;
	struct daemon_picture *made;

	snprintf(json, sizeof(json),
		 "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"generation\":%u,"
		 "\"uuid\":\"u%u\",\"steps_partial\":%u,"
		 "\"lost\":{\"buffer_full\":{\"steps\":%u,\"rows\":%u}}}]}",
		 generation, generation, partial, lost, lost * 4);
	status = json_loads(json, 0, NULL);
	made = daemon_picture_of(status);
	json_decref(status);
	return made;
}

static struct top_losses losses;
static struct daemon_picture *last;

static void next(struct daemon_picture *now)
{
	top_losses_add(&losses, last, now);
	daemon_picture_put(last);
	last = now;
}

static void forget(void)
{
	daemon_picture_put(last);
}

TestSuite(top_losses, .fini = forget);

Test(top_losses, what_was_lost_before_somebody_looked_counts)
{
	next(picture(1, 3, 1));
	cr_expect_eq(losses.steps.steps[R3RING_CAUSE_BUFFER_FULL], 3);
	cr_expect_eq(losses.steps.all_rows, 12);
	cr_expect_eq(losses.partial, 1);
	cr_expect(top_losses_any(&losses));
}

Test(top_losses, of_what_was_lost_before_somebody_looked_nobody_knows_when)
{
	next(picture(1, 3, 1));
	cr_expect_eq(losses.newest_ns, 0);
	next(picture(1, 3, 1));
	cr_expect_eq(losses.newest_ns, 0);
	next(picture(1, 4, 1));
	cr_expect_eq(losses.newest_ns, last->taken_ns);
	cr_expect_gt(losses.newest_ns, 0);
}

Test(top_losses, a_picture_like_the_one_before_adds_nothing)
{
	uint64_t newest;

	next(picture(1, 3, 1));
	newest = losses.newest_ns;
	next(picture(1, 3, 1));
	cr_expect_eq(losses.steps.all_steps, 3);
	cr_expect_eq(losses.newest_ns, newest);
}

Test(top_losses, a_new_generations_losses_come_on_top)
{
	next(picture(1, 3, 1));
	next(picture(2, 2, 0));
	cr_expect_eq(losses.steps.all_steps, 5);
	cr_expect_eq(losses.partial, 1);
}

Test(top_losses, an_end_that_nobody_follows_is_a_doubt_until_it_is_told_after_all)
{
	next(picture(1, 0, 0));
	top_losses_ends(&losses, 0);
	cr_expect_not(top_losses_any(&losses));
	top_losses_ends(&losses, 1);
	cr_expect(top_losses_any(&losses) && top_losses_doubt(&losses));
	top_losses_ends(&losses, 0);
	cr_expect_not(top_losses_any(&losses));
}

Test(top_losses, a_reset_begins_without_the_ends_that_nobody_followed)
{
	next(picture(1, 0, 0));
	top_losses_ends(&losses, 2);
	top_losses_reset(&losses);
	top_losses_ends(&losses, 2);
	cr_expect_not(top_losses_any(&losses));
	top_losses_ends(&losses, 3);
	cr_expect_eq(losses.unfollowed, 1);
	/* Of another engine, which has none. */
	top_losses_ends(&losses, 0);
	cr_expect_not(top_losses_any(&losses));
	top_losses_ends(&losses, 1);
	cr_expect_eq(losses.unfollowed, 1);
}

Test(top_losses, a_reset_begins_with_nothing)
{
	next(picture(1, 3, 1));
	top_losses_reset(&losses);
	cr_expect_not(top_losses_any(&losses));
	next(picture(1, 3, 1));
	cr_expect_not(top_losses_any(&losses));
	next(picture(1, 4, 1));
	cr_expect_eq(losses.steps.all_steps, 1);
}
