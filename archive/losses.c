/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/losses.h"

#include <string.h>

static void take_generation(struct archive_losses *losses, const struct archive_generation *said)
{
	if (losses->said && losses->generation == said->generation &&
	    memcmp(losses->uuid, said->uuid, sizeof(losses->uuid)) == 0)
		return;
	losses->said = true;
	losses->generation = said->generation;
	memcpy(losses->uuid, said->uuid, sizeof(losses->uuid));
	channel_losses_generation(&losses->of, said->generation, !said->seq);
}

static void take_gap(struct archive_losses *losses, const struct archive_gap *gap, bool counts)
{
	if (gap->cause == ARCHIVE_GAP_LATE && gap->lost)
		channel_losses_late(&losses->of);
	else
		channel_losses_gap(&losses->of, counts);
}

static void take_record(struct archive_losses *losses, const struct archive_item *item,
			const struct r3ring_record *record, bool counts)
{
	/* What a segment says again stands for no keyframe: the LOST records behind that one
	 * may be in a segment that is gone. */
	if (item->repeated)
		return;
	channel_losses_more(&losses->of);
	if (item->view.flags & R3RING_DESC_REPEATED)
		return;
	if (record)
		channel_losses_record(&losses->of, record, counts);
	else if (item->view.type == R3RING_LOST)
		channel_losses_gap(&losses->of, counts);
}

void archive_losses_take(struct archive_losses *losses, const struct archive_item *item,
			 const struct r3ring_record *record, bool counts)
{
	if (item->kind == ARCHIVE_GENERATION)
		take_generation(losses, &item->u.generation);
	else if (item->kind == ARCHIVE_GAP)
		take_gap(losses, &item->u.gap, counts);
	else if (item->kind == ARCHIVE_RECORD)
		take_record(losses, item, record, counts);
	else if (item->kind == ARCHIVE_SKIPPED)
		channel_losses_more(&losses->of);
	else if (item->kind == ARCHIVE_UNFOLLOWED)
		channel_losses_unfollowed(&losses->of, counts);
}
