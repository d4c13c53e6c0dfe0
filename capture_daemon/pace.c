/* SPDX-License-Identifier: Apache-2.0 */
/* Naps within a step, by the mean and the deviation of earlier intervals. */
#include "capture_daemon/pace.h"

#define NAP_SHORT_NS 40000ull
#define NAP_EARLY_MAX_NS 20000000ull /* so that a dead producer is noticed */
#define NAP_LATE_MAX_NS 50000000ull
#define LATE_SHARE 16 /* a late event is noticed at most 1/16 later */

static uint64_t moved(uint64_t value, uint64_t sample, unsigned int shift)
{
	return value - (value >> shift) + (sample >> shift);
}

void pace_observe(struct pace *pace, uint64_t interval_ns)
{
	uint64_t off = interval_ns > pace->mean_ns ? interval_ns - pace->mean_ns
						   : pace->mean_ns - interval_ns;

	if (!pace->mean_ns) {
		pace->mean_ns = interval_ns;
		pace->deviation_ns = interval_ns / 2;
		return;
	}
	pace->mean_ns = moved(pace->mean_ns, interval_ns, 3);
	pace->deviation_ns = moved(pace->deviation_ns, off, 2);
}

static uint64_t bounded(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

uint64_t pace_nap_ns(const struct pace *pace, uint64_t elapsed_ns)
{
	uint64_t margin = 4 * pace->deviation_ns + NAP_SHORT_NS;
	uint64_t early = pace->mean_ns > margin ? pace->mean_ns - margin : 0;
	uint64_t late = pace->mean_ns + margin;

	if (elapsed_ns < early)
		return bounded(early - elapsed_ns, NAP_SHORT_NS, NAP_EARLY_MAX_NS);
	if (elapsed_ns > late)
		return bounded((elapsed_ns - late) / LATE_SHARE, NAP_SHORT_NS, NAP_LATE_MAX_NS);
	return NAP_SHORT_NS;
}
