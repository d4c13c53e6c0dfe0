/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a channel, settled in the ring's order. */
#include <stdlib.h>

#include <utlist.h>

#include "consumer/assembler/assembler.h"

#define SPARE_BYTES_MOST (1u << 20)

void item_account(const struct channel *channel, struct item *item)
{
	const uint64_t bytes = heap_bytes(sizeof(*item)) + heap_bytes(item->payload_bytes) +
			       step_bytes(&item->step);

	channel->memory->held += bytes - item->bytes;
	item->bytes = bytes;
}

void item_free(struct item *item)
{
	if (item->type == ITEM_STEP)
		step_release(&item->step);
	free(item->payload);
	free(item);
}

/* The next step is opened in the memory of one that was settled. */
static void item_leave(struct channel *channel, struct item *item)
{
	DL_DELETE(channel->items, item);
	channel->memory->held -= item->bytes;
	item->bytes = 0;
	if (item->type != ITEM_STEP || channel->spare ||
	    step_bytes(&item->step) > SPARE_BYTES_MOST) {
		item_free(item);
		return;
	}
	step_clear(&item->step);
	channel->spare = item;
}

/* ---- steps -------------------------------------------------------------- */

static bool ends_later(const struct item *item, uint64_t handle)
{
	for (item = item->next; item; item = item->next)
		if (item->type == ITEM_RECORD && item->record.type == R3RING_REQUEST &&
		    item->record.u.request.head.event == R3RING_REQUEST_END &&
		    item->record.u.request.head.handle == handle)
			return true;
	return false;
}

/* Spans of a request that has ended do not come any more. */
static bool map_may_come(const struct item *item)
{
	const struct step *step = &item->step;
	bool all = step->head.flags & R3RING_STEP_SPANS_FOLLOW;

	if (all && !step->map.spans)
		return true;
	for (uint32_t i = 0; i < step->map.spans; i++) {
		const struct r3ring_span *span = &step->map.span[i];

		if (!all &&
		    (!(span->flags & R3RING_SPAN_DRAFT) || span->accepted != R3RING_UNKNOWN_U32))
			continue;
		if (!ends_later(item, span->request))
			return true;
	}
	return false;
}

static bool step_ready(const struct r3ring_assembler *assembler, const struct channel *channel,
		       const struct item *item)
{
	const struct step *step = &item->step;

	if (!step->ended)
		return false;
	if (step_map_settled(step) || step->over ||
	    channel->waiting > assembler->options.late_steps)
		return true;
	return !map_may_come(item);
}

/* Whether steps of the engine ran before this one that nobody saw, or what this one ran is not known:
 * steps are numbered one by one, and from 1 in each generation. */
static bool blocks_unseen(const struct channel *channel, const struct step *step)
{
	return !channel->ready || step->head.step != channel->settled_step + 1 ||
	       (!channel->settled_step && generation_goes_on(channel)) || !step->map_known ||
	       !step_map_settled(step);
}

static void settle_step(struct r3ring_assembler *assembler, struct channel *channel,
			struct item *item)
{
	struct step *step = &item->step;

	step_seal(step);
	/* Who only looks on takes one pass under a hash for the other. */
	if (!assembler->onlooker.ctx && blocks_unseen(channel, step)) {
		key_store_doubt(&channel->keys, channel->weight_version);
		key_store_doubt(&channel->keys, step->head.weight_version);
	}
	if (!step_map_settled(step) || !step->map_known)
		assembler->stats.spans_late++;
	channel_follow_weights(channel, step);
	channel->waiting--;
	channel->weight_version = step->head.weight_version;
	channel->settled_step = step->head.step;
	runs_note_step(channel, step->head.host_ns);
	if (channel->ready)
		step_place(assembler, channel, step);
	else
		assembler->stats.rows_unattributed += step->rows;
	if (assembler->waits_for_times)
		requests_look_again(assembler);
	if (step->rows && !step->row[step->rows - 1])
		requests_gap(channel, R3RING_MISSING_EVICTED); /* no memory */
}

/* ---- the others --------------------------------------------------------- */

/* Which hashes were run steps tell; but copies of them may have been lost. */
static void keys_gap(struct channel *channel)
{
	key_store_forget_slots(&channel->keys);
	if (channel->keys.hashes_copied)
		key_store_doubt(&channel->keys, channel->weight_version);
}

static void settle_record(struct r3ring_assembler *assembler, struct channel *channel,
			  const struct item *item)
{
	const struct r3ring_record *record = &item->record;

	switch (record->type) {
	case R3RING_REQUEST:
		/* Without memory its rows are nobody's, which is counted. */
		if (record->u.request.head.event == R3RING_REQUEST_BEGIN)
			request_begin(assembler, channel, item);
		else
			request_end(assembler, channel, record);
		break;
	case R3RING_KEY_COPY:
		keys_copy(channel, record, channel->weight_version);
		break;
	case R3RING_LOST:
		if (record->u.lost.spans_unknown) {
			keys_gap(channel);
			requests_gap(channel, (uint8_t)record->u.lost.cause);
		}
		break;
	default:
		break;
	}
}

static void settle(struct r3ring_assembler *assembler, struct channel *channel, struct item *item)
{
	switch (item->type) {
	case ITEM_STEP:
		channel->lossy |= !channel->ready;
		settle_step(assembler, channel, item);
		break;
	case ITEM_RECORD:
		settle_record(assembler, channel, item);
		break;
	case ITEM_READY:
		channel->ready = true;
		runs_follow(channel, true);
		channel->steady = !generation_goes_on(channel);
		break;
	case ITEM_KEYFRAME_END:
		channel->lossy |= !channel->ready;
		channel->ready = true;
		/* What it leaves out may have begun before new weights came. */
		channel->steady |= !item->abridged;
		if (!item->abridged)
			requests_keyframe(assembler, channel, item->keyframe);
		break;
	case ITEM_GAP:
		keys_gap(channel);
		requests_gap(channel, item->cause ? item->cause : R3RING_MISSING_GAP);
		break;
	case ITEM_GENERATION:
		channel->ready = false;
		channel->steady = false;
		channel->settled_step = 0;
		channel->era++;
		key_store_begin(&channel->keys);
		requests_suspend(assembler, channel);
		break;
	}
}

void channel_settle(struct r3ring_assembler *assembler, struct channel *channel, bool all)
{
	struct item *item;

	while ((item = channel->items)) {
		if (item->type == ITEM_STEP && !all && !step_ready(assembler, channel, item))
			return;
		settle(assembler, channel, item);
		item_leave(channel, item);
	}
}
