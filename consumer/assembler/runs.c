/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: what an engine did from one start to the next. Stages and shards of a request are of one run, and
 * the n-th request of an id on one channel is the n-th of it on another, however far apart they are
 * fed (join.c). Which runs of two channels are of one start nobody says: those that were at work at
 * one time are. Where something of a channel was lost, so were requests perhaps, and how many; then
 * what was joined must have been run by the same steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/assembler.h"

/* Stages of one step are not further apart. */
#define STEP_LASTS_NS 1000000000u

/* ---- what a channel tells of its runs --------------------------------------- */

static void note_time(struct channel *channel, uint64_t ns)
{
	struct run *run = channel->runs ? &channel->run[channel->runs - 1] : NULL;

	if (!run || !ns)
		return;
	if (!run->first_ns || ns < run->first_ns)
		run->first_ns = ns;
	if (ns > run->last_ns)
		run->last_ns = ns;
}

static void note_bound(struct channel *channel)
{
	const uint64_t bound_ns = channel->schema.bound_since_ns;

	note_time(channel, bound_ns);
	if (channel->runs && bound_ns)
		channel->run[channel->runs - 1].bound = true;
}

/* Whether the generation is the engine's that the channel's newest run is of. */
static bool goes_on(const struct channel *channel)
{
	const uint64_t former = former_of(channel);

	return channel->runs && former != channel->generation &&
	       (former == channel->run_generation || former == channel->run_former);
}

static void run_begin(struct channel *channel)
{
	struct run *run = realloc(channel->run, (channel->runs + 1) * sizeof(*run));

	if (!run)
		return;
	channel->run = run;
	run[channel->runs] = (struct run){.to_realtime_ns = channel->schema.realtime_offset_ns};
	memcpy(run[channel->runs].boot, channel->schema.boot_id, sizeof(run->boot));
	channel->runs++;
}

void runs_follow(struct channel *channel, bool from_its_beginning)
{
	if (channel->run_generation == channel->generation && channel->runs)
		return;
	channel->uncounted = true;
	if (!goes_on(channel)) {
		run_begin(channel);
		channel->uncounted = !from_its_beginning || generation_goes_on(channel) ||
				     (channel->came_late && channel->runs == 1);
	}
	channel->run_generation = channel->generation;
	channel->run_former = former_of(channel);
	note_bound(channel);
}

void runs_note_step(struct channel *channel, uint64_t host_ns)
{
	runs_follow(channel, false);
	note_time(channel, host_ns);
}

/* ---- whether two are one --------------------------------------------------- */

/* Times of one clock are compared as they are: what it is off from the day's is told at times that differ. */
static uint64_t time_beside(const struct run *run, const struct run *other, uint64_t ns)
{
	if (memcmp(run->boot, other->boot, sizeof(run->boot)) == 0)
		return ns;
	return ns + (uint64_t)run->to_realtime_ns;
}

static bool begins_before(const struct run *run, const struct run *other)
{
	return time_beside(run, other, run->first_ns) < time_beside(other, run, other->first_ns);
}

/* Or that far apart at most. */
static bool at_work_together(const struct run *run, const struct run *other, uint64_t apart_ns)
{
	return time_beside(run, other, run->first_ns) <=
		       time_beside(other, run, other->last_ns) + apart_ns &&
	       time_beside(other, run, other->first_ns) <=
		       time_beside(run, other, run->last_ns) + apart_ns;
}

/* Whether another run of one of both channels began between the beginnings of these: @late is the later. */
static bool another_between(const struct channel *early, uint32_t run, const struct channel *late,
			    uint32_t its)
{
	if (run + 1 < early->runs && early->run[run + 1].first_ns &&
	    !begins_before(&late->run[its], &early->run[run + 1]))
		return true;
	return its && late->run[its - 1].first_ns &&
	       !begins_before(&late->run[its - 1], &early->run[run]);
}

/* Whether the run was at work with another one of the channel than with @not. */
static bool was_with_another(const struct run *run, const struct channel *channel, uint32_t not )
{
	for (uint32_t i = 0; i < channel->runs; i++)
		if (i != not &&channel->run[i].first_ns &&
		    at_work_together(run, &channel->run[i], 0))
			return true;
	return false;
}

/* Whether the run lasts as long as is known, and what is told next is of another one. */
static bool is_over(const struct r3ring_assembler *assembler, const struct channel *channel,
		    uint32_t run)
{
	return assembler->flushing || run + 1 < channel->runs ||
	       (channel->closed && !channel->items);
}

/* Whether it is known to the nanosecond which came first. */
static bool are_timed(const struct run *run, const struct run *other)
{
	return run->bound && other->bound && memcmp(run->boot, other->boot, sizeof(run->boot)) == 0;
}

static bool early_is_over(const struct r3ring_assembler *assembler, const struct channel *channel,
			  uint32_t run, const struct channel *other, uint32_t its)
{
	return begins_before(&channel->run[run], &other->run[its])
		       ? is_over(assembler, channel, run)
		       : is_over(assembler, other, its);
}

/* As far as is known by now. */
static enum likeness runs_compare(const struct r3ring_assembler *assembler,
				  const struct channel *channel, uint32_t run,
				  const struct channel *other, uint32_t its)
{
	const bool equal = run == its;
	const struct run *one, *two;

	if (run >= channel->runs || its >= other->runs)
		return equal ? ARE_ONE : ARE_OTHERS;
	one = &channel->run[run];
	two = &other->run[its];
	if (!one->first_ns || !two->first_ns)
		return equal ? ARE_ONE : ARE_OTHERS;
	if (at_work_together(one, two, 0))
		return ARE_ONE;
	if (are_timed(one, two))
		return early_is_over(assembler, channel, run, other, its) ? ARE_OTHERS : MAY_BE_ONE;
	if (!equal || was_with_another(one, other, its) || was_with_another(two, channel, run) ||
	    (begins_before(one, two) ? another_between(channel, run, other, its)
				     : another_between(other, its, channel, run)))
		return ARE_OTHERS;
	if (at_work_together(one, two, STEP_LASTS_NS))
		return ARE_ONE;
	return early_is_over(assembler, channel, run, other, its) ? ARE_OTHERS : MAY_BE_ONE;
}

/* Whether the run of one of both channels had another before it in the other's: a rank that was started
 * again by itself counts anew. */
static bool began_anew_alone(const struct channel *channel, uint32_t run,
			     const struct channel *other, uint32_t its)
{
	return (its && its < other->runs && run < channel->runs && channel->run[run].first_ns &&
		other->run[its - 1].first_ns &&
		at_work_together(&channel->run[run], &other->run[its - 1], 0)) ||
	       (run && run < channel->runs && its < other->runs && other->run[its].first_ns &&
		channel->run[run - 1].first_ns &&
		at_work_together(&channel->run[run - 1], &other->run[its], 0));
}

static bool ranges_meet(uint64_t first, uint64_t last, uint64_t its_first, uint64_t its_last)
{
	return first <= its_last && its_first <= last;
}

/* Whether two attempts cannot have been run by the same steps. */
static bool ran_apart(const struct attempt *attempt, const struct run *run,
		      const struct attempt *other, const struct run *its)
{
	const uint64_t first = time_beside(run, its, attempt->first_ns);
	const uint64_t last = time_beside(run, its, attempt->last_ns);
	const uint64_t its_first = time_beside(its, run, other->first_ns);
	const uint64_t its_last = time_beside(its, run, other->last_ns);

	return attempt->first_ns && other->first_ns &&
	       !ranges_meet(first, last + STEP_LASTS_NS, its_first, its_last + STEP_LASTS_NS);
}

/*
 * Whether it is proved that two attempts are one: a step told both of the same rows, and none of others. That
 * they were run at one time is no proof: a stage may still run one request of the id while another
 * runs the next. Steps of a generation that goes on are numbered by each channel for itself; then
 * handles have to do, which their engine gave.
 */
static bool attempts_meet(const struct attempt *attempt, const struct run *run,
			  const struct attempt *other, const struct run *its)
{
	if (ran_apart(attempt, run, other, its))
		return false;
	if (attempt->told_apart || other->told_apart)
		return attempt->handle && attempt->handle == other->handle;
	return attempts_told(attempt, other) == TOLD_ONE;
}

static bool was_run(const struct part *part)
{
	for (uint32_t i = 0; i < part->attempts; i++)
		if (part->attempt[i]->first_step)
			return true;
	return false;
}

static const struct run *run_of(const struct channel *channel, const struct attempt *attempt)
{
	static const struct run unknown;

	return attempt->run < channel->runs ? &channel->run[attempt->run] : &unknown;
}

static bool parts_meet(const struct r3ring_assembler *assembler, const struct part *part,
		       const struct part *other)
{
	const struct channel *channel = assembler->channel[part->channel];
	const struct channel *its = assembler->channel[other->channel];

	for (uint32_t i = 0; i < part->attempts; i++) {
		const struct attempt *attempt = part->attempt[i];
		const struct attempt *beside = part_find_attempt(other, attempt->number);

		if (beside &&
		    attempts_meet(attempt, run_of(channel, attempt), beside, run_of(its, beside)))
			return true;
	}
	return false;
}

/* What one of them was not seen to run gives the other no row of another request. */
static bool ran_together(const struct r3ring_assembler *assembler, const struct part *part,
			 const struct part *other)
{
	if (!was_run(part) || !was_run(other) || parts_meet(assembler, part, other))
		return true;
	for (const struct part *third = part->request->part; third; third = third->next)
		if (channels_of_one_engine(assembler->channel[part->channel],
					   assembler->channel[third->channel]) &&
		    third != other && parts_meet(assembler, part, third) &&
		    parts_meet(assembler, third, other))
			return true;
	return false;
}

/* Whether the attempts that both have were begun under the same handles. */
static bool handles_agree(const struct part *part, const struct part *other)
{
	for (uint32_t i = 0; i < part->attempts; i++) {
		const struct attempt *beside = part_find_attempt(other, part->attempt[i]->number);

		if (beside && beside->handle != part->attempt[i]->handle)
			return false;
	}
	return true;
}

bool channels_count(const struct channel *channel, const struct channel *other)
{
	return channel->runs <= 1 && other->runs <= 1;
}

/* Whether it is known how many of the id were before them. */
static bool parts_are_counted(const struct r3ring_assembler *assembler, const struct part *part,
			      const struct part *other)
{
	return !part->unsure && !other->unsure &&
	       (channels_count(assembler->channel[part->channel],
			       assembler->channel[other->channel]) ||
		handles_agree(part, other));
}

bool part_may_be_of_run(const struct r3ring_assembler *assembler, const struct part *part,
			const struct channel *channel)
{
	const struct channel *its = assembler->channel[part->channel];

	return !part->attempts || !channel->runs ||
	       runs_compare(assembler, channel, channel->runs - 1, its,
			    part->attempt[part->attempts - 1]->run) != ARE_OTHERS;
}

/* How two attempts' runs are alike; @alone: whether one of them began anew by itself. */
static enum likeness compare(const struct r3ring_assembler *assembler,
			     const struct channel *channel, const struct attempt *attempt,
			     const struct channel *its, const struct attempt *other, bool *alone)
{
	const enum likeness likeness =
		runs_compare(assembler, channel, attempt->run, its, other->run);

	*alone |= likeness != ARE_OTHERS &&
		  began_anew_alone(channel, attempt->run, its, other->run);
	return likeness;
}

/* A request may outlive an engine, so each attempt that both have is asked. */
static enum likeness compare_runs(const struct r3ring_assembler *assembler, const struct part *part,
				  const struct part *other, bool *alone)
{
	const struct channel *channel = assembler->channel[part->channel];
	const struct channel *its = assembler->channel[other->channel];
	enum likeness best = ARE_OTHERS;
	bool shared = false;

	if (!part->attempts || !other->attempts)
		return ARE_ONE;
	for (uint32_t i = 0; i < part->attempts; i++) {
		const struct attempt *beside = part_find_attempt(other, part->attempt[i]->number);
		enum likeness likeness =
			beside ? compare(assembler, channel, part->attempt[i], its, beside, alone)
			       : ARE_OTHERS;

		shared |= beside != NULL;
		best = likeness > best ? likeness : best;
	}
	return shared ? best
		      : compare(assembler, channel, part->attempt[part->attempts - 1], its,
				other->attempt[other->attempts - 1], alone);
}

enum likeness parts_compare(const struct r3ring_assembler *assembler, const struct part *part,
			    const struct part *other)
{
	bool alone = false;
	const enum likeness runs = compare_runs(assembler, part, other, &alone);

	if (runs == ARE_OTHERS || (runs == MAY_BE_ONE && !assembler->flushing))
		return runs;
	if (runs == ARE_ONE && parts_are_counted(assembler, part, other) && !alone)
		return ARE_ONE;
	return ran_together(assembler, part, other) ? ARE_ONE : ARE_OTHERS;
}
