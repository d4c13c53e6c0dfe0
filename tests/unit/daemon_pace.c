/* SPDX-License-Identifier: Apache-2.0 */
/* Naps and spins of the drain thread within a step. */
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

/* What waiting for one bell came to. */
struct waited {
	uint64_t late_ns; /* heard so much after it rang */
	uint64_t spun_ns;
	unsigned int naps;
};

/* Waits for a bell that rings @interval_ns after the last one; a spin hears it at once,
 * each nap lasts @over_ns longer than it was asked to. */
static struct waited wait_for(const struct pace *pace, uint64_t interval_ns, uint64_t over_ns)
{
	struct waited waited = {0};
	uint64_t now = 0;

	while (now < interval_ns) {
		struct pace_wait wait = pace_wait(pace, now);
		uint64_t left = interval_ns - now;

		if (wait.spin) {
			uint64_t ns = left < wait.ns ? left : wait.ns;

			waited.spun_ns += ns;
			now += ns;
		} else {
			waited.naps++;
			now += wait.ns + over_ns;
		}
	}
	waited.late_ns = now - interval_ns;
	return waited;
}

Test(daemon_pace, a_regular_bell_is_heard_at_once_after_few_naps)
{
	struct pace pace = learned(20 * MS);
	struct waited waited = wait_for(&pace, 20 * MS, 0);

	cr_expect_eq(waited.late_ns, 0, "by a spin");
	cr_expect_leq(waited.naps, 3);
	cr_expect_leq(waited.spun_ns, 200 * US);
}

Test(daemon_pace, a_nap_that_lasts_60_us_too_long_does_not_miss_a_regular_bell)
{
	struct pace pace = learned(20 * MS);

	cr_expect_eq(wait_for(&pace, 20 * MS, 60 * US).late_ns, 0);
	cr_expect_eq(wait_for(&pace, 20 * MS + 50 * US, 60 * US).late_ns, 0);
}

Test(daemon_pace, one_bell_that_was_held_up_changes_nothing)
{
	struct pace pace = learned(20 * MS);

	pace_observe(&pace, 90 * MS);
	cr_expect_eq(wait_for(&pace, 20 * MS + 7 * US, 0).late_ns, 0);
	cr_expect_leq(wait_for(&pace, 20 * MS, 0).spun_ns, 200 * US);
	pace_observe(&pace, 20 * MS);
	pace_observe(&pace, 1 * MS);
	cr_expect_eq(wait_for(&pace, 20 * MS + 7 * US, 0).late_ns, 0);
}

Test(daemon_pace, another_pace_is_known_after_eight_bells)
{
	struct pace pace = learned(20 * MS);

	for (int i = 0; i < 8; i++)
		pace_observe(&pace, 2 * MS);
	cr_expect_eq(wait_for(&pace, 2 * MS, 0).late_ns, 0);
}

Test(daemon_pace, spins_take_a_32nd_of_a_core_at_most)
{
	static const uint64_t intervals[] = {50 * US, 500 * US, 2 * MS, 20 * MS, 1000 * MS};

	for (size_t i = 0; i < sizeof(intervals) / sizeof(*intervals); i++) {
		for (uint64_t spread = 0; spread < 100; spread += 3) {
			uint64_t interval = intervals[i], spun;
			struct pace pace = {0};

			for (int bell = 0; bell < 8; bell++)
				pace_observe(&pace, interval + (bell % 2 ? 1 : 0) * interval *
								       spread / 100);
			spun = wait_for(&pace, 10 * interval, 0).spun_ns;
			cr_expect_leq(spun, pace.expected_ns / 32);
			cr_expect_leq(spun, 2 * MS);
		}
	}
}

Test(daemon_pace, nothing_is_spun_where_most_bells_come_at_other_times)
{
	struct pace pace = {0};

	for (int i = 0; i < 100; i++)
		pace_observe(&pace, i % 2 ? 19 * MS : 21 * MS);
	cr_expect_eq(wait_for(&pace, 60 * MS, 0).spun_ns, 0);
}

Test(daemon_pace, a_bell_that_comes_a_little_early_or_late_is_heard_soon)
{
	struct pace pace = {0};
	struct waited waited;

	for (int i = 0; i < 100; i++)
		pace_observe(&pace, i % 2 ? 19 * MS : 21 * MS);
	cr_expect_leq(wait_for(&pace, 18 * MS, 0).late_ns, 40 * US);
	waited = wait_for(&pace, 22 * MS, 0);
	cr_expect_leq(waited.late_ns, 40 * US);
	/* At 50 steps a second: a nap costs some 5 us, a tenth of a core is 2 ms. */
	cr_expect_leq(waited.naps, 250);
}

Test(daemon_pace, without_knowledge_lateness_is_a_sixteenth)
{
	struct pace pace = {0};

	cr_expect_leq(wait_for(&pace, 160 * MS, 0).late_ns, 10 * MS + 40 * US);
}

Test(daemon_pace, a_step_that_never_ends_costs_few_naps)
{
	struct pace pace = learned(5 * MS);

	cr_expect_leq(wait_for(&pace, 10000 * MS, 0).naps, 600);
}

Test(daemon_pace, a_death_is_noticed_within_50_ms)
{
	struct pace slow = learned(60000 * MS);

	cr_expect_leq(pace_wait(&slow, 0).ns, 50 * MS);
	cr_expect_leq(pace_wait(&slow, 1000000 * MS).ns, 50 * MS);
}
