/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step that is open when a daemon ends is told twice: by that generation as far as it came, and
 * by the one that goes on with the engine from its beginning, under the same number. It waits for
 * that one, which counts; where nobody goes on it is counted as far as it came.
 */
#include "consumer/load/load.h"

static struct load_step *newest(const struct load_channel *channel)
{
	struct load_step *step = channel->open;

	while (step && step->next)
		step = step->next;
	return step;
}

struct load_step *load_cut_step(const struct load_channel *channel)
{
	struct load_step *step = newest(channel);

	return step && step->cut ? step : NULL;
}

void load_cut_open(struct load_channel *channel)
{
	struct load_step *step = newest(channel);

	if (step)
		step->cut |= !step->ended;
}

void load_cut_stays(struct load_channel *channel)
{
	struct load_step *step = load_cut_step(channel);

	if (step)
		step->cut = false;
}

/* Epochs begin anew. */
void load_cut_passes(struct load_channel *channel)
{
	struct load_step *step = load_cut_step(channel);

	if (step)
		step->head.eplb_epoch = 0;
}

void load_cut_schema(struct load_channel *channel, const struct r3ring_schema_record *schema)
{
	const struct load_step *step = load_cut_step(channel);

	if (!step || step->generation == channel->generation)
		return;
	if (schema->continues >= channel->generation ||
	    step->generation < channel->generation - schema->continues)
		load_cut_stays(channel);
}

void load_cut_step_begins(struct load_channel *channel, const struct r3ring_step_record *begins)
{
	struct load_step *step = load_cut_step(channel);

	if (!step)
		return;
	if (step->generation != channel->generation && step->head.step == begins->step &&
	    !(begins->flags & R3RING_STEP_DROPPED))
		load_step_drop(channel, step);
	else
		load_cut_stays(channel);
}
