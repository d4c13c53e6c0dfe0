/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/log.h"
#include "capture_daemon/refusals.h"

bool refusals_list(struct refusals *refusals, uint64_t now_ns)
{
	if (!refusals->listed)
		refusals->since_ns = now_ns;
	if (refusals->listed == REFUSALS_LISTED) {
		refusals->left_out++;
		return false;
	}
	refusals->listed++;
	return true;
}

uint64_t refusals_left_out(struct refusals *refusals, uint64_t now_ns)
{
	uint64_t left_out = refusals->left_out;

	if (now_ns - refusals->since_ns < REFUSALS_SECONDS * NS_PER_SECOND)
		return 0;
	*refusals = (struct refusals){0};
	return left_out;
}

void refusals_tell(struct refusals *refusals)
{
	uint64_t left_out = refusals_left_out(refusals, clock_now_ns());

	if (left_out)
		log_warn("%" PRIu64 " more refusals in %u s are not listed", left_out,
			 REFUSALS_SECONDS);
}

void refusals_log(struct refusals *refusals, int pid, unsigned int user, const char *why)
{
	refusals_tell(refusals);
	if (refusals_list(refusals, clock_now_ns()))
		log_warn("peer %d of user %u refused: %s", pid, user, why);
}
