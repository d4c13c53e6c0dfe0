/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines that get new weights in place run what they had run anew, from the first token. Where
 * those may have come in records that were lost, how far an attempt was seen to run since does not
 * tell how far it had come before.
 */
#include "consumer/assembler/assembler.h"

/* Whether the engine may have got new weights since the step before, or since it began. */
static bool is_renewed(const struct channel *channel, const struct step *step)
{
	if (!channel->settled_step && !generation_goes_on(channel))
		return step->head.step != 1;
	return step->head.weight_version != channel->weight_version;
}

static void part_renew(const struct part *part)
{
	struct attempt *newest = part_newest(part);

	if (newest)
		newest->renewed |= attempt_is_open(newest);
}

void channel_follow_weights(struct channel *channel, const struct step *step)
{
	struct part *part, *next;

	if (!is_renewed(channel, step))
		return;
	channel->steady = false;
	HASH_ITER (hh, channel->parts, part, next) {
		part_renew(part);
	}
	HASH_ITER (hh, channel->suspended, part, next) {
		part_renew(part);
	}
}
