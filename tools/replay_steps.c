/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: running steps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay_channel.h"

/* The daemon has told of all but so many of the steps that were run. */
static int wait_for_room(struct replay_channel *channel)
{
	uint64_t oldest = channel->under_way[channel->runs % REPLAY_WINDOW];
	int code = replay_flow_wait(channel->flow, oldest, channel->shared->options->stop);

	if (!code || code == -EINTR)
		return code;
	return r3ring_error_set(channel->shared->err, code,
				"%s: the daemon does not take its steps any more: %s",
				channel->name, strerror(-code));
}

static bool is_missing(const struct r3ring_record *end, const struct r3ring_layer_record *layer)
{
	for (uint32_t i = 0; i < end->u.step_end.head.missing; i++) {
		if (end->u.step_end.missing[i].layer_id == layer->layer_id &&
		    end->u.step_end.missing[i].kind == layer->kind)
			return true;
	}
	return false;
}

/* Ids beyond int16: 0xFFFF is missing, for which producers say -1. */
static int widen(struct replay_channel *channel, const uint16_t *ids, size_t count)
{
	if (count > channel->wide_room) {
		int32_t *grown = reallocarray(channel->wide, count, sizeof(*grown));

		if (!grown)
			return replay_no_memory(channel);
		channel->wide = grown;
		channel->wide_room = count;
	}
	for (size_t i = 0; i < count; i++)
		channel->wide[i] = ids[i] == R3RING_MISSING ? -1 : ids[i];
	return 0;
}

static int capture_part(struct replay_channel *channel, const struct replay_part *part)
{
	const uint16_t *ids = channel->step.ids + part->first;
	bool fits = channel->schema.experts <= INT16_MAX;
	struct r3ring_topk topk = {
		.ids = ids,
		.type = fits ? R3RING_INT16 : R3RING_INT32,
		.rows = part->head.rows,
		.columns = part->head.top_k,
		.row_offset = part->head.row,
		.row_stride = part->head.top_k,
	};
	int code = 0;

	if (!fits) {
		code = widen(channel, ids, (size_t)part->head.rows * part->head.top_k);
		topk.ids = channel->wide;
	}
	if (code)
		return code;
	code = r3ring_capture_layer(channel->producer, part->head.layer_index, &topk, NULL);
	if (code)
		return replay_fail(channel, code);
	channel->shared->report->layer_rows += part->head.valid_rows;
	if (part->head.row == channel->step.head.row_begin)
		channel->shared->report->out_of_range += part->head.out_of_range;
	return 0;
}

static int capture_rows(struct replay_channel *channel)
{
	const struct replay_step *step = &channel->step;
	int code = 0;

	if (!step->content || step->row_count != step->head.row_end - step->head.row_begin)
		return 0;
	code = r3ring_capture_rows(
		channel->producer, step->content & R3RING_ROWS_POSITIONS ? step->positions : NULL,
		step->content & R3RING_ROWS_TOKEN_IDS ? step->token_ids : NULL, NULL);
	return code ? replay_fail(channel, code) : 0;
}

/* Layers of which rows were not captured. */
static uint32_t count_missing(struct replay_channel *channel, const struct r3ring_record *end)
{
	const struct replay_step *step = &channel->step;
	const uint32_t rows = step->head.row_end - step->head.row_begin;
	uint32_t missing = 0;

	memset(channel->captured, 0, channel->schema.layers * sizeof(*channel->captured));
	for (size_t i = 0; i < step->part_count; i++) {
		const struct r3ring_layer_record *head = &step->parts[i].head;

		if (head->layer_index < channel->schema.layers && !is_missing(end, head))
			channel->captured[head->layer_index] += head->rows;
	}
	for (uint32_t layer = 0; layer < channel->schema.layers; layer++)
		missing += channel->captured[layer] < rows;
	return missing;
}

/* @end: NULL where the archive does not have it; then nobody knows which layers are whole. */
static int capture(struct replay_channel *channel, const struct r3ring_record *end)
{
	const struct replay_step *step = &channel->step;
	int code = 0;

	channel->shared->report->missing_layers += end ? count_missing(channel, end)
						       : channel->schema.layers;
	if (!end)
		return 0;
	for (size_t i = 0; !code && i < step->part_count; i++) {
		if (!is_missing(end, &step->parts[i].head))
			code = capture_part(channel, &step->parts[i]);
	}
	return code ? code : capture_rows(channel);
}

/* Returns 1, 0 (it has more spans than a producer takes, and is lost), or an errno. */
static int begin_step(struct replay_channel *channel)
{
	const struct r3ring_step_record *head = &channel->step.head;
	struct r3ring_step step;
	int64_t number;
	int code = replay_step_say(&channel->step, channel->handles, &step);

	if (code)
		return replay_no_memory(channel);
	number = r3ring_step_begin(channel->producer, &step, NULL);
	if (number == -EMSGSIZE)
		replay_note_lost(channel, r3ring_step_valid_rows(head));
	if (number < 0)
		return number == -EMSGSIZE ? 0 : replay_fail(channel, (int)number);
	channel->number++;
	channel->under_way[channel->runs++ % REPLAY_WINDOW] = channel->number;
	channel->shared->report->steps++;
	channel->shared->report->rows += r3ring_step_valid_rows(head);
	return 1;
}

static int end_step(struct replay_channel *channel)
{
	int code = r3ring_step_end(channel->producer, NULL);

	return code ? replay_fail(channel, code) : 0;
}

int replay_run_step(struct replay_channel *channel, const struct r3ring_record *end)
{
	int code = replay_lose_up_to(channel, channel->step.head.step);

	if (!code)
		code = wait_for_room(channel);
	if (!code)
		code = begin_step(channel);
	if (code == 1) {
		code = capture(channel, end);
		if (!code)
			code = end_step(channel);
	}
	return code ? code : replay_step_over(channel);
}

int replay_step_over(struct replay_channel *channel)
{
	const uint64_t old = channel->step.head.step;

	channel->numbers[old % REPLAY_NUMBERS] =
		(struct replay_number){.old = old, .new = channel->number};
	channel->newest = old;
	channel->step.head.step = 0;
	channel->doubt |= channel->step_doubt;
	channel->step_doubt = false;
	return replay_side_flush(channel);
}
