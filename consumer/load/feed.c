/* SPDX-License-Identifier: Apache-2.0 */
/* Records come in: what each says to its channel. */
#include <errno.h>
#include <string.h>

#include "consumer/load/load.h"

/* ---- gaps ------------------------------------------------------------------ */

static uint64_t own_units(const struct r3ring_record *record)
{
	return record->type == R3RING_LAYER ? record->u.layer.head.valid_rows : 0;
}

/* What was not read between two records of a generation; the running total knows how
 * many cells that was. */
static void note_gap(struct load_channel *channel, const struct r3ring_view *view,
		     const struct r3ring_record *record)
{
	uint64_t expected = channel->units + own_units(record);

	channel->unseen.gaps++;
	channel_losses_gap(&channel->losses, true);
	if (view->units > expected)
		channel->unseen.lost[R3RING_MISSING_GAP] += view->units - expected;
}

/* Of generations that nobody has any more: how much it was nothing tells. */
static void note_unnumbered_gap(struct load_channel *channel)
{
	channel->unseen.gaps++;
	channel_losses_gap(&channel->losses, true);
}

/* Steps of the present schema, where there is one, are counted. */
static void end_steps(struct r3ring_load *load, struct load_channel *channel)
{
	load_cut_open(channel);
	load_steps_end_all(channel);
	if (load_board_now(channel))
		load_steps_settle(load, channel, true);
}

/* Whether it is known that the generation is of the engine that was read last. */
static bool engine_goes_on(const struct load_channel *channel, const struct r3ring_view *view,
			   const struct r3ring_record *record)
{
	return record->type == R3RING_SCHEMA && channel->generation < view->generation &&
	       view->generation - channel->generation <= record->u.schema.head.continues;
}

/* Epochs and handles begin anew. */
static void new_engine(struct r3ring_load *load, struct load_channel *channel)
{
	struct load_board *board = load_board_now(channel);

	load_cut_passes(channel);
	for (uint32_t i = 0; i < channel->boards; i++)
		load_board_end_epoch(channel->board[i]);
	if (board && board->ever.steps)
		load_board_show(load, board);
	load_maps_end(channel);
	load_watch_clear(&channel->watch);
}

/* Noticed by any record, since a reader that was lapped may not have the first one. */
static void new_generation(struct r3ring_load *load, struct load_channel *channel,
			   const struct r3ring_view *view, const struct r3ring_record *record)
{
	end_steps(load, channel);
	if (!engine_goes_on(channel, view, record))
		new_engine(load, channel);
	channel->schema_seen = false;
	channel->unknown_step = 0;
	channel->generation = view->generation;
	channel->seq = 0;
	channel->units = 0;
}

static void note_place(struct r3ring_load *load, struct load_channel *channel,
		       const struct r3ring_view *view, const struct r3ring_record *record)
{
	bool first = !channel->seq;

	if (view->generation != channel->generation) {
		new_generation(load, channel, view, record);
		channel_losses_generation(&channel->losses, view->generation,
					  !first || view->seq == 1);
	}
	/* A reader that comes late has lost nothing. */
	if (!first && view->seq != channel->seq + 1)
		note_gap(channel, view, record);
	else if (!first && channel->gap_told)
		note_unnumbered_gap(channel);
	channel->gap_told = false;
	channel->seq = view->seq;
	channel->units = view->units;
}

/* ---- schema ------------------------------------------------------------------ */

static bool other_model(struct r3ring_load *load, const struct r3ring_schema_record *schema)
{
	if (!load->model_known) {
		memcpy(load->model, schema->model, sizeof(load->model));
		load->experts = schema->experts;
		load->top_k = schema->top_k;
		load->model_known = true;
	}
	return strncmp(load->model, schema->model, sizeof(load->model)) != 0 ||
	       load->experts != schema->experts || load->top_k != schema->top_k;
}

static int begin_schema(struct r3ring_load *load, struct load_channel *channel,
			const struct r3ring_record *record)
{
	int r;

	channel->schema = record->u.schema.head;
	load_cut_schema(channel, &channel->schema);
	r = load_board_take(load, channel, record);
	channel->schema_seen = r == 0;
	return r;
}

static int feed_schema(struct r3ring_load *load, struct load_channel *channel,
		       const struct r3ring_record *record)
{
	const struct r3ring_schema_record *schema = &record->u.schema.head;
	int r;

	channel->copy = schema->replica != 0;
	channel->schema_seen = false;
	if (channel->copy || channel->draft)
		r = 0;
	else if (other_model(load, schema))
		r = -EPROTO;
	else
		r = begin_schema(load, channel, record);
	/* Of one that is refused nothing is counted: what was is not of now. */
	r3ring_store_relaxed_u32(&channel->ended, !channel->schema_seen);
	return r;
}

/* ---- losses -------------------------------------------------------------------- */

static void lose_steps(struct load_channel *channel, const struct r3ring_lost_record *lost)
{
	for (struct load_step *step = channel->open; step; step = step->next) {
		if (step->ended || !lost->from_step || step->head.step < lost->from_step ||
		    step->head.step > lost->to_step)
			continue;
		step->ended = true;
		step->lost = true;
	}
}

static void feed_lost(struct load_channel *channel, const struct r3ring_lost_record *lost)
{
	struct load_step *step = NULL;

	lose_steps(channel, lost);
	if (lost->cause == R3RING_CAUSE_DAEMON_RESTART && lost->steps == 1)
		step = load_step_find(channel, lost->from_step);
	if (step && step->lost) {
		step->cut = true;
		step->lost_cells = lost->layer_rows;
		return;
	}
	channel->unseen.lost[lost->cause < R3RING_MISSING_CAUSES ? lost->cause : 0] +=
		lost->layer_rows;
}

/* LOST records that fell into a gap are in the totals of the keyframe behind it, as whole rows. */
static void prove_losses(struct load_channel *channel, const struct r3ring_record *record)
{
	const struct load_board *board = load_board_now(channel);
	const struct lost_account before = channel->losses.account;
	const uint64_t *after = channel->losses.account.unheard_rows;

	channel_losses_record(&channel->losses, record, true);
	for (uint32_t cause = 0; board && cause < R3RING_CAUSE_COUNT; cause++)
		channel->unseen.lost[cause] +=
			(after[cause] - before.unheard_rows[cause]) * board->shape.layers;
}

/* Shown at once: what is lost may be the last that happens for long. */
static void tell_unseen(struct r3ring_load *load, struct load_channel *channel)
{
	static const struct r3ring_load_accounts none;
	struct load_board *board = load_board_now(channel);

	if (memcmp(&channel->unseen, &none, sizeof(none)) == 0)
		return;
	if (!load_board_account(board, &channel->unseen))
		return; /* until there is a step to put it to */
	channel->unseen = none;
	load_board_show(load, board);
}

/* ---- steps that nothing is known of ------------------------------------------ */

void load_note_unknown(struct r3ring_load *load, struct load_channel *channel, uint64_t step)
{
	if (step == channel->unknown_step)
		return;
	channel->unknown_step = step;
	load->stats.steps_unknown++;
}

/* In front of the first SCHEMA that is seen. */
static void note_early(struct r3ring_load *load, struct load_channel *channel,
		       const struct r3ring_record *record)
{
	if (channel->draft || channel->copy)
		return;
	if (record->type == R3RING_STEP)
		load_note_unknown(load, channel, record->u.step.head.step);
	else if (record->type == R3RING_LAYER)
		load_note_unknown(load, channel, record->u.layer.head.step);
}

/* ---- the end --------------------------------------------------------------------- */

static void end_channel(struct r3ring_load *load, struct load_channel *channel)
{
	end_steps(load, channel);
	r3ring_store_relaxed_u32(&channel->ended, 1);
}

static void feed_closed(struct r3ring_load *load, struct load_channel *channel,
			const struct r3ring_closed_record *closed)
{
	end_channel(load, channel);
	if (closed->engine_lives || closed->reason == R3RING_CLOSED_CRASHED)
		return;
	load_cut_stays(channel);
	end_steps(load, channel);
}

int r3ring_load_end(struct r3ring_load *load, uint32_t index)
{
	if (index >= load->channels)
		return -EINVAL;
	end_channel(load, load->channel[index]);
	load_cut_stays(load->channel[index]);
	end_steps(load, load->channel[index]);
	return 0;
}

void r3ring_load_flush(struct r3ring_load *load)
{
	for (uint32_t i = 0; i < load->channels; i++) {
		struct load_channel *channel = load->channel[i];

		load_cut_stays(channel);
		if (!channel->schema_seen)
			continue;
		load_steps_settle(load, channel, true);
		tell_unseen(load, channel);
	}
}

/* ---- one record ------------------------------------------------------------------ */

/* Whether nothing of the step's map is to come after these spans. */
static bool ends_map(const struct load_step *step, uint32_t flags)
{
	if (flags & R3RING_SPANS_CONTINUED)
		return false;
	return flags & R3RING_SPANS_REPLACE || !(step->head.flags & R3RING_STEP_SPANS_FOLLOW);
}

static void feed_spans(struct load_channel *channel, const struct r3ring_record *record)
{
	struct load_step *step = load_step_find(channel, record->u.spans.head.step);

	/* It was dropped, or waited for them in vain; what it ran it ran. */
	if (!step)
		load_rows_ran(channel, record->u.spans.spans, record->u.spans.head.spans);
	if (!step || !step->waiting)
		return;
	load_rows_learn(channel, step, record);
	if (ends_map(step, record->u.spans.head.flags))
		load_rows_map_ended(channel, step);
}

static int feed_step(struct r3ring_load *load, struct load_channel *channel,
		     const struct r3ring_record *record)
{
	load_steps_end_all(channel);
	load_cut_step_begins(channel, &record->u.step.head);
	load_steps_settle(load, channel, false);
	return load_step_begin(load, channel, record);
}

static int feed_record(struct r3ring_load *load, struct load_channel *channel,
		       const struct r3ring_view *view, const struct r3ring_record *record,
		       bool looked)
{
	switch (record->type) {
	case R3RING_STEP:
		return feed_step(load, channel, record);
	case R3RING_LAYER:
		load_step_layer(load, channel, record, looked);
		return 0;
	case R3RING_SPANS:
		feed_spans(channel, record);
		return 0;
	case R3RING_STEP_END:
		load_step_end(channel, record);
		return 0;
	case R3RING_REQUEST:
		return load_watch_request(&channel->watch, record,
					  view->flags & R3RING_DESC_REPEATED);
	case R3RING_LOST:
		if (!(view->flags & R3RING_DESC_REPEATED))
			feed_lost(channel, &record->u.lost);
		return 0;
	case R3RING_EPLB:
		return load_maps_take(load, channel, record);
	case R3RING_CLOSED:
		feed_closed(load, channel, &record->u.closed);
		return 0;
	default:
		return 0;
	}
}

int r3ring_load_skip(struct r3ring_load *load, uint32_t index, const struct r3ring_view *view)
{
	struct load_channel *channel;
	uint32_t cause = R3RING_MISSING_NOT_RECORDED;

	if (index >= load->channels)
		return -EINVAL;
	channel = load->channel[index];
	/* Nothing is known of what is in front of a first record. */
	if (view->generation != channel->generation || !channel->seq)
		return 0;
	if (view->seq != channel->seq + 1) {
		channel->unseen.gaps++;
		channel_losses_gap(&channel->losses, true);
		cause = R3RING_MISSING_GAP;
	}
	if (view->units > channel->units)
		channel->unseen.lost[cause] += view->units - channel->units;
	channel->seq = view->seq;
	channel->units = view->units;
	return 0;
}

int r3ring_load_gap(struct r3ring_load *load, uint32_t index)
{
	if (index >= load->channels)
		return -EINVAL;
	load->channel[index]->gap_told = true;
	return 0;
}

int load_take_record(struct r3ring_load *load, struct load_channel *channel,
		     const struct r3ring_view *view, const struct r3ring_record *record,
		     bool looked)
{
	int r = 0;

	load->stats.records++;
	note_place(load, channel, view, record);
	if ((record->type == R3RING_LOST || record->type == R3RING_KEYFRAME) &&
	    !(view->flags & R3RING_DESC_REPEATED))
		prove_losses(channel, record);
	if (record->type == R3RING_SCHEMA)
		r = feed_schema(load, channel, record);
	else if (channel->schema_seen)
		r = feed_record(load, channel, view, record, looked);
	else
		note_early(load, channel, record);
	if (!channel->schema_seen)
		return r;
	load_steps_settle(load, channel, false);
	tell_unseen(load, channel);
	return r;
}

int r3ring_load_feed(struct r3ring_load *load, uint32_t index, const struct r3ring_view *view,
		     const struct r3ring_record *record)
{
	if (index >= load->channels)
		return -EINVAL;
	return load_take_record(load, load->channel[index], view, record, false);
}
