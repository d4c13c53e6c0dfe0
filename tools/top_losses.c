/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tools/top_losses.h"

#define NS_PER_S 1000000000u

/* Totals of the same generation before; of another one there are none. */
static struct picture_channel then(const struct daemon_picture *before,
				   const struct picture_channel *channel)
{
	const struct picture_channel *found = daemon_picture_find(before, channel->name);

	if (found && found->generation == channel->generation &&
	    strcmp(found->uuid, channel->uuid) == 0)
		return *found;
	return (struct picture_channel){0};
}

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* The sum of a second; of another one before it, nothing is left. */
static struct losses_recent *recent_at(struct top_losses *losses, uint64_t ns)
{
	uint64_t second = ns / NS_PER_S;
	struct losses_second *found = &losses->seconds[second % (LOSSES_RECENT_S + 1)];

	if (found->second != second)
		*found = (struct losses_second){.second = second};
	return &found->sum;
}

static uint64_t add_channel(struct top_losses *losses, struct losses_recent *recent,
			    const struct picture_channel *before, const struct picture_channel *now)
{
	uint64_t partial = more(now->steps_partial, before->steps_partial);
	uint64_t out_of_range = more(now->ids_out_of_range, before->ids_out_of_range);
	uint64_t steps = 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		uint64_t lost = more(now->lost.steps[cause], before->lost.steps[cause]);
		uint64_t rows = more(now->lost.rows[cause], before->lost.rows[cause]);

		recent->steps_of[cause] += lost;
		recent->lost += lost;
		losses->steps.steps[cause] += lost;
		losses->steps.rows[cause] += rows;
		losses->steps.all_steps += lost;
		losses->steps.all_rows += rows;
		steps += lost + rows;
	}
	recent->steps += more(now->steps, before->steps);
	recent->partial += partial;
	recent->out_of_range += out_of_range;
	losses->partial += partial;
	losses->out_of_range += out_of_range;
	return steps + partial + out_of_range;
}

static void look_at_readers(struct top_losses *losses, const struct picture_channel *channel)
{
	for (size_t i = 0; i < channel->reader_count; i++) {
		losses->readers_lost += channel->readers[i].lost;
		losses->readers_demoted += channel->readers[i].demoted;
	}
}

void top_losses_add(struct top_losses *losses, const struct daemon_picture *before,
		    const struct daemon_picture *now)
{
	struct losses_recent nobody_knows_when = {0}, *recent = &nobody_knows_when;

	if (before)
		recent = recent_at(losses, now->taken_ns);
	losses->readers_lost = 0;
	losses->readers_demoted = losses->crashed = losses->unbound = 0;
	losses->seen = losses->seen || now->state == PICTURE_LIVE;
	for (size_t i = 0; i < now->channel_count; i++) {
		const struct picture_channel *channel = &now->channels[i];
		const struct picture_channel old = then(before, channel);

		if (add_channel(losses, recent, &old, channel) && before)
			losses->newest_ns = now->taken_ns;
		losses->crashed += channel->crashed;
		losses->unbound += channel->unbound_count && strcmp(channel->state, "live") == 0;
		look_at_readers(losses, channel);
	}
}

/* Fewer than at the reset: those were told after all, or are another engine's. */
void top_losses_ends(struct top_losses *losses, uint64_t unfollowed)
{
	if (unfollowed < losses->unfollowed_then)
		losses->unfollowed_then = unfollowed;
	losses->unfollowed = unfollowed - losses->unfollowed_then;
}

static void add_recent(struct losses_recent *to, const struct losses_recent *more)
{
	to->steps += more->steps;
	to->lost += more->lost;
	to->partial += more->partial;
	to->out_of_range += more->out_of_range;
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		to->steps_of[cause] += more->steps_of[cause];
}

void top_losses_recent(const struct top_losses *losses, uint64_t now_ns,
		       struct losses_recent *recent)
{
	uint64_t now = now_ns / NS_PER_S;

	*recent = (struct losses_recent){0};
	for (uint32_t i = 0; i <= LOSSES_RECENT_S; i++) {
		const struct losses_second *second = &losses->seconds[i];

		if (second->second + LOSSES_RECENT_S >= now)
			add_recent(recent, &second->sum);
	}
}

void top_losses_reset(struct top_losses *losses)
{
	memset(&losses->steps, 0, sizeof(losses->steps));
	memset(losses->seconds, 0, sizeof(losses->seconds));
	losses->partial = losses->out_of_range = losses->newest_ns = 0;
	losses->unfollowed_then += losses->unfollowed;
	losses->unfollowed = 0;
}

bool top_losses_doubt(const struct top_losses *losses)
{
	return losses->crashed || losses->unfollowed;
}

bool top_losses_any(const struct top_losses *losses)
{
	return losses->steps.all_steps || losses->steps.all_rows || losses->partial ||
	       losses->out_of_range || losses->readers_demoted || top_losses_doubt(losses);
}
