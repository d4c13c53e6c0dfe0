/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "monitor/daemon_totals.h"

static void counts_of(const struct picture_channel *channel, uint64_t counts[TOTALS])
{
	counts[TOTAL_STEPS] = channel->steps;
	counts[TOTAL_STEPS_PARTIAL] = channel->steps_partial;
	counts[TOTAL_ROWS] = channel->rows;
	counts[TOTAL_RECORDS] = channel->records;
	counts[TOTAL_BYTES] = channel->bytes;
	counts[TOTAL_IDS_MISSING] = channel->ids_missing;
	counts[TOTAL_IDS_OUT_OF_RANGE] = channel->ids_out_of_range;
	counts[TOTAL_READER_WAITS] = channel->waits_for_readers;
	counts[TOTAL_READER_WAITS_MS] = channel->waited_for_readers_ms;
	counts[TOTAL_READERS_DEMOTED] = channel->readers_demoted;
	memcpy(counts + TOTAL_LOST_STEPS, channel->lost.steps, sizeof(channel->lost.steps));
	memcpy(counts + TOTAL_LOST_ROWS, channel->lost.rows, sizeof(channel->lost.rows));
}

static struct totals_channel *find(struct daemon_totals *totals, const char *name)
{
	for (uint32_t i = 0; i < totals->channels; i++)
		if (strcmp(totals->channel[i].name, name) == 0)
			return &totals->channel[i];
	return NULL;
}

static struct totals_channel *place_for(struct daemon_totals *totals,
					const struct daemon_picture *picture)
{
	if (totals->channels < TOTALS_CHANNELS_MAX)
		return &totals->channel[totals->channels++];
	for (uint32_t i = 0; i < totals->channels; i++)
		if (!daemon_picture_find(picture, totals->channel[i].name))
			return &totals->channel[i];
	return NULL;
}

/* A count that went back has begun anew. */
static void take(struct totals_channel *to, const struct picture_channel *channel)
{
	bool same = to->generation == channel->generation && !strcmp(to->uuid, channel->uuid);
	uint64_t counts[TOTALS];

	counts_of(channel, counts);
	for (uint32_t i = 0; i < TOTALS; i++) {
		bool goes_on = same && counts[i] >= to->seen[i];

		to->sum[i] += goes_on ? counts[i] - to->seen[i] : counts[i];
		to->seen[i] = counts[i];
	}
	snprintf(to->uuid, sizeof(to->uuid), "%s", channel->uuid);
	to->generation = channel->generation;
	to->present = true;
}

void daemon_totals_take(struct daemon_totals *totals, const struct daemon_picture *picture)
{
	if (picture->state != PICTURE_LIVE)
		return;
	totals->left_out = 0;
	for (uint32_t i = 0; i < totals->channels; i++)
		totals->channel[i].present = false;
	for (size_t i = 0; i < picture->channel_count; i++) {
		const struct picture_channel *channel = &picture->channels[i];
		struct totals_channel *to = find(totals, channel->name);

		if (!to) {
			to = place_for(totals, picture);
			if (to) {
				*to = (struct totals_channel){0};
				snprintf(to->name, sizeof(to->name), "%s", channel->name);
			}
		}
		if (to)
			take(to, channel);
		else
			totals->left_out++;
	}
}
