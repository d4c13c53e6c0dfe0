/* SPDX-License-Identifier: Apache-2.0 */
/* Naps of the drain thread within a step. */
#include <criterion/criterion.h>

#include "capture_daemon/pace.h"

#define US 1000ull
#define MS 1000000ull

static struct pace learned(uint64_t interval_ns)
{
	struct pace pace = {0};

	for (int i = 0; i < 50; i++)
		pace_observe(&pace, interval_ns);
	return pace;
}

/* When a bell rings @interval_ns after the last one, how late is it heard, and
 * after how many naps? */
static uint64_t lateness(const struct pace *pace, uint64_t interval_ns, unsigned int *naps)
{
	uint64_t now = 0;

	for (*naps = 0; now < interval_ns; (*naps)++)
		now += pace_nap_ns(pace, now);
	return now - interval_ns;
}

Test(daemon_pace, a_regular_bell_is_heard_at_once_after_few_naps)
{
	struct pace pace = learned(20 * MS);
	unsigned int naps;

	cr_expect_leq(lateness(&pace, 20 * MS, &naps), 40 * US);
	cr_expect_leq(naps, 10);
}

Test(daemon_pace, a_bell_that_comes_a_little_early_or_late_is_heard_soon)
{
	struct pace pace = {0};
	unsigned int naps;

	for (int i = 0; i < 100; i++)
		pace_observe(&pace, i % 2 ? 19 * MS : 21 * MS);
	cr_expect_leq(lateness(&pace, 18 * MS, &naps), 40 * US);
	cr_expect_leq(lateness(&pace, 22 * MS, &naps), 40 * US);
	/* At 50 steps a second: a nap costs some 5 us, a tenth of a core is 2 ms. */
	cr_expect_leq(naps, 250);
}

Test(daemon_pace, without_knowledge_lateness_is_a_sixteenth)
{
	struct pace pace = {0};
	unsigned int naps;

	cr_expect_leq(lateness(&pace, 160 * MS, &naps), 10 * MS + 40 * US);
}

Test(daemon_pace, a_step_that_never_ends_costs_few_naps)
{
	struct pace pace = learned(5 * MS);
	unsigned int naps;

	lateness(&pace, 10000 * MS, &naps);
	cr_expect_leq(naps, 600);
}

Test(daemon_pace, a_death_is_noticed_within_50_ms)
{
	struct pace slow = learned(60000 * MS);

	cr_expect_leq(pace_nap_ns(&slow, 0), 50 * MS);
	cr_expect_leq(pace_nap_ns(&slow, 1000000 * MS), 50 * MS);
}
