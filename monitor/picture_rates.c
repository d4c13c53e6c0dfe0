/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "monitor/daemon_picture.h"

static bool of_one_generation(const struct picture_channel *before,
			      const struct picture_channel *now)
{
	return before->generation == now->generation && strcmp(before->uuid, now->uuid) == 0;
}

static void keep_least(uint64_t *to, uint64_t least)
{
	if (*to < least)
		*to = least;
}

static void carry_on(struct picture_channel *now, const struct picture_channel *before)
{
	keep_least(&now->steps, before->steps);
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		keep_least(&now->lost.steps[cause], before->lost.steps[cause]);
		keep_least(&now->lost.rows[cause], before->lost.rows[cause]);
	}
	keep_least(&now->lost.all_steps, before->lost.all_steps);
	keep_least(&now->lost.all_rows, before->lost.all_rows);
}

void picture_carry_on(struct daemon_picture *now, const struct daemon_picture *before)
{
	for (size_t i = 0; i < now->channel_count; i++) {
		struct picture_channel *channel = &now->channels[i];
		const struct picture_channel *then = daemon_picture_find(before, channel->name);

		if (then && of_one_generation(then, channel))
			carry_on(channel, then);
	}
}

static bool went_back(const struct picture_channel *before, const struct picture_channel *now)
{
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (now->lost.steps[cause] < before->lost.steps[cause] ||
		    now->lost.rows[cause] < before->lost.rows[cause])
			return true;
	}
	return now->steps < before->steps || now->rows < before->rows ||
	       now->records < before->records || now->bytes < before->bytes;
}

static void lost_in_between(const struct picture_lost *before, const struct picture_lost *now,
			    struct picture_lost *lost)
{
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		lost->steps[cause] = now->steps[cause] - before->steps[cause];
		lost->rows[cause] = now->rows[cause] - before->rows[cause];
	}
	lost->all_steps = now->all_steps - before->all_steps;
	lost->all_rows = now->all_rows - before->all_rows;
}

void picture_rates(const struct daemon_picture *before, const struct daemon_picture *now,
		   const struct picture_channel *channel, struct picture_rates *rates)
{
	const struct picture_channel *then = daemon_picture_find(before, channel->name);

	memset(rates, 0, sizeof(*rates));
	if (!then || now->taken_ns <= before->taken_ns || !of_one_generation(then, channel) ||
	    went_back(then, channel))
		return;
	rates->known = true;
	rates->seconds = (double)(now->taken_ns - before->taken_ns) / 1e9;
	rates->steps = (double)(channel->steps - then->steps) / rates->seconds;
	rates->rows = (double)(channel->rows - then->rows) / rates->seconds;
	rates->records = (double)(channel->records - then->records) / rates->seconds;
	rates->bytes = (double)(channel->bytes - then->bytes) / rates->seconds;
	lost_in_between(&then->lost, &channel->lost, &rates->lost_in_between);
	rates->lost_steps = (double)rates->lost_in_between.all_steps / rates->seconds;
}
