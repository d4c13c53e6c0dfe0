/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <r3ring/record.h>

#include "archive/export/gaps.h"

void export_gaps_free(struct export_gaps *gaps)
{
	free(gaps->seen);
	*gaps = (struct export_gaps){0};
}

void export_gaps_begin(struct export_gaps *gaps, const struct archive_item *item,
		       struct export_losses *losses)
{
	if (!gaps->begun && !gaps->lacks_beginning && item->place.segment > 1)
		losses->rotated = (struct export_rotated){
			.segments = item->place.segment - 1,
			.from_ns = item->time_ns,
		};
	gaps->begun = true;
}

static int make_room(struct export_gaps *gaps, uint32_t channel)
{
	struct export_channel_seen *seen;

	if (channel < gaps->channels)
		return 0;
	seen = realloc(gaps->seen, (channel + 1) * sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	gaps->seen = seen;
	for (; gaps->channels <= channel; gaps->channels++)
		seen[gaps->channels] = (struct export_channel_seen){0};
	return 0;
}

/* The first step behind a gap says how many may be in it. */
static void note_step(struct export_channel_seen *seen, uint64_t step, struct export_losses *losses)
{
	if (seen->open) {
		losses->gap[seen->open - 1].step_after = step;
		seen->open = 0;
	}
	seen->step = step;
}

static void note_gap(struct export_channel_seen *seen, const struct archive_item *item,
		     struct export_losses *losses)
{
	struct export_gap *told = &losses->gap[losses->told];

	losses->gaps++;
	losses->records += item->u.gap.lost;
	losses->unsized += !item->u.gap.lost;
	losses->late |= item->u.gap.cause == ARCHIVE_GAP_LATE;
	seen->open = 0;
	if (losses->told == EXPORT_GAPS_TOLD)
		return;
	*told = (struct export_gap){
		.cause = item->u.gap.cause,
		.generation = item->view.generation,
		.lost = item->u.gap.lost,
		.step_before = seen->step,
		.from_ns = seen->time_ns,
		.to_ns = item->time_ns,
		.place = item->place,
	};
	snprintf(told->channel, sizeof(told->channel), "%s", item->name);
	seen->open = ++losses->told;
}

static void note_losses(struct export_channel_seen *seen, const struct archive_item *item)
{
	const uint16_t type = item->view.type;
	struct r3ring_record record;
	bool decoded = false;

	if (item->kind == ARCHIVE_RECORD && channel_losses_takes(type))
		decoded =
			!r3ring_record_decode(&record, type, item->view.data, item->view.len, NULL);
	archive_losses_take(&seen->losses, item, decoded ? &record : NULL, true);
}

int export_gaps_note(struct export_gaps *gaps, uint32_t channel, const struct archive_item *item,
		     struct export_losses *losses)
{
	struct export_channel_seen *seen;

	if (make_room(gaps, channel))
		return -ENOMEM;
	seen = &gaps->seen[channel];
	if (item->kind == ARCHIVE_GAP)
		note_gap(seen, item, losses);
	else if (item->kind == ARCHIVE_GENERATION && !item->repeated)
		seen->step = seen->open = 0; /* steps begin anew */
	else if (item->kind == ARCHIVE_RECORD && item->view.type == R3RING_STEP)
		note_step(seen, item->view.step, losses);
	note_losses(seen, item);
	seen->time_ns = item->time_ns;
	return 0;
}

void export_gaps_sum(const struct export_gaps *gaps, struct export_losses *losses)
{
	losses->channels = (struct lost_account){0};
	for (uint32_t i = 0; i < gaps->channels; i++)
		lost_account_add(&losses->channels, &gaps->seen[i].losses.of.account);
}
