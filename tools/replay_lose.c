/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: what the archive does not have is announced as lost. */
#include <errno.h>

#include "producer/lose.h"
#include "tools/replay_channel.h"

void replay_doubt(struct replay_channel *channel)
{
	if (channel->step.head.step)
		channel->step_doubt = true;
	else
		channel->doubt = true;
}

void replay_note_lost(struct replay_channel *channel, uint64_t rows)
{
	channel->number++;
	channel->announced++;
	channel->shared->report->lost_steps++;
	channel->shared->report->lost_rows += rows;
}

/* ---- steps that the archive has nothing of ------------------------------- */

/* A cause that is not known, or cannot be told, is TOO_BIG's: of all it says least of the engine
 * that replays. */
#define STANDS_IN R3RING_CAUSE_TOO_BIG

static int lose_one(struct replay_channel *channel, enum r3ring_cause cause, uint32_t rows,
		    enum producer_lost_map map)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
	};
	int code = producer_lose_step(channel->producer, &step, cause, map);

	if (code)
		return replay_fail(channel, code);
	replay_note_lost(channel, rows);
	return 0;
}

/* The last one is told at once, before what comes behind it in the archive. @cause: NONE where it
 * is not known. */
static int lose(struct replay_channel *channel, uint64_t steps, enum r3ring_cause cause,
		uint64_t rows)
{
	const enum r3ring_cause merged = cause == R3RING_CAUSE_DAEMON_RESTART ||
							 cause == R3RING_CAUSE_QUEUE_FULL
						 ? cause
						 : STANDS_IN;
	const enum r3ring_cause last = cause ? cause : STANDS_IN;
	const uint64_t most = R3RING_ROWS_MAX;
	int code = 0;

	for (; !code && steps > 1; steps--) {
		uint64_t some = rows < most ? rows : most;

		code = lose_one(channel, merged, (uint32_t)some, PRODUCER_MAP_MERGED);
		channel->shared->report->lost_as_too_big += merged != cause;
		rows -= some;
	}
	if (code)
		return code;
	channel->shared->report->lost_as_too_big += last != cause;
	return lose_one(channel, last, (uint32_t)(rows < most ? rows : most), PRODUCER_MAP_UNKNOWN);
}

/* Whether what was lost can have been of a step, and is not told yet. */
static bool in_doubt(const struct replay_channel *channel)
{
	return channel->doubt && (channel->newest || channel->missed || channel->late_begin);
}

int replay_lose_doubt(struct replay_channel *channel)
{
	if (!in_doubt(channel))
		return 0;
	channel->doubt = channel->missed = false;
	channel->ahead++;
	return lose(channel, 1, R3RING_CAUSE_NONE, 0);
}

/*
 * Where no number is missing and something is all the same, one more step is lost; so it is
 * where the archive begins in the middle of a generation.
 */
int replay_lose_up_to(struct replay_channel *channel, uint64_t step)
{
	uint64_t missing;
	bool doubt = in_doubt(channel);

	if (channel->late_begin)
		channel->newest = step - 1;
	missing = step - 1 - channel->newest;
	missing -= channel->ahead < missing ? channel->ahead : missing;
	channel->newest = step - 1;
	channel->ahead = 0;
	channel->doubt = channel->late_begin = channel->missed = false;
	if (!missing && doubt)
		missing = 1;
	return missing ? lose(channel, missing, R3RING_CAUSE_NONE, 0) : 0;
}

int replay_lose_rest(struct replay_channel *channel)
{
	channel->missed |= channel->doubt; /* though nothing was run */
	return replay_lose_doubt(channel);
}

/* ---- LOST records -------------------------------------------------------- */

/* The step that is open is lost: its spans are known, its rows are not there. */
static int drop_step(struct replay_channel *channel, enum r3ring_cause cause,
		     enum producer_lost_map map)
{
	const struct r3ring_step_record *head = &channel->step.head;
	struct r3ring_step step;
	int code = replay_lose_up_to(channel, head->step);

	if (code)
		return code;
	if (replay_step_say(&channel->step, channel->handles, &step))
		return replay_no_memory(channel);
	code = producer_lose_step(channel->producer, &step, cause, map);
	if (code)
		return replay_fail(channel, code);
	replay_note_lost(channel, r3ring_step_valid_rows(head));
	return replay_step_over(channel);
}

/* Steps behind the newest. Several causes of one range are told one after the other. */
static int lose_told(struct replay_channel *channel, const struct r3ring_lost_record *lost,
		     uint64_t steps, uint64_t rows)
{
	int code = 0;

	if (lost->from_step > channel->newest + 1)
		code = replay_lose_up_to(channel, lost->from_step);
	if (steps > lost->to_step - channel->newest)
		steps = lost->to_step - channel->newest;
	if (code || !steps)
		return code;
	code = lose(channel, steps, (enum r3ring_cause)lost->cause, rows);
	channel->newest += steps;
	channel->doubt = channel->late_begin = false;
	return code;
}

int replay_take_lost(struct replay_channel *channel, const struct r3ring_lost_record *lost)
{
	const uint64_t open = channel->step.head.step;
	const uint64_t open_rows = r3ring_step_valid_rows(&channel->step.head);
	const bool unknown = lost->spans_unknown;
	uint64_t steps = lost->steps, rows = lost->rows;
	int code = 0;

	if (open && steps && lost->from_step > open) {
		code = replay_run_step(channel, NULL);
	} else if (open && steps && lost->to_step >= open) {
		/* Where there are more, it is them whose spans are not known. */
		code = drop_step(channel, (enum r3ring_cause)lost->cause,
				 unknown && steps == 1 ? PRODUCER_MAP_UNKNOWN : PRODUCER_MAP_KNOWN);
		rows -= rows < open_rows ? rows : open_rows;
		if (!--steps)
			return code;
	}
	if (code)
		return code;
	if (steps && lost->to_step > channel->newest)
		return lose_told(channel, lost, steps, rows);
	if (unknown)
		replay_doubt(channel);
	return 0;
}
