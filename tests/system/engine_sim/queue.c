/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way: encoded, lost or not, read in order by a reader that may be behind. */
#include <stdlib.h>
#include <string.h>

#include "tests/system/engine_sim/sim.h"

struct sim_queued {
	struct sim_queued *next;
	struct r3ring_view view;
	bool behind_gap;
	uint64_t payload[];
};

static void feed_first(struct sim *sim, struct sim_channel *channel)
{
	struct sim_queued *queued = channel->queue;
	struct r3ring_record record;
	int r;

	channel->queue = queued->next;
	channel->queued--;
	if (queued->behind_gap)
		sim_gap(sim, channel);
	r = r3ring_record_decode(&record, queued->view.type, queued->payload, queued->view.len,
				 NULL);
	if (r < 0)
		sim_fault(sim, "%s: a record of type %u does not decode", channel->name,
			  queued->view.type);
	else
		sim_feed(sim, channel, &queued->view, &record);
	/* Nothing of it may be needed any more. */
	memset(queued->payload, 0xA5, queued->view.len);
	free(queued);
}

void sim_records_cut(struct sim *sim, struct sim_channel *channel)
{
	struct sim_queued **end = &channel->queue, *last = NULL;
	uint32_t left = sim_below(&sim->fault_chance, channel->queued + 1);

	for (channel->queued = left; left; left--) {
		last = *end;
		end = &last->next;
	}
	while (*end) {
		struct sim_queued *queued = *end;

		*end = queued->next;
		free(queued);
	}
	channel->queue_last = last;
}

void sim_records_pump(struct sim *sim, bool all)
{
	for (uint32_t i = 0; i < sim->channels; i++) {
		struct sim_channel *channel = &sim->channel[i];
		uint32_t keep = all ? 0 : sim_below(&sim->skew_chance, sim->config.skew + 1);

		while (channel->queued > keep)
			feed_first(sim, channel);
		if (all && channel->lost)
			sim_gap(sim, channel);
		channel->lost &= !all;
	}
}

void sim_records_free(struct sim_channel *channel)
{
	while (channel->queue) {
		struct sim_queued *queued = channel->queue;

		channel->queue = queued->next;
		free(queued);
	}
	channel->queued = 0;
}

void sim_put(struct sim *sim, struct sim_channel *channel, const struct r3ring_record *record,
	     uint16_t flags)
{
	size_t bytes = r3ring_record_size(record);
	struct r3ring_error err = {0};
	struct sim_queued *queued;

	channel->seq++;
	if (sim_fault_record(sim, channel))
		return;
	queued = calloc(1, sizeof(*queued) + (bytes + 7) / 8 * 8 + 8);
	queued->view = (struct r3ring_view){
		.seq = channel->seq,
		.generation = channel->generation,
		.type = record->type,
		.flags = flags,
		.data = queued->payload,
		.len = (uint32_t)bytes,
	};
	queued->behind_gap = channel->lost;
	channel->lost = false;
	if (!bytes || r3ring_record_encode(record, queued->payload, bytes, &err) != (long)bytes)
		sim_fault(sim, "%s: a record is refused: %s", channel->name, err.text);
	if (channel->queue)
		channel->queue_last->next = queued;
	else
		channel->queue = queued;
	channel->queue_last = queued;
	channel->queued++;
}
