/* SPDX-License-Identifier: Apache-2.0 */
/* What a step tells a channel's reader, once all is told of it that will be. */
#include "tests/system/engine_sim/account.h"

enum phase { ERASE, COMPUTE, LOOK_UP };

void account_tear(const struct account *account, struct sim_life *life)
{
	life->open[account->channel->index] = true;
	life->torn[account->channel->index] = true;
	life->torn_step[account->channel->index] = account->settled;
}

static void step_phase(struct account *account, const struct sim_step *step, bool nowhere,
		       enum phase phase)
{
	const struct sim_told *told = step->told[account->channel->index];

	for (uint32_t i = 0; i < step->spans; i++) {
		const struct sim_span *span = &step->span[i];
		bool known = span->life->named[account->channel->index] && !nowhere;

		if (!((told->spans >> i) & 1))
			continue;

		if (phase == ERASE && ((!known && span->told.kind != R3RING_SPAN_CACHED) ||
				       span->told.kind == R3RING_SPAN_EXTERNAL))
			account_keys_erase(account, step, span);
		if (nowhere)
			account_tear(account, span->life);
		if (!known)
			continue;
		span->life->open[account->channel->index] = false;
		if (phase == COMPUTE && span->told.kind == R3RING_SPAN_COMPUTED)
			account_compute(account, step, span, span->late && !told->late_map);
		if (phase == LOOK_UP && span->told.kind != R3RING_SPAN_COMPUTED)
			account_look_up(account, step, span);
	}
}

static bool map_is_known(const struct sim_step *step, const struct sim_told *told)
{
	bool late = false;

	for (uint32_t i = 0; i < step->spans; i++)
		late |= step->span[i].late;
	return told->whole_map && (told->late_map || !late);
}

/* Whether the engine ran what its reader was not told of until now: steps are numbered one by one. */
static bool ran_unseen(const struct account *account, const struct sim_step *step)
{
	const struct sim_told *told = step->told[account->channel->index];

	return !account->ready || step->number != account->last + 1 ||
	       (!account->last && told->continues) || !map_is_known(step, told);
}

static bool is_miss(const struct sim_span *span)
{
	return span->told.kind == R3RING_SPAN_CACHED && !span->told.rows;
}

static void hear_misses(struct account *account, const struct sim_step *step)
{
	for (uint32_t i = 0; i < step->spans; i++)
		for (uint32_t j = 0; is_miss(&step->span[i]) && j < step->span[i].told.keys; j++)
			account_key_miss(account, step->key[step->span[i].first_key + j]);
}

/* What runs on from before a loss may have been run from the beginning again in it. */
static void weights_follow(struct account *account, const struct sim_step *step)
{
	const uint32_t index = account->channel->index;
	struct sim *sim = account->sim;
	const bool first = !account->last && !step->told[index]->continues;
	const bool same = first ? step->number == 1 : step->weights == account->last_weights;

	account->last_weights = step->weights;
	if (same)
		return;
	account->steady = false;
	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++) {
			struct sim_life *life = sim->request[i].life[j];

			life->renewed[index] |= life->open[index] &&
						(life->named[index] || life->waits[index]);
		}
}

void account_settle(struct account *account, const struct sim_step *step)
{
	const struct sim_told *told = step->told[account->channel->index];
	bool nowhere = step->positions_late && !told->late_map;

	if (ran_unseen(account, step)) {
		account->unseen++;
		account->unseen_weights = step->weights;
	}
	weights_follow(account, step);
	account->last = step->number;
	if (!account->ready)
		return;
	account->weights = step->weights;
	account->settled = step->number;
	if (nowhere || !told->whole_map)
		account_keys_forget_slots(account);
	if (map_is_known(step, told))
		hear_misses(account, step);
	for (enum phase phase = ERASE; phase <= LOOK_UP; phase++)
		step_phase(account, step, nowhere, phase);
}
