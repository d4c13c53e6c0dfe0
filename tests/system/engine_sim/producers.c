/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's announcements by real producers on the host device, through a real daemon,
 * whose readers feed the assembler. What is lost on the way is lost for real.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/producer.h>
#include <r3ring/reader.h>

#include "tests/support/daemon.h"
#include "tests/system/engine_sim/sim.h"

#define WAIT_MS 20000
#define LAST_ID "the-last"

static const char *const daemon_args[] = {"--ring-size", "512K", NULL};

struct wire {
	struct r3ring_producer *producer;
	struct r3ring_reader *reader;
	bool last_seen; /* the mark behind everything */
};

struct service {
	struct test_daemon daemon;
	struct wire wire[SIM_CHANNELS];
	enum r3ring_cursor_mode mode;
	uint32_t pause; /* steps between two looks at the rings, at most */
	void *buffer;
	size_t capacity;
};

/* ---- reading ------------------------------------------------------------ */

static void instance_of(const struct service *service, const struct sim_channel *channel,
			char name[R3RING_INSTANCE_MAX + 1])
{
	const char *unique = strrchr(service->daemon.dir, '.');

	snprintf(name, R3RING_INSTANCE_MAX + 1, "%s%s", channel->engine->instance,
		 unique ? unique : "");
}

static void reader_open(struct sim *sim, struct sim_channel *channel)
{
	struct service *service = sim->port_ctx;
	char instance[R3RING_INSTANCE_MAX + 1], name[R3RING_INSTANCE_MAX + 32];
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = service->daemon.dir,
		.channel = name,
		.mode = service->mode,
	};
	struct r3ring_error err = {0};

	instance_of(service, channel, instance);
	snprintf(name, sizeof(name), "%s/%u%s", instance, channel->rank,
		 channel->draft ? ".draft" : "");
	if (r3ring_reader_open(&service->wire[channel->index].reader, &options, &err) < 0)
		sim_fault(sim, "%s: %s", name, err.text);
}

static bool is_last(const struct r3ring_record *record)
{
	return record->type == R3RING_REQUEST && record->u.request.head.id_len == strlen(LAST_ID) &&
	       memcmp(record->u.request.id, LAST_ID, strlen(LAST_ID)) == 0;
}

static void take(struct sim *sim, struct sim_channel *channel, const struct r3ring_view *view)
{
	struct service *service = sim->port_ctx;
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0)
		sim_fault(sim, "%s: a record does not decode", channel->name);
	else if (is_last(&record))
		service->wire[channel->index].last_seen = true;
	else
		sim_feed(sim, channel, view, &record);
}

/* Reads what is there; false when nothing was. */
static bool channel_read(struct sim *sim, struct sim_channel *channel)
{
	struct service *service = sim->port_ctx;
	struct r3ring_reader *reader = service->wire[channel->index].reader;
	struct r3ring_view view;
	bool any = false;
	int r;

	while (reader &&
	       (r = r3ring_reader_read(reader, &view, service->buffer, service->capacity))) {
		if (r == 1)
			take(sim, channel, &view);
		else if (r == -EOVERFLOW)
			sim_gap(sim, channel);
		else if (r != -EPIPE)
			sim_fault(sim, "%s: read says %d", channel->name, r);
		if (r != 1 && r != -EOVERFLOW)
			return any;
		any = true;
	}
	return any;
}

static void read_all(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->channels; i++)
		channel_read(sim, &sim->channel[i]);
}

/* ---- announcing --------------------------------------------------------- */

static void producer_open(struct sim *sim, struct sim_channel *channel)
{
	struct service *service = sim->port_ctx;
	struct r3ring_layer_entry layers[SIM_LAYERS];
	char instance[R3RING_INSTANCE_MAX + 1];
	const struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = service->daemon.dir,
		.instance = instance,
		.rank = channel->rank,
		.draft = channel->draft,
		.device = "host",
		.model = "simulated",
		.experts = sim->config.experts,
		.top_k = sim->config.top_k,
		.max_rows = SIM_ROWS + 4,
		.layer_count = channel->layers,
		.layers = layers,
		.coordinates = sim_rank_coordinates(sim, channel),
		.replica = channel->copy,
		.capture_rows = sim->config.device_rows,
		.weight_version = channel->engine->epoch,
	};
	struct r3ring_error err = {0};

	instance_of(service, channel, instance);
	for (uint32_t i = 0; i < channel->layers; i++)
		layers[i] = sim_layer(channel->first_layer + i);
	if (r3ring_producer_open(&service->wire[channel->index].producer, &options, &err) < 0)
		sim_fault(sim, "%s: %s", channel->name, err.text);
}

static void real_open(struct sim *sim, struct sim_engine *engine)
{
	struct service *service = sim->port_ctx;

	for (uint32_t i = 0; i < engine->channels; i++) {
		struct sim_channel *channel = &sim->channel[engine->first_channel + i];
		struct wire *wire = &service->wire[channel->index];

		r3ring_producer_close(wire->producer);
		wire->producer = NULL;
		producer_open(sim, channel);
		if (!wire->reader)
			reader_open(sim, channel);
	}
}

/* Calls @call for each producer of the engine; each must answer @expected. */
#define FOR_EACH(sim, engine, expected, call)                                                      \
	for (uint32_t i_ = 0; i_ < (engine)->channels; i_++) {                                     \
		const uint32_t index = (engine)->first_channel + i_;                               \
		struct r3ring_producer *producer =                                                 \
			((struct service *)(sim)->port_ctx)->wire[index].producer;                 \
		const int64_t answer = call;                                                       \
		if (answer != (int64_t)(expected))                                                 \
			sim_fault(sim, "%s: %lld in place of %lld: %s",                            \
				  (sim)->channel[index].name, (long long)answer,                   \
				  (long long)(expected), r3ring_producer_error(producer));         \
	}

static void real_begin(struct sim *sim, const struct sim_life *life)
{
	const uint64_t first = sim_life_first(life);
	/* A rank that has no others beside it finds it by the id. */
	const struct r3ring_request request = {
		.size = sizeof(request),
		.first = sim->config.untold && life->attempt                 ? R3RING_FIRST_UNKNOWN
			 : sim->config.replicas > 1 && first != life->handle ? (int64_t)first
									     : 0,
		.id = life->request->id,
		.session = life->request->session,
		.turn = life->request->turn,
		.prompt_tokens = life->told_prompt,
		.attempt = life->attempt,
	};

	FOR_EACH(sim, life->engine, life->handle, r3ring_request_begin(producer, &request));
}

static void real_end(struct sim *sim, const struct sim_life *life)
{
	FOR_EACH(sim, life->engine, 0,
		 r3ring_request_end(producer, (int64_t)life->handle,
				    (enum r3ring_end_reason)life->reason, life->attempt,
				    life->told_kept));
}

/* A token map by fields. */
struct fields {
	uint64_t request[SIM_SPANS];
	uint32_t position[SIM_SPANS], row[SIM_SPANS], rows[SIM_SPANS], accepted[SIM_SPANS],
		keys[SIM_SPANS];
	uint16_t attempt[SIM_SPANS];
	uint8_t kind[SIM_SPANS], flags[SIM_SPANS];
};

static struct r3ring_step step_of(const struct sim *sim, const struct sim_map *map,
				  struct fields *fields)
{
	for (uint32_t i = 0; i < map->spans; i++) {
		const struct r3ring_span *span = &map->span[i];

		fields->request[i] = span->request;
		fields->position[i] = span->position;
		fields->row[i] = span->row;
		fields->rows[i] = span->rows;
		fields->accepted[i] = span->accepted;
		fields->keys[i] = span->keys;
		fields->attempt[i] = span->attempt;
		fields->kind[i] = span->kind;
		fields->flags[i] = span->flags;
	}
	return (struct r3ring_step){
		.size = sizeof(struct r3ring_step),
		.spans = map->spans,
		.keys = map->keys,
		.tokens_per_key = sim->config.block_tokens,
		.key_kind = sim->config.key_kind,
		.span_request = fields->request,
		.span_position = fields->position,
		.span_row = fields->row,
		.span_rows = fields->rows,
		.span_accepted = fields->accepted,
		.span_keys = fields->keys,
		.span_attempt = fields->attempt,
		.span_kind = fields->kind,
		.span_flags = fields->flags,
		.key = map->key,
	};
}

static void capture_layer(struct sim *sim, const struct sim_channel *channel,
			  struct r3ring_producer *producer, const struct sim_step *step,
			  uint32_t layer)
{
	uint16_t ids[SIM_TOP_K];
	int32_t matrix[(SIM_ROWS + 4) * SIM_TOP_K];
	uint32_t begin, valid, end, top_k = sim->config.top_k;
	int r;

	sim_rank_rows(sim, channel, step, &begin, &valid, &end);
	for (uint32_t row = begin; row < end; row++) {
		sim_row_ids(&sim->config, &step->row[row], channel->first_layer + layer, ids);
		for (uint32_t k = 0; k < top_k; k++) {
			int32_t id = ids[k] == R3RING_MISSING ? -1 : ids[k];

			if ((channel->copy || channel->draft) && id >= 0)
				id = (id + 1) % (int32_t)sim->config.experts;
			matrix[(row - begin) * top_k + k] = id;
		}
	}
	r = r3ring_capture_layer(producer, layer,
				 &(const struct r3ring_topk){.ids = matrix,
							     .type = R3RING_INT32,
							     .rows = end - begin,
							     .columns = top_k,
							     .row_stride = top_k},
				 NULL);
	if (r < 0)
		sim_fault(sim, "%s: capture says %d", channel->name, r);
}

static void capture_positions(const struct sim *sim, const struct sim_channel *channel,
			      struct r3ring_producer *producer, const struct sim_step *step)
{
	int32_t positions[SIM_ROWS + 4];
	uint32_t begin, valid, end;

	sim_rank_rows(sim, channel, step, &begin, &valid, &end);
	for (uint32_t i = begin; i < end; i++)
		positions[i - begin] = i < step->rows ? (int32_t)step->row[i].position : -1;
	if (sim->config.device_rows && end > begin)
		r3ring_capture_rows(producer, positions, NULL, NULL);
}

static void real_step(struct sim *sim, struct sim_step *step)
{
	struct sim_map map = {0};
	struct fields fields;
	struct r3ring_step said;

	sim_map_at_first(sim, step, &map);
	said = step_of(sim, &map, &fields);
	said.total_rows = step->total;
	said.flags = step->positions_late ? R3RING_STEP_SPANS_FOLLOW : 0;
	said.weight_version = step->weights;
	said.doorbell_layers = sim_below(&sim->fault_chance, 3);
	FOR_EACH(sim, step->engine, step->number, ({
			 const struct sim_channel *channel = &sim->channel[index];
			 int64_t number;

			 sim_rank_rows(sim, channel, step, &said.row_begin, &said.valid_end,
				       &said.row_end);
			 said.first_source_row = said.row_begin;
			 number = r3ring_step_begin(producer, &said, NULL);
			 for (uint32_t layer = 0; layer < channel->layers; layer++)
				 capture_layer(sim, channel, producer, step, layer);
			 capture_positions(sim, channel, producer, step);
			 r3ring_step_end(producer, NULL);
			 number;
		 }));
}

static void real_late(struct sim *sim, struct sim_step *step)
{
	struct sim_map map = {0};
	struct fields fields;
	struct r3ring_step said;

	sim_map_later(step, &map);
	step->late_spans = map.spans;
	said = step_of(sim, &map, &fields);
	FOR_EACH(sim, step->engine, 0, r3ring_step_spans(producer, (int64_t)step->number, &said));
}

static void real_copy(struct sim *sim, struct sim_engine *engine,
		      const struct r3ring_key_pair *pair, uint32_t pairs)
{
	FOR_EACH(sim, engine, 0,
		 r3ring_key_copy(producer, sim->config.key_kind, sim->config.block_tokens, pair,
				 pairs));
}

static void real_between(struct sim *sim, struct sim_engine *engine)
{
	struct service *service = sim->port_ctx;

	(void)engine;
	if (sim_chance(&sim->fault_chance, sim->config.daemon_dies)) {
		sim_trace(sim, "the daemon dies");
		sim->losses++;
		test_daemon_kill(&service->daemon);
		test_daemon_restart(&service->daemon, daemon_args);
	}
	if (sim_below(&sim->fault_chance, service->pause) == 0)
		read_all(sim);
}

static const struct sim_port real_port = {
	.open = real_open,
	.begin = real_begin,
	.end = real_end,
	.step = real_step,
	.late = real_late,
	.copy = real_copy,
	.between = real_between,
};

/* ---- a seed ------------------------------------------------------------- */

/* A mark behind everything on each channel, and all that is in front of it. */
static void read_to_the_end(struct sim *sim)
{
	struct service *service = sim->port_ctx;
	const struct r3ring_request last = {.size = sizeof(last), .id = LAST_ID};

	for (uint32_t i = 0; i < sim->channels; i++)
		if (r3ring_request_begin(service->wire[i].producer, &last) < 0)
			sim_fault(sim, "%s: no mark", sim->channel[i].name);
	for (uint32_t i = 0; i < sim->channels && !sim->faults; i++)
		while (!service->wire[i].last_seen && !sim->faults)
			if (!channel_read(sim, &sim->channel[i]) &&
			    r3ring_reader_wait(service->wire[i].reader, WAIT_MS) == 0)
				sim_fault(sim, "%s: its end does not come", sim->channel[i].name);
}

static void config_make(struct sim_config *config, uint64_t seed)
{
	sim_config_make(config, seed);
	config->real = true;
	config->gap = config->dropped = config->unheard = config->partial = 0;
	config->never_late = config->skew = 0;
	config->late_reader = false;
	config->max_bytes = config->max_keys = 0;
	config->late_steps = 0;
	config->device_rows = config->key_kind == R3RING_KEYS_NONE && seed % 2;
	config->daemon_dies = seed % 3 ? 0 : 30;
	if (config->requests > 8)
		config->requests = 8;
}

static void close_all(struct service *service)
{
	for (uint32_t i = 0; i < SIM_CHANNELS; i++) {
		r3ring_producer_close(service->wire[i].producer);
		r3ring_reader_close(service->wire[i].reader);
	}
	test_daemon_close(&service->daemon);
	free(service->buffer);
}

uint32_t sim_run_real(uint64_t seed, bool trace, struct sim_figures *figures)
{
	struct sim *sim = malloc(sizeof(*sim));
	struct service *service = calloc(1, sizeof(*service));
	struct sim_config config;
	uint32_t faults;

	config_make(&config, seed);
	service->mode = seed % 2 ? R3RING_LOSSLESS : R3RING_LOSSY;
	service->pause = seed % 4 ? 4 : 200;
	service->capacity = 1 << 20;
	service->buffer = aligned_alloc(64, service->capacity);
	test_daemon_start(&service->daemon, daemon_args);
	sim_open(sim, &config, &real_port, service, trace);
	sim->figures = *figures;
	sim_serve(sim);
	read_to_the_end(sim);
	faults = sim_finish(sim);
	*figures = sim->figures;
	close_all(service);
	sim_close(sim);
	free(service);
	free(sim);
	return faults;
}
