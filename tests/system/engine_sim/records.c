/* SPDX-License-Identifier: Apache-2.0 */
/* An engine's announcements as the records of its channels, as a daemon makes them. */
#include <string.h>

#include "tests/system/engine_sim/sim.h"

/* ---- schema and keyframes ----------------------------------------------- */

static void put_schema(struct sim *sim, struct sim_channel *channel, uint16_t flags)
{
	const struct sim_config *config = &sim->config;
	struct r3ring_layer_entry layers[SIM_LAYERS];
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < channel->layers; i++)
		layers[i] = sim_layer(channel->first_layer + i);
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = channel->layers,
		.experts = config->experts,
		.top_k = (uint16_t)config->top_k,
		.max_rows = SIM_ROWS + 4,
		.rows_per_record = config->rows_per_record,
		.clock = 1,
		.rank = sim_rank_coordinates(sim, channel),
		.replica = channel->copy,
		.captures_rows = config->device_rows,
		/* The engine's process, by which hear.c knows its steps and handles. */
		.weight_version = channel->engine->epoch,
		.generation = channel->generation,
		.continues = channel->continues,
		.model = "simulated",
	};
	record.u.schema.layers = layers;
	sim_put(sim, channel, &record, flags);
}

static void put_begin(struct sim *sim, struct sim_channel *channel, const struct sim_life *life,
		      uint16_t flags)
{
	const struct sim_request *request = life->request;
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = life->handle,
		.prompt_tokens = life->told_prompt,
		.accepted_tokens = R3RING_UNKNOWN_U32,
		.attempt = life->attempt,
		.event = R3RING_REQUEST_BEGIN,
		.id_len = (uint16_t)strlen(request->id),
		.session_len = (uint16_t)strlen(request->session),
		.turn_len = (uint16_t)strlen(request->turn),
		.since_first = sim->config.untold ? 0
						  : (uint32_t)(life->handle - sim_life_first(life)),
	};
	record.u.request.id = request->id;
	record.u.request.session = request->session;
	record.u.request.turn = request->turn;
	record.u.request.sample = "";
	sim_put(sim, channel, &record, flags);
}

static void put_keyframe(struct sim *sim, struct sim_channel *channel)
{
	const struct sim_engine *engine = channel->engine;
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.step = engine->steps;
	record.u.keyframe.records = 1 + engine->running;
	record.u.keyframe.live_requests = engine->running;
	sim_put(sim, channel, &record, R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY);
	put_schema(sim, channel, R3RING_DESC_REPEATED);
	for (uint32_t i = 0; i < engine->running; i++)
		put_begin(sim, channel, engine->run[i], R3RING_DESC_REPEATED);
	channel->keyframe_in = sim->config.keyframe_every;
}

static void generation_begin(struct sim *sim, struct sim_channel *channel, uint16_t continues)
{
	channel->generation++;
	channel->continues = continues;
	channel->seq = 0;
	put_schema(sim, channel, 0);
	channel->keyframe_in = sim->config.keyframe_every;
}

static void records_open(struct sim *sim, struct sim_engine *engine)
{
	for (uint32_t i = 0; i < engine->channels; i++) {
		struct sim_channel *channel = &sim->channel[engine->first_channel + i];

		if (!channel->generation && sim->config.late_reader && !channel->copy) {
			channel->losing = 1 + sim_below(&sim->fault_chance, 200);
			channel->unseen = true;
			sim->losses++;
		}
		/* Which of several of one id a rank began last nobody could tell then. */
		if (channel->generation && sim->config.ids == SIM_IDS_UNIQUE &&
		    sim_below(&sim->fault_chance, 2))
			sim_records_cut(sim, channel);
		generation_begin(sim, channel, 0);
	}
}

/* ---- requests ----------------------------------------------------------- */

static void records_begin(struct sim *sim, const struct sim_life *life)
{
	for (uint32_t i = 0; i < life->engine->channels; i++)
		put_begin(sim, &sim->channel[life->engine->first_channel + i], life, 0);
}

static void records_end(struct sim *sim, const struct sim_life *life)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = life->handle,
		.accepted_tokens = life->told_kept,
		.attempt = life->attempt,
		.event = R3RING_REQUEST_END,
		.reason = life->reason,
	};
	record.u.request.id = record.u.request.session = record.u.request.turn =
		record.u.request.sample = "";
	for (uint32_t i = 0; i < life->engine->channels; i++)
		sim_put(sim, &sim->channel[life->engine->first_channel + i], &record, 0);
}

/* ---- token maps --------------------------------------------------------- */

static uint32_t keys_of(const struct r3ring_span *spans, uint32_t count)
{
	uint32_t keys = 0;

	for (uint32_t i = 0; i < count; i++)
		keys += spans[i].keys;
	return keys;
}

/* Spans from the @from'th on, in records of so many; @flags of the first. */
static void put_spans(struct sim *sim, struct sim_channel *channel, uint64_t step,
		      const struct sim_map *map, uint32_t from, uint32_t flags)
{
	uint32_t key = keys_of(map->span, from);

	while (from < map->spans) {
		uint32_t left = map->spans - from;
		uint32_t count = left < sim->config.map_spans ? left : sim->config.map_spans;
		struct r3ring_record record = {.type = R3RING_SPANS};

		record.u.spans.head = (struct r3ring_spans_record){
			.step = step,
			.spans = count,
			.keys = keys_of(map->span + from, count),
			.tokens_per_key = sim->config.block_tokens,
			.key_kind = sim->config.key_kind,
			.flags = flags | (count < left ? R3RING_SPANS_CONTINUED : 0u),
		};
		record.u.spans.spans = map->span + from;
		record.u.spans.keys = map->key + key;
		sim_put(sim, channel, &record, 0);
		key += record.u.spans.head.keys;
		from += count;
		flags |= R3RING_SPANS_MORE;
	}
}

/* ---- steps -------------------------------------------------------------- */

/* An engine takes its time to start again; a later stage is a little behind. */
static uint64_t time_of(const struct sim_channel *channel, const struct sim_step *step)
{
	return step->epoch * UINT64_C(100000000000) + step->number * 10000 + channel->stage * 10 +
	       1000;
}

static void put_step(struct sim *sim, struct sim_channel *channel, const struct sim_step *step,
		     enum sim_fate fate)
{
	struct sim_map map = {0};
	struct r3ring_record record = {.type = R3RING_STEP};
	struct r3ring_step_record *head = &record.u.step.head;

	sim_map_at_first(sim, step, &map);
	*head = (struct r3ring_step_record){
		.step = step->number,
		.total_rows = step->total,
		.spans = map.spans < sim->config.map_spans ? map.spans : sim->config.map_spans,
		.tokens_per_key = sim->config.block_tokens,
		.key_kind = sim->config.key_kind,
		.weight_version = step->weights,
		.host_ns = time_of(channel, step),
		.flags = (step->positions_late ? R3RING_STEP_SPANS_FOLLOW : 0u) |
			 (fate == SIM_DROPPED ? R3RING_STEP_DROPPED : 0u),
	};
	sim_rank_rows(sim, channel, step, &head->row_begin, &head->valid_end, &head->row_end);
	if (head->spans < map.spans)
		head->flags |= R3RING_STEP_MAP_CONTINUED;
	head->keys = keys_of(map.span, head->spans);
	record.u.step.spans = map.span;
	record.u.step.keys = map.key;
	sim_put(sim, channel, &record, R3RING_DESC_BOUNDARY);
	put_spans(sim, channel, step->number, &map, head->spans, R3RING_SPANS_MORE);
}

static void put_layer(struct sim *sim, struct sim_channel *channel, const struct sim_step *step,
		      uint32_t layer, uint32_t row, uint32_t rows)
{
	uint16_t ids[SIM_ROWS * SIM_TOP_K];
	struct r3ring_layer_entry entry = sim_layer(channel->first_layer + layer);
	struct r3ring_record record = {.type = R3RING_LAYER};
	uint32_t valid = 0;

	for (uint32_t i = 0; i < rows; i++) {
		uint16_t *to = ids + i * sim->config.top_k;

		sim_row_ids(&sim->config, &step->row[row + i], channel->first_layer + layer, to);
		valid += row + i < step->rows;
		for (uint32_t k = 0; (channel->copy || channel->draft) && k < sim->config.top_k;
		     k++)
			to[k] = (uint16_t)((to[k] + 1u) % sim->config.experts);
	}
	record.u.layer.head = (struct r3ring_layer_record){
		.step = step->number,
		.layer_id = entry.layer_id,
		.layer_index = (uint16_t)layer,
		.kind = entry.kind,
		.row = row,
		.rows = rows,
		.total_rows = step->total,
		.valid_rows = valid,
		.top_k = (uint16_t)sim->config.top_k,
	};
	record.u.layer.ids = ids;
	sim_put(sim, channel, &record, 0);
}

static void put_layers(struct sim *sim, struct sim_channel *channel, const struct sim_step *step,
		       int32_t missing)
{
	uint32_t begin, valid, end;

	sim_rank_rows(sim, channel, step, &begin, &valid, &end);
	for (uint32_t layer = 0; layer < channel->layers; layer++) {
		if ((int32_t)layer == missing)
			continue;
		for (uint32_t row = begin; row < end; row += sim->config.rows_per_record) {
			uint32_t left = end - row;

			put_layer(sim, channel, step, layer, row,
				  left < sim->config.rows_per_record ? left
								     : sim->config.rows_per_record);
		}
	}
}

static void put_rows(struct sim *sim, struct sim_channel *channel, const struct sim_step *step)
{
	struct r3ring_record record = {.type = R3RING_ROWS};
	int32_t positions[SIM_ROWS + 4];
	uint32_t begin, valid, end;

	sim_rank_rows(sim, channel, step, &begin, &valid, &end);
	if (!sim->config.device_rows || end == begin)
		return;
	for (uint32_t i = begin; i < end; i++)
		positions[i - begin] = i < step->rows ? (int32_t)step->row[i].position : -1;
	record.u.rows.head = (struct r3ring_rows_record){
		.step = step->number,
		.row = begin,
		.rows = end - begin,
		.content = R3RING_ROWS_POSITIONS,
	};
	record.u.rows.positions = positions;
	sim_put(sim, channel, &record, 0);
}

static void put_step_end(struct sim *sim, struct sim_channel *channel, const struct sim_step *step,
			 int32_t missing)
{
	struct r3ring_layer_entry entry =
		sim_layer(channel->first_layer + (missing < 0 ? 0 : (uint32_t)missing));
	const struct r3ring_missing_layer layer = {
		.layer_id = entry.layer_id,
		.kind = entry.kind,
		.cause = R3RING_CAUSE_TOO_FEW_ROWS,
		.expected = step->rows,
	};
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head.step = step->number;
	record.u.step_end.head.status = missing < 0 ? R3RING_STEP_COMPLETE : R3RING_STEP_PARTIAL;
	record.u.step_end.head.missing = missing < 0 ? 0 : 1;
	record.u.step_end.missing = &layer;
	sim_put(sim, channel, &record, 0);
}

static void put_lost(struct sim *sim, struct sim_channel *channel, uint64_t step,
		     enum r3ring_cause cause, bool spans_unknown)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = (struct r3ring_lost_record){
		.from_step = step,
		.to_step = step,
		.steps = step ? 1 : 0,
		.cause = cause,
		.spans_unknown = spans_unknown,
	};
	sim_put(sim, channel, &record, 0);
}

static void records_step(struct sim *sim, struct sim_step *step)
{
	for (uint32_t i = 0; i < step->engine->channels; i++) {
		struct sim_channel *channel = &sim->channel[step->engine->first_channel + i];
		enum sim_fate fate = sim_fault_step(sim, channel);
		int32_t missing = sim_fault_layer(sim, channel);

		if (fate == SIM_UNHEARD) {
			put_lost(sim, channel, step->number, R3RING_CAUSE_QUEUE_FULL, true);
			continue;
		}
		put_step(sim, channel, step, fate);
		if (fate == SIM_DROPPED) {
			put_lost(sim, channel, step->number, R3RING_CAUSE_RING_FULL, false);
			continue;
		}
		put_layers(sim, channel, step, missing);
		put_rows(sim, channel, step);
		put_step_end(sim, channel, step, missing);
	}
}

static void records_late(struct sim *sim, struct sim_step *step)
{
	struct sim_map map = {0};

	sim_map_later(step, &map);
	step->late_spans = map.spans;
	for (uint32_t i = 0; i < step->engine->channels; i++)
		put_spans(sim, &sim->channel[step->engine->first_channel + i], step->number, &map,
			  0, R3RING_SPANS_REPLACE);
}

static void records_copy(struct sim *sim, struct sim_engine *engine,
			 const struct r3ring_key_pair *pair, uint32_t pairs)
{
	struct r3ring_record record = {.type = R3RING_KEY_COPY};

	record.u.key_copy.head = (struct r3ring_key_copy_record){
		.step = engine->steps + 1,
		.pairs = pairs,
		.tokens_per_key = sim->config.block_tokens,
		.key_kind = sim->config.key_kind,
	};
	record.u.key_copy.pairs = pair;
	for (uint32_t i = 0; i < engine->channels; i++)
		sim_put(sim, &sim->channel[engine->first_channel + i], &record, 0);
}

/* ---- between steps ------------------------------------------------------ */

/* Its daemon: the next one goes on in the ring, or in a new generation. */
static void daemon_dies(struct sim *sim, struct sim_channel *channel)
{
	bool anew = sim_below(&sim->fault_chance, 2);

	sim_trace(sim, "%s: its daemon dies%s", channel->name, anew ? ", a new ring" : "");
	sim->losses++;
	if (anew)
		generation_begin(sim, channel, 1);
	else
		put_lost(sim, channel, 0, R3RING_CAUSE_DAEMON_RESTART, false);
	put_keyframe(sim, channel);
}

static void records_between(struct sim *sim, struct sim_engine *engine)
{
	for (uint32_t i = 0; i < engine->channels; i++) {
		struct sim_channel *channel = &sim->channel[engine->first_channel + i];

		if (sim_chance(&sim->fault_chance, sim->config.daemon_dies))
			daemon_dies(sim, channel);
		else if (--channel->keyframe_in == 0)
			put_keyframe(sim, channel);
	}
	sim_records_pump(sim, false);
}

const struct sim_port sim_records = {
	.open = records_open,
	.begin = records_begin,
	.end = records_end,
	.step = records_step,
	.late = records_late,
	.copy = records_copy,
	.between = records_between,
};
