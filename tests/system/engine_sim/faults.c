/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with records: steps that are dropped, layers, readers that are lapped. */
#include "tests/system/engine_sim/sim.h"

#define RECORDS_LOST 40u /* at once, at most */

enum sim_fate sim_fault_step(struct sim *sim, const struct sim_channel *channel)
{
	enum sim_fate fate = SIM_TOLD;

	if (sim_chance(&sim->fault_chance, sim->config.unheard))
		fate = SIM_UNHEARD;
	else if (sim_chance(&sim->fault_chance, sim->config.dropped))
		fate = SIM_DROPPED;
	if (fate == SIM_TOLD)
		return fate;
	sim->losses++;
	sim_trace(sim, "%s: the step is %s", channel->name,
		  fate == SIM_DROPPED ? "dropped" : "never heard of");
	return fate;
}

int32_t sim_fault_layer(struct sim *sim, const struct sim_channel *channel)
{
	if (!sim_chance(&sim->fault_chance, sim->config.partial))
		return -1;
	sim->losses++;
	return (int32_t)sim_below(&sim->fault_chance, channel->layers);
}

bool sim_fault_record(struct sim *sim, struct sim_channel *channel)
{
	if (!channel->losing && sim_chance(&sim->fault_chance, sim->config.gap))
		channel->losing = 1 + sim_below(&sim->fault_chance, RECORDS_LOST);
	if (!channel->losing) {
		channel->unseen = false;
		return false;
	}
	channel->losing--;
	channel->lost |= !channel->unseen;
	return true;
}
