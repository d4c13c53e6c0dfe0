/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far an attempt may have come, for all that a reader knows, when new weights came and may have made
 * it begin anew: what it is seen to run below that under them may be no first pass. A step that was not
 * seen ran one token of it that was sampled, or any number with drafts, or all that it was fed.
 */
#include "tests/system/engine_sim/account.h"

void account_blind(struct account *account)
{
	if (account->blind || !account->ran)
		return;
	account->blind = true;
	account->blind_step = account->last;
	account->blind_era = account->era;
	account->blind_weights = account->last_weights;
}

/* Whichever shard ran them. */
void account_came_to(struct account *account, const struct sim_span *span, uint32_t rows)
{
	uint32_t *ran = &span->life->ran[account->channel->index];

	if (!account->sim->config.device_rows && span->told.position + rows > *ran)
		*ran = span->told.position + rows;
}

static uint32_t fed_at_most(const struct account *account, const struct sim_life *life)
{
	const struct sim_request *request = life->request;
	const uint32_t index = account->channel->index;
	uint32_t fed = life->attempt ? R3RING_UNKNOWN_U32 : life->told_prompt;

	for (uint32_t i = 0; i < request->lives && life->attempt; i++) {
		const struct sim_life *other = request->life[i];

		if (other->engine != life->engine || !other->heard_of[index])
			continue;
		if (other->attempt + 1 == life->attempt && other->ended[index] &&
		    other->told_kept != R3RING_UNKNOWN_U32)
			return other->told_kept > life->told_prompt ? other->told_kept
								    : life->told_prompt;
		if (!other->attempt && other->told_prompt < life->told_prompt)
			fed = life->told_prompt;
	}
	return fed;
}

static uint32_t seen_end(const struct account *account, const struct sim_life *life)
{
	const struct sim_seen *seen = life->seen[account->channel->index];
	const uint32_t ran = life->ran[account->channel->index];
	uint32_t end = seen ? SIM_POSITIONS : 0;

	while (end && seen[end - 1].known == SIM_NOTHING)
		end--;
	return end > ran ? end : ran;
}

static uint32_t end_at_most(const struct account *account, const struct sim_life *life,
			    uint64_t step)
{
	const struct sim_config *config = &account->sim->config;
	const uint32_t index = account->channel->index;
	const uint32_t end = seen_end(account, life), fed = fed_at_most(account, life);
	uint64_t steps;

	if (life->behind_era[index] != account->era)
		return SIM_POSITIONS;
	steps = life->behind_step[index] < step ? step - life->behind_step[index] - 1 : 0;
	if (!steps)
		return end;
	if (account->drafts)
		steps *= config->max_rows;
	if (fed == R3RING_UNKNOWN_U32 || steps > SIM_POSITIONS)
		return SIM_POSITIONS;
	if (end >= fed)
		return end + (uint32_t)steps;
	return fed + (uint32_t)(account->drafts ? steps - config->max_rows : steps - 1);
}

static void run_before(struct account *account, struct sim_life *life, uint32_t end)
{
	uint32_t *before = &life->run_before[account->channel->index];

	*before = *before > end ? *before : end;
}

void account_began_unseen(struct account *account, struct sim_life *life, bool continues)
{
	const uint32_t index = account->channel->index;

	/* Of another engine nothing lives on. */
	const bool is_new = account->blind_era != account->era && !continues;

	if (!account->blind)
		return;
	life->behind_step[index] = is_new ? 0 : account->blind_step;
	life->behind_era[index] = is_new ? account->era : account->blind_era;
	if (account->blind_weights != account->last_weights)
		run_before(account, life, end_at_most(account, life, account->last + 1));
}

void account_renew(struct account *account, struct sim_life *life, uint64_t step, uint64_t weights)
{
	const uint32_t index = account->channel->index;

	if (account->ran && weights != account->last_weights)
		run_before(account, life,
			   life->open[index] ? end_at_most(account, life, step)
					     : seen_end(account, life));
}
