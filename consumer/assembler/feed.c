/* SPDX-License-Identifier: Apache-2.0 */
/* Records come in: each becomes an item of its channel's queue, or fills a step. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "consumer/assembler/assembler.h"

/* ---- items -------------------------------------------------------------- */

static struct item *item_append(struct channel *channel, enum item_type type)
{
	struct item *item = type == ITEM_STEP ? channel->spare : NULL;

	if (item)
		channel->spare = NULL;
	else
		item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->type = type;
	DL_APPEND(channel->items, item);
	item_account(channel, item);
	return item;
}

/* Of no use after all. */
static void item_withdraw(struct channel *channel, struct item *item)
{
	DL_DELETE(channel->items, item);
	channel->memory->held -= item->bytes;
	item_free(item);
}

static int append_gap(struct channel *channel, uint8_t cause)
{
	struct item *item = item_append(channel, ITEM_GAP);

	if (!item)
		return -ENOMEM;
	item->cause = cause;
	return 0;
}

static int append_plain(struct channel *channel, enum item_type type)
{
	return item_append(channel, type) ? 0 : -ENOMEM;
}

/* Keeps the record, its arrays and texts: it may have to wait. */
static int append_record(struct channel *channel, const struct r3ring_view *view,
			 const struct r3ring_record *record)
{
	struct item *item = item_append(channel, ITEM_RECORD);
	size_t bytes = r3ring_record_size(record);
	long encoded;

	if (!item)
		return -ENOMEM;
	item->repeated = view->flags & R3RING_DESC_REPEATED;
	if (item->repeated && channel->keyframe_left)
		item->keyframe = channel->keyframes;
	item->carried = channel->carrying;
	item->payload_bytes = bytes ? bytes : 1;
	item->payload = malloc(item->payload_bytes);
	encoded = item->payload ? r3ring_record_encode(record, item->payload, bytes, NULL)
				: -ENOMEM;
	if (encoded < 0 || r3ring_record_decode(&item->record, record->type, item->payload,
						(size_t)encoded, NULL) < 0) {
		item_withdraw(channel, item);
		return -ENOMEM;
	}
	item_account(channel, item);
	return 0;
}

/* ---- schema and generation ---------------------------------------------- */

static bool same_layers(const struct row_pool *pool, const struct r3ring_record *record)
{
	const struct r3ring_layer_entry *layers = record->u.schema.layers;

	if (pool->layers != record->u.schema.head.layers)
		return false;
	for (uint32_t i = 0; i < pool->layers; i++)
		if (pool->layer[i].layer_id != layers[i].layer_id ||
		    pool->layer[i].kind != layers[i].kind)
			return false;
	return true;
}

/* One that the channel had, or a new one. */
static struct row_pool *pool_for(struct r3ring_assembler *assembler, struct channel *channel,
				 const struct r3ring_record *record)
{
	struct row_pool *pool = channel->pools;

	while (pool && !same_layers(pool, record))
		pool = pool->next;
	if (pool || channel->schemas == SCHEMAS_MAX)
		return pool;
	pool = row_pool_create(&record->u.schema.head, record->u.schema.layers,
			       &assembler->memory.held);
	if (!pool)
		return NULL;
	pool->channel = channel->index;
	pool->instance = channel->instance;
	pool->next = channel->pools;
	channel->pools = pool;
	channel->schemas++;
	return pool;
}

static bool other_model(struct r3ring_assembler *assembler,
			const struct r3ring_schema_record *schema)
{
	if (!assembler->model_known) {
		memcpy(assembler->model, schema->model, sizeof(assembler->model));
		assembler->experts = schema->experts;
		assembler->top_k = schema->top_k;
		assembler->model_known = true;
	}
	return strncmp(assembler->model, schema->model, sizeof(assembler->model)) != 0 ||
	       assembler->experts != schema->experts || assembler->top_k != schema->top_k;
}

static int feed_schema(struct r3ring_assembler *assembler, struct channel *channel,
		       const struct r3ring_record *record)
{
	const struct r3ring_schema_record *schema = &record->u.schema.head;
	struct row_pool *pool;

	channel->copy = schema->replica != 0;
	if (channel->copy || channel->draft)
		return 0;
	channel->schema_seen = false;
	if (other_model(assembler, schema))
		return -EPROTO;
	pool = pool_for(assembler, channel, record);
	if (!pool)
		return channel->schemas < SCHEMAS_MAX ? -ENOMEM : -EPROTO;
	channel->schema = *schema;
	channel->pool = pool;
	channel->schema_seen = true;
	return 0;
}

/* ---- keyframes ---------------------------------------------------------- */

static int keyframe_over(struct channel *channel)
{
	struct item *item = item_append(channel, ITEM_KEYFRAME_END);

	if (!item)
		return -ENOMEM;
	item->keyframe = channel->keyframes;
	item->abridged = channel->abridged;
	return 0;
}

static int feed_keyframe(struct channel *channel, const struct r3ring_view *view,
			 const struct r3ring_record *record)
{
	channel->keyframes++;
	channel->keyframe_seq = view->seq + 1;
	channel->keyframe_left = record->u.keyframe.records;
	channel->abridged = view->flags & R3RING_DESC_ABRIDGED;
	return channel->keyframe_left ? 0 : keyframe_over(channel);
}

/* A keyframe of which a record is not seen says nothing about who has ended. */
static int keyframe_go_on(struct channel *channel, const struct r3ring_view *view)
{
	if (!channel->keyframe_left)
		return 0;
	if (view->seq != channel->keyframe_seq || !(view->flags & R3RING_DESC_REPEATED)) {
		channel->keyframe_left = 0;
		return 0;
	}
	channel->keyframe_seq++;
	return --channel->keyframe_left ? 0 : keyframe_over(channel);
}

/* ---- steps -------------------------------------------------------------- */

static struct step *open_step(const struct channel *channel, uint64_t number)
{
	struct item *item = channel->items;

	if (!item)
		return NULL;
	for (item = item->prev;; item = item->prev) {
		/* Numbers begin anew in each generation. */
		if (item->type == ITEM_GENERATION)
			return NULL;
		if (item->type == ITEM_STEP && item->step.head.step == number)
			return &item->step;
		if (item == channel->items)
			return NULL;
	}
}

static struct item *item_of(struct step *step)
{
	return (struct item *)((uintptr_t)step - offsetof(struct item, step));
}

/* Whatever was not said of earlier steps is not said any more. */
static void end_former_steps(struct channel *channel)
{
	struct item *item;

	DL_FOREACH(channel->items, item)
	{
		if (item->type == ITEM_STEP)
			item->step.ended = true;
	}
}

/* Nor are spans, whoever waits for them. */
static void end_generation(struct channel *channel)
{
	struct item *item;

	end_former_steps(channel);
	DL_FOREACH(channel->items, item)
	{
		if (item->type == ITEM_STEP)
			item->step.over = true;
	}
}

static int feed_step(struct channel *channel, const struct r3ring_view *view,
		     const struct r3ring_record *record)
{
	struct item *item;
	int r;

	end_former_steps(channel);
	if (!memory_may_take_step(channel->memory, step_bytes_to_open(channel, record)))
		return append_gap(channel, R3RING_MISSING_EVICTED);
	item = item_append(channel, ITEM_STEP);
	if (!item)
		return -ENOMEM;
	r = step_open(&item->step, channel, view->seq, record);
	if (r < 0) {
		item_withdraw(channel, item);
		key_store_forget_slots(&channel->keys);
		return r;
	}
	item_account(channel, item);
	channel->waiting++;
	return 0;
}

static int feed_spans(struct r3ring_assembler *assembler, struct channel *channel,
		      const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct step *step = open_step(channel, record->u.spans.head.step);

	if (step) {
		step_spans(step, view->seq, record);
		item_account(channel, item_of(step));
	} else if (record->u.spans.head.flags & R3RING_SPANS_REPLACE)
		spans_place_again(assembler, channel, record);
	return 0;
}

static int feed_lost(struct channel *channel, const struct r3ring_view *view,
		     const struct r3ring_record *record)
{
	const struct r3ring_lost_record *lost = &record->u.lost;
	struct item *item;

	DL_FOREACH(channel->items, item)
	{
		if (item->type == ITEM_STEP && !item->step.ended && lost->from_step &&
		    item->step.head.step >= lost->from_step &&
		    item->step.head.step <= lost->to_step)
			step_lost(&item->step, (uint8_t)lost->cause);
	}
	return append_record(channel, view, record);
}

/* ---- one record --------------------------------------------------------- */

static int feed_part_of_step(struct r3ring_assembler *assembler, struct channel *channel,
			     const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct step *step;

	switch (record->type) {
	case R3RING_LAYER:
		step = open_step(channel, record->u.layer.head.step);
		if (step)
			step_layer(step, record, assembler->experts);
		return 0;
	case R3RING_ROWS:
		step = open_step(channel, record->u.rows.head.step);
		if (step) {
			step_rows(step, record);
			item_account(channel, item_of(step));
		}
		return 0;
	case R3RING_STEP_END:
		step = open_step(channel, record->u.step_end.head.step);
		if (step)
			step_end(step, record);
		return 0;
	default:
		return feed_spans(assembler, channel, view, record);
	}
}

static int feed_record(struct r3ring_assembler *assembler, struct channel *channel,
		       const struct r3ring_view *view, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_STEP:
		return feed_step(channel, view, record);
	case R3RING_LAYER:
	case R3RING_ROWS:
	case R3RING_STEP_END:
	case R3RING_SPANS:
		return feed_part_of_step(assembler, channel, view, record);
	case R3RING_LOST:
		return feed_lost(channel, view, record);
	case R3RING_REQUEST:
	case R3RING_KEY_COPY:
		return append_record(channel, view, record);
	case R3RING_KEYFRAME:
		end_former_steps(channel);
		return feed_keyframe(channel, view, record);
	case R3RING_CLOSED:
		channel->closed = true;
		end_former_steps(channel);
		return 0;
	default:
		return 0;
	}
}

/* Behind its SCHEMA a generation has the maps and requests of the one that it goes on from, as
 * they were told there. */
static void note_carrying(struct channel *channel, const struct r3ring_view *view,
			  const struct r3ring_record *record)
{
	if (record->type == R3RING_SCHEMA)
		channel->carrying = view->seq == 1 && record->u.schema.head.continues;
	else
		channel->carrying &= record->type == R3RING_EPLB ||
				     (record->type == R3RING_REQUEST &&
				      record->u.request.head.event == R3RING_REQUEST_BEGIN);
}

static int feed_place(struct r3ring_assembler *assembler, struct channel *channel,
		      const struct r3ring_view *view, const struct r3ring_record *record)
{
	int r = 0;

	if (view->generation != channel->generation) {
		end_generation(channel);
		/* By the schema that it had. */
		channel_settle(assembler, channel, false);
		channel->keyframe_left = 0;
		channel->cut = !channel->closed;
		channel->closed = false;
		channel->generation = view->generation;
		/* Nor is anything known of one whose own was lost: whose engine's it is, and what ran. */
		channel->schema_seen = false;
		r = append_plain(channel, ITEM_GENERATION);
	}
	if (r == 0 && record->type == R3RING_SCHEMA && view->seq == 1 &&
	    !(view->flags & R3RING_DESC_REPEATED))
		r = append_plain(channel, ITEM_READY);
	note_carrying(channel, view, record);
	return r;
}

int r3ring_assembler_feed(struct r3ring_assembler *assembler, uint32_t index,
			  const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct channel *channel;
	uint64_t generation;
	bool whole;
	int r;

	if (index >= assembler->channels)
		return -EINVAL;
	channel = assembler->channel[index];
	generation = channel->generation;
	whole = !channel->lossy;
	channel->unfollowed = false;
	r = feed_place(assembler, channel, view, record);
	if (r == 0 && record->type == R3RING_SCHEMA)
		r = feed_schema(assembler, channel, record);
	/* A late reader's first record is a keyframe; its schema is the next. */
	channel->lossy |= !channel->schema_seen && !channel->copy && !channel->draft;
	if (r == 0 && (channel->schema_seen || record->type == R3RING_KEYFRAME) && !channel->copy &&
	    !channel->draft) {
		r = feed_record(assembler, channel, view, record);
		if (record->type != R3RING_KEYFRAME) {
			int left = keyframe_go_on(channel, view);

			r = r ? r : left;
		}
	}
	channel_settle(assembler, channel, false);
	if (channel->generation != generation || (whole && channel->lossy))
		requests_look_again(assembler);
	requests_make_room(assembler);
	return r;
}

int r3ring_assembler_skip(struct r3ring_assembler *assembler, uint32_t index,
			  const struct r3ring_view *view, uint32_t first, uint32_t end)
{
	struct channel *channel;
	struct step *step = NULL;

	if (index >= assembler->channels)
		return -EINVAL;
	channel = assembler->channel[index];
	if (end && channel->schema_seen && !channel->copy && !channel->draft &&
	    view->generation == channel->generation)
		step = open_step(channel, view->step);
	channel->unfollowed = false;
	if (step)
		step_skip(step, first, end);
	return keyframe_go_on(channel, view);
}

void r3ring_assembler_gap(struct r3ring_assembler *assembler, uint32_t index)
{
	struct channel *channel;
	struct item *item;
	bool whole;

	if (index >= assembler->channels)
		return;
	channel = assembler->channel[index];
	whole = !channel->lossy;
	channel->keyframe_left = 0;
	channel->carrying = false;
	DL_FOREACH(channel->items, item)
	{
		if (item->type == ITEM_STEP)
			step_gap(&item->step);
	}
	/* Without memory for the item it is settled at once, which forgets more. */
	if (append_gap(channel, R3RING_MISSING_GAP) < 0) {
		key_store_forget_slots(&channel->keys);
		requests_gap(channel, R3RING_MISSING_GAP);
	}
	channel_settle(assembler, channel, false);
	if (whole && channel->lossy)
		requests_look_again(assembler);
}

void r3ring_assembler_unfollowed(struct r3ring_assembler *assembler, uint32_t index)
{
	if (index < assembler->channels)
		assembler->channel[index]->unfollowed = true;
}

void r3ring_assembler_flush(struct r3ring_assembler *assembler)
{
	for (uint32_t i = 0; i < assembler->channels; i++) {
		end_former_steps(assembler->channel[i]);
		channel_settle(assembler, assembler->channel[i], true);
	}
	for (uint32_t i = 0; i < assembler->channels; i++)
		if (assembler->channel[i]->unfollowed)
			requests_unfollowed(assembler, assembler->channel[i]);
	requests_flush(assembler);
}
