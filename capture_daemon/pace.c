/* SPDX-License-Identifier: Apache-2.0 */
/* Naps and spins within a step, by the median and the spread of earlier intervals. */
#include "capture_daemon/pace.h"

#define NAP_SHORT_NS 40000ull
#define NAP_OVER_NS 60000ull         /* by which a nap may last longer, in a virtual machine */
#define NAP_EARLY_MAX_NS 20000000ull /* so that a dead producer is noticed */
#define NAP_LATE_MAX_NS 50000000ull
#define LATE_SHARE 16           /* a late event is noticed at most 1/16 later */
#define SPIN_SHARE 64           /* of the expected interval, before and again after its end, */
#define SPIN_MOST_NS 1000000ull /* but no longer each */

/* Copies the intervals that are known, shortest first; returns how many. */
static uint32_t sort(const struct pace *pace, uint64_t sorted[PACE_INTERVALS])
{
	uint32_t known = pace->count < PACE_INTERVALS ? (uint32_t)pace->count : PACE_INTERVALS;

	for (uint32_t i = 0; i < known; i++) {
		uint32_t place = i;

		for (; place && sorted[place - 1] > pace->intervals[i]; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = pace->intervals[i];
	}
	return known;
}

void pace_observe(struct pace *pace, uint64_t interval_ns)
{
	uint64_t sorted[PACE_INTERVALS] = {0};
	uint32_t known;

	pace->intervals[pace->count++ % PACE_INTERVALS] = interval_ns;
	known = sort(pace, sorted);
	pace->expected_ns = sorted[known / 2];
	/* One that was held up, by whatever it was, says nothing of the next. */
	pace->spread_ns = known > 2 ? (sorted[known - 2] - sorted[1]) / 2 : interval_ns / 2;
}

static uint64_t bounded(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How long before the expected time a spin begins, and how long after it ends; 0 where
 * most events would come at other times. */
static uint64_t spin_lead(const struct pace *pace, uint64_t margin)
{
	uint64_t most = least(pace->expected_ns / SPIN_SHARE, SPIN_MOST_NS);

	return most < pace->spread_ns ? 0 : least(margin, most);
}

static struct pace_wait nap(uint64_t ns)
{
	return (struct pace_wait){.ns = ns};
}

struct pace_wait pace_wait(const struct pace *pace, uint64_t elapsed_ns)
{
	uint64_t margin = 4 * pace->spread_ns + NAP_SHORT_NS + NAP_OVER_NS;
	uint64_t lead = spin_lead(pace, margin);
	uint64_t early = pace->expected_ns > margin ? pace->expected_ns - margin : 0;
	uint64_t late = pace->expected_ns + margin;

	if (elapsed_ns < early)
		return nap(bounded(early - elapsed_ns, NAP_SHORT_NS, NAP_EARLY_MAX_NS));
	if (elapsed_ns > late)
		return nap(
			bounded((elapsed_ns - late) / LATE_SHARE, NAP_SHORT_NS, NAP_LATE_MAX_NS));
	if (elapsed_ns + lead < pace->expected_ns)
		return nap(least(NAP_SHORT_NS, pace->expected_ns - lead - elapsed_ns));
	if (elapsed_ns < pace->expected_ns + lead)
		return (struct pace_wait){pace->expected_ns + lead - elapsed_ns, true};
	return nap(NAP_SHORT_NS);
}
