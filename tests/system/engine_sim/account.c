/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader can know, by what was delivered to it: the contract of the records, walked
 * through once more and slowly, over what the simulation knows of each step. No ids.
 */
#include "tests/system/engine_sim/account.h"

bool sim_cell_told(const struct sim *sim, const struct sim_channel *channel,
		   const struct sim_row *row, uint32_t layer)
{
	const struct sim_told *told = row->step->told[channel->index];

	return told && ((told->rows[layer] >> row->number) & 1) && !told->cause[layer] &&
	       !sim_row_is_bad(&sim->config, row, layer);
}

/* ---- a channel ---------------------------------------------------------- */

static void forget_names(struct account *account, uint32_t but_keyframe)
{
	struct sim *sim = account->sim;
	uint32_t index = account->channel->index;

	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++) {
			struct sim_life *life = sim->request[i].life[j];

			if (but_keyframe && life->keyframe[index] == but_keyframe)
				continue;
			/* Its end was not heard. */
			life->open[index] |= life->named[index];
			life->waits[index] = life->named[index] && !but_keyframe;
			life->named[index] = false;
		}
}

/* Of all that live. */
static void tear(struct account *account)
{
	struct sim *sim = account->sim;

	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++)
			if (sim->request[i].life[j]->named[account->channel->index] ||
			    sim->request[i].life[j]->waits[account->channel->index])
				account_tear(account, sim->request[i].life[j]);
}

/* ---- requests that begin ------------------------------------------------- */

static bool lives_here(const struct sim_request *request, uint32_t index)
{
	bool lives = false;

	for (uint32_t i = 0; i < request->lives; i++) {
		if (request->life[i]->over[index] || request->away[index])
			return false;
		lives |= request->life[i]->heard_of[index];
	}
	return lives;
}

/* The channel tells no more of a request when it has begun another of its id. */
static void leave(const struct account *account, struct sim_request *request)
{
	uint32_t index = account->channel->index;

	for (uint32_t i = 0; i < request->lives; i++) {
		struct sim_life *life = request->life[i];

		if (!life->named[index] && !life->waits[index])
			continue;
		account_tear(account, life);
		life->named[index] = false;
		life->waits[index] = false;
	}
}

static void leave_others(const struct account *account, struct sim_request *request)
{
	const uint32_t index = account->channel->index;
	struct sim *sim = account->sim;

	for (uint32_t i = 0; i < sim->requests; i++) {
		struct sim_request *other = &sim->request[i];

		if (other == request || !other->lives || !sim_same_id(other, request))
			continue;
		if (!lives_here(other, index))
			continue;
		request->has_sibling[index] = true;
		other->left[index] = true;
		other->away[index] = true;
		leave(account, other);
	}
}

static void begin(struct account *account, const struct sim_heard *heard)
{
	uint32_t index = account->channel->index;
	struct sim_life *life = heard->life;

	if (!life->named[index])
		leave_others(account, life->request);
	if (!account->ready || (heard->repeated && !life->heard_of[index])) {
		account_tear(account, life);
		life->renewed[index] |= !account->steady;
	}
	life->request->away[index] = false;
	life->named[index] = true;
	life->waits[index] = false;
	life->heard_of[index] = true;
	life->ever_named = true;
	life->keyframe[index] = heard->keyframe;
}

static void end(const struct account *account, const struct sim_heard *heard)
{
	uint32_t index = account->channel->index;
	struct sim_life *life = heard->life;

	life->ended[index] |= life->named[index];
	life->over[index] |= life->named[index] && heard->over;
	life->end_heard |= life->named[index];
	life->over_heard |= life->named[index] && heard->over;
	life->named[index] = false;
}

static void hear_again(struct account *account, const struct sim_heard *heard)
{
	switch (heard->type) {
	case SIM_HEARD_GENERATION:
		account->ready = false;
		account->steady = false;
		account->keys = 0;
		account->last = 0;
		account->unseen = account->misses = 0;
		account->unsalted = false;
		forget_names(account, 0);
		break;
	case SIM_HEARD_FIRST:
		account->ready = true;
		account->steady = !heard->continues;
		break;
	case SIM_HEARD_KEYFRAME:
		account->ready = true;
		account->steady = true;
		forget_names(account, heard->keyframe);
		break;
	case SIM_HEARD_BEGIN:
		begin(account, heard);
		break;
	case SIM_HEARD_END:
		end(account, heard);
		break;
	case SIM_HEARD_STEP:
		account_settle(account, heard->step);
		break;
	case SIM_HEARD_COPY:
		account_keys_copy(account, heard);
		break;
	case SIM_HEARD_GAP:
	case SIM_HEARD_LOST_SPANS:
		account_keys_forget_slots(account);
		tear(account);
		break;
	}
}

void sim_account(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->channels; i++) {
		struct account account = {.sim = sim, .channel = &sim->channel[i]};

		if (sim->channel[i].copy || sim->channel[i].draft)
			continue;
		for (uint32_t j = 0; j < sim->channel[i].heard_count; j++)
			hear_again(&account, &sim->channel[i].heard[j]);
		account_keys_free(&account);
	}
}
