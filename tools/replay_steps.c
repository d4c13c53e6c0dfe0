/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: running steps, and losing those that the archive does not have. */
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

/* A step that the archive does not have: too big, so that it is announced as lost, and
 * what it may have done to a prefix cache as not known. */
static int lose_step(struct replay_channel *channel, uint64_t rows)
{
	const uint32_t most = channel->schema.max_rows + 1;
	const uint32_t valid = rows < most ? (uint32_t)rows : most;
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = most,
		.row_end = valid,
		.valid_end = valid,
	};
	int64_t code = r3ring_step_begin(channel->producer, &step, NULL);

	if (code != -EMSGSIZE)
		return replay_fail(channel, code < 0 ? (int)code : -EINVAL);
	channel->number++;
	channel->shared->report->lost_steps++;
	channel->shared->report->lost_rows += valid;
	return 0;
}

/* What was lost in front of step @step of the archive. */
static int lose_up_to(struct replay_channel *channel, uint64_t step)
{
	const uint32_t most = channel->schema.max_rows + 1;
	bool doubt = channel->doubt;
	int code = 0;

	if (!channel->newest && channel->late_begin)
		channel->newest = step - 1;
	for (; !code && channel->newest + 1 < step; channel->newest++) {
		uint64_t rows = channel->lost_rows < most ? channel->lost_rows : most;

		code = lose_step(channel, rows);
		channel->lost_rows -= rows;
		doubt = false;
	}
	if (!code && doubt && channel->newest)
		code = lose_step(channel, 0);
	channel->doubt = channel->late_begin = false;
	channel->lost_rows = 0;
	return code;
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

/* @end: NULL where the archive does not have it; then nobody knows which layers are whole. */
static int capture(struct replay_channel *channel, const struct r3ring_record *end)
{
	const struct replay_step *step = &channel->step;
	int code = 0;

	channel->shared->report->missing_layers += end ? end->u.step_end.head.missing
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
	struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = head->total_rows,
		.row_begin = head->row_begin,
		.row_end = head->row_end,
		.valid_end = head->valid_end,
		.flags = head->flags &
			 (R3RING_STEP_WARMUP | R3RING_STEP_GRAPH | R3RING_STEP_SPANS_FOLLOW),
		.weight_version = head->weight_version,
		.eplb_epoch = head->eplb_epoch,
	};
	int64_t number;

	if (replay_step_map(&channel->step, channel->handles, &step))
		return replay_no_memory(channel);
	number = r3ring_step_begin(channel->producer, &step, NULL);
	channel->number++;
	if (number < 0 && number != -EMSGSIZE)
		return replay_fail(channel, (int)number);
	channel->shared->report->lost_steps += number < 0;
	channel->shared->report->lost_rows += number < 0 ? r3ring_step_valid_rows(head) : 0;
	if (number < 0)
		return 0;
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

static void note_number(struct replay_channel *channel, uint64_t old)
{
	struct replay_number *known = &channel->numbers[old % REPLAY_NUMBERS];

	*known = (struct replay_number){.old = old, .new = channel->number};
}

int replay_run_step(struct replay_channel *channel, const struct r3ring_record *end)
{
	uint64_t step = channel->step.head.step;
	int code = lose_up_to(channel, step);

	if (!code)
		code = wait_for_room(channel);
	if (!code)
		code = begin_step(channel);
	if (code == 1) {
		code = capture(channel, end);
		if (!code)
			code = end_step(channel);
	}
	if (code)
		return code;
	note_number(channel, step);
	channel->newest = step;
	channel->step.head.step = 0;
	return replay_side_flush(channel);
}

int replay_lose_rest(struct replay_channel *channel)
{
	uint64_t last = channel->lost_to > channel->newest ? channel->lost_to : channel->newest;

	return lose_up_to(channel, last + 1);
}
