/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a channel's reader was given, in order: by step number, layer and row only. What
 * it means (positions, passes, keys) the simulation knows by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/system/engine_sim/sim.h"

static struct sim_heard *note(struct sim_channel *channel, enum sim_heard_type type)
{
	struct sim_heard *heard;

	if (channel->heard_count == channel->heard_room) {
		channel->heard_room = channel->heard_room ? channel->heard_room * 2 : 256;
		channel->heard =
			realloc(channel->heard, channel->heard_room * sizeof(*channel->heard));
	}
	heard = &channel->heard[channel->heard_count++];
	*heard = (struct sim_heard){.type = type};
	return heard;
}

void sim_hear_gap(struct sim_channel *channel)
{
	channel->keyframe_left = 0;
	channel->loss_heard = true;
	note(channel, SIM_HEARD_GAP);
}

/* ---- which step, which request ------------------------------------------ */

static struct sim_step *step_of(struct sim *sim, const struct sim_channel *channel, uint64_t number)
{
	struct sim_step *step;

	if (!channel->schema_heard)
		return NULL;
	for (step = sim->steps; step; step = step->next)
		if (step->engine == channel->engine && step->number == number &&
		    step->epoch == channel->heard_epoch && step->spans)
			return step;
	return NULL;
}

/* Announced in this generation, else NULL. */
static struct sim_told *told_of(struct sim *sim, struct sim_channel *channel, uint64_t number,
				struct sim_step **step)
{
	struct sim_told *told;

	*step = step_of(sim, channel, number);
	told = *step ? (*step)->told[channel->index] : NULL;
	return told && told->generation == channel->heard_generation ? told : NULL;
}

static struct sim_life *life_of(struct sim *sim, const struct sim_channel *channel, uint64_t handle)
{
	for (uint32_t i = 0; i < sim->requests && channel->schema_heard; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++) {
			struct sim_life *life = sim->request[i].life[j];

			if (life->engine == channel->engine && life->handle == handle &&
			    life->epoch == channel->heard_epoch)
				return life;
		}
	return NULL;
}

/* Which of the step's spans these are, whatever their positions are said to be. */
static uint32_t spans_of(const struct sim_step *step, const struct r3ring_span *spans,
			 uint32_t count)
{
	uint32_t said = 0;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < step->spans; j++) {
			const struct r3ring_span *span = &step->span[j].told;

			if (span->request == spans[i].request && span->kind == spans[i].kind &&
			    span->row == spans[i].row && span->rows == spans[i].rows)
				said |= 1u << j;
		}
	return said;
}

static bool is_whole(const struct sim_step *step, uint32_t said)
{
	return said == (uint32_t)((UINT64_C(1) << step->spans) - 1);
}

/* ---- by type ------------------------------------------------------------ */

static void hear_step(struct sim *sim, struct sim_channel *channel,
		      const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	struct sim_step *step = step_of(sim, channel, head->step);
	struct sim_told *told;

	if (!step)
		return;
	if (!step->told[channel->index])
		step->told[channel->index] = calloc(1, sizeof(*told));
	told = step->told[channel->index];
	*told = (struct sim_told){
		.announced = true,
		.at = channel->heard_count,
		.generation = channel->heard_generation,
		.continues = channel->continues_heard,
		.spans = spans_of(step, record->u.step.spans, head->spans),
	};
	told->whole_map = is_whole(step, told->spans);
	note(channel, SIM_HEARD_STEP)->step = step;
}

/* Whether what was said of a step tells that more of its map follows. */
static bool waits(const struct sim_step *step, uint32_t said)
{
	bool late = step->positions_late;

	for (uint32_t i = 0; i < step->spans; i++)
		late |= ((said >> i) & 1) && step->span[i].late;
	return late;
}

static void hear_spans(struct sim *sim, struct sim_channel *channel,
		       const struct r3ring_record *record)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;
	struct sim_step *step;
	struct sim_told *told = told_of(sim, channel, head->step, &step);

	if (!told)
		return;
	if (!(head->flags & R3RING_SPANS_REPLACE)) {
		told->spans |= spans_of(step, record->u.spans.spans, head->spans);
		told->whole_map = is_whole(step, told->spans);
		return;
	}
	if (!(head->flags & R3RING_SPANS_MORE))
		told->late_spans = told->late_said = 0;
	told->late_spans += head->spans;
	told->late_said |= spans_of(step, record->u.spans.spans, head->spans);
	if (head->flags & R3RING_SPANS_CONTINUED)
		return;
	told->late_map = told->late_spans == step->late_spans;
	told->late_at = channel->heard_count;
	/* Of these some may have been lost with a record of the first map, but nobody waits for a
	 * map of which nothing was heard that is to come. */
	if (told->late_map && waits(step, told->spans))
		told->spans |= told->late_said;
}

static void hear_layer(struct sim *sim, struct sim_channel *channel,
		       const struct r3ring_layer_record *head)
{
	struct sim_step *step;
	struct sim_told *told = told_of(sim, channel, head->step, &step);
	uint32_t layer = channel->first_layer + head->layer_index;

	for (uint32_t i = 0; told && i < head->rows && head->row + i < step->rows; i++)
		told->rows[layer] |= UINT64_C(1) << (head->row + i);
}

static void hear_step_end(struct sim *sim, struct sim_channel *channel,
			  const struct r3ring_record *record)
{
	struct sim_step *step;
	struct sim_told *told = told_of(sim, channel, record->u.step_end.head.step, &step);

	if (!told)
		return;
	told->ended = true;
	for (uint32_t i = 0; i < record->u.step_end.head.missing; i++)
		for (uint32_t layer = 0; layer < sim->config.layers; layer++)
			if (sim_layer(layer).layer_id == record->u.step_end.missing[i].layer_id &&
			    sim_layer(layer).kind == record->u.step_end.missing[i].kind)
				told->cause[layer] = (uint8_t)record->u.step_end.missing[i].cause;
}

static void hear_request(struct sim *sim, struct sim_channel *channel,
			 const struct r3ring_view *view, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct sim_life *life = life_of(sim, channel, head->handle);
	struct sim_heard *heard;

	if (!life)
		return;
	heard = note(channel,
		     head->event == R3RING_REQUEST_BEGIN ? SIM_HEARD_BEGIN : SIM_HEARD_END);
	life->told_begin[channel->index] |= head->event == R3RING_REQUEST_BEGIN;
	if (head->event != R3RING_REQUEST_BEGIN && life->told_begin[channel->index] &&
	    !life->told_end && !channel->copy && !channel->draft)
		life->told_end = sim->fed;
	heard->life = life;
	heard->repeated = view->flags & R3RING_DESC_REPEATED;
	heard->over = head->reason != R3RING_END_PREEMPTED;
	heard->keyframe = view->flags & R3RING_DESC_REPEATED ? channel->keyframe : 0;
}

static void hear_copy(struct sim_channel *channel, const struct r3ring_record *record)
{
	struct sim_heard *heard = note(channel, SIM_HEARD_COPY);

	heard->pairs = record->u.key_copy.head.pairs;
	memcpy(heard->pair, record->u.key_copy.pairs, heard->pairs * sizeof(*heard->pair));
}

/* ---- keyframes and generations ------------------------------------------ */

static void keyframe_go_on(struct sim_channel *channel, const struct r3ring_view *view)
{
	if (view->type == R3RING_KEYFRAME || !channel->keyframe_left)
		return;
	if (view->seq != channel->keyframe_seq || !(view->flags & R3RING_DESC_REPEATED)) {
		channel->keyframe_left = 0;
		return;
	}
	channel->keyframe_seq++;
	if (--channel->keyframe_left == 0)
		note(channel, SIM_HEARD_KEYFRAME)->keyframe = channel->keyframe;
}

static void hear_place(struct sim_channel *channel, const struct r3ring_view *view,
		       const struct r3ring_record *record)
{
	if (view->generation != channel->heard_generation) {
		channel->heard_generation = view->generation;
		channel->keyframe_left = 0;
		channel->schema_heard = false;
		note(channel, SIM_HEARD_GENERATION);
	}
	if (view->type != R3RING_SCHEMA)
		return;
	channel->schema_heard = true;
	channel->rank_heard = true;
	channel->continues_heard = record->u.schema.head.continues;
	channel->heard_epoch = (uint32_t)record->u.schema.head.weight_version;
	if (view->seq == 1 && !(view->flags & R3RING_DESC_REPEATED))
		note(channel, SIM_HEARD_FIRST)->continues = channel->continues_heard;
}

void sim_hear(struct sim *sim, struct sim_channel *channel, const struct r3ring_view *view,
	      const struct r3ring_record *record)
{
	hear_place(channel, view, record);
	switch (record->type) {
	case R3RING_STEP:
		hear_step(sim, channel, record);
		break;
	case R3RING_SPANS:
		hear_spans(sim, channel, record);
		break;
	case R3RING_LAYER:
		hear_layer(sim, channel, &record->u.layer.head);
		break;
	case R3RING_STEP_END:
		hear_step_end(sim, channel, record);
		break;
	case R3RING_REQUEST:
		hear_request(sim, channel, view, record);
		break;
	case R3RING_KEY_COPY:
		hear_copy(channel, record);
		break;
	case R3RING_LOST:
		if (record->u.lost.spans_unknown)
			note(channel, SIM_HEARD_LOST_SPANS);
		break;
	case R3RING_KEYFRAME:
		channel->keyframe++;
		channel->keyframe_seq = view->seq + 1;
		channel->keyframe_left = record->u.keyframe.records;
		break;
	default:
		break;
	}
	keyframe_go_on(channel, view);
}
