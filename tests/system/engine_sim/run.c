/* SPDX-License-Identifier: Apache-2.0 */
/* A seed from beginning to end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/system/engine_sim/sim.h"

#define FAULTS_PRINTED 1u
#define ROUNDS_MOST 20000u
#define LATE_STEPS 64u /* that the assembler lets wait where its options do not say */

void sim_trace(const struct sim *sim, const char *format, ...)
{
	va_list args;

	if (!sim->trace)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void sim_fault(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->faults++ >= FAULTS_PRINTED && !sim->trace)
		return;
	fprintf(stderr, "engine_sim: seed %llu: ", (unsigned long long)sim->config.seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- the assembler ------------------------------------------------------ */

/* How many steps may wait for their maps in a channel: for one that was lost as many as the
 * assembler lets wait. */
static uint32_t steps_waiting(const struct sim_config *config)
{
	bool lost = config->lag && (config->gap || config->never_late);

	if (!lost)
		return config->lag;
	return config->late_steps ? config->late_steps : LATE_STEPS;
}

/* What it may hold beyond its bound: steps that wait, and the newest. */
static void check_bound(struct sim *sim)
{
	struct r3ring_assembler_stats stats;
	uint64_t row = 192 + 2 * SIM_LAYERS * SIM_TOP_K;
	uint64_t step = (sim->config.max_rows + 4) * row;

	r3ring_assembler_get_stats(sim->assembler, &stats);
	if (sim->config.max_bytes &&
	    stats.bytes > sim->config.max_bytes +
				  (steps_waiting(&sim->config) + 3) * step * sim->channels)
		sim_fault(sim, "%llu bytes are held, %llu allowed", (unsigned long long)stats.bytes,
			  (unsigned long long)sim->config.max_bytes);
	if (sim->config.max_keys && stats.keys > sim->config.max_keys * sim->channels)
		sim_fault(sim, "%llu keys are held", (unsigned long long)stats.keys);
}

static void trace_record(const struct sim *sim, const struct sim_channel *channel,
			 const struct r3ring_view *view, const struct r3ring_record *record)
{
	uint64_t number = record->type == R3RING_STEP       ? record->u.step.head.step
			  : record->type == R3RING_SPANS    ? record->u.spans.head.step
			  : record->type == R3RING_LAYER    ? record->u.layer.head.step
			  : record->type == R3RING_STEP_END ? record->u.step_end.head.step
			  : record->type == R3RING_REQUEST  ? record->u.request.head.handle
							    : 0;

	sim_trace(sim, "%s: reads %llu.%llu %s of %llu", channel->name,
		  (unsigned long long)view->generation, (unsigned long long)view->seq,
		  r3ring_record_type_name(record->type), (unsigned long long)number);
}

void sim_feed(struct sim *sim, struct sim_channel *channel, const struct r3ring_view *view,
	      const struct r3ring_record *record)
{
	int r;

	trace_record(sim, channel, view, record);
	sim->fed++;
	sim_hear(sim, channel, view, record);
	r = r3ring_assembler_feed(sim->assembler, channel->index, view, record);
	if (r < 0)
		sim_fault(sim, "%s: feed of %s says %d", channel->name,
			  r3ring_record_type_name(record->type), r);
	sim_take(sim, false);
	check_bound(sim);
}

void sim_gap(struct sim *sim, struct sim_channel *channel)
{
	sim_trace(sim, "%s: a gap", channel->name);
	sim->gaps++;
	sim_hear_gap(channel);
	r3ring_assembler_gap(sim->assembler, channel->index);
	sim_take(sim, false);
}

static void assembler_make(struct sim *sim)
{
	const struct sim_config *config = &sim->config;
	const struct r3ring_assembler_options options = {
		.size = sizeof(options),
		.policy = config->policy,
		.max_bytes = config->max_bytes,
		.max_keys = config->max_keys,
		.late_steps = config->late_steps,
		.min_ends = config->min_ends,
	};

	if (r3ring_assembler_create(&sim->assembler, &options, NULL) < 0)
		abort();
	for (uint32_t i = 0; i < sim->channels; i++)
		if (r3ring_assembler_channel(sim->assembler, sim->channel[i].name) != (int)i)
			sim_fault(sim, "%s is not channel %u", sim->channel[i].name, i);
}

/* ---- all together ------------------------------------------------------- */

static void describe(const struct sim *sim)
{
	const struct sim_config *c = &sim->config;

	sim_trace(sim,
		  "seed %llu: %u layers of %u in %u, %u stages, %u shards, %u replicas%s%s%s; keys "
		  "%u of %u tokens, %u blocks; %u requests, batch %u, chunk %u, drafts %u, lag "
		  "%u; policy %u%s; gap %u dropped %u unheard %u partial %u never %u dies %u/%u%s "
		  "map %u skew %u bytes %llu keys %llu late %u ids %u of %u%s",
		  (unsigned long long)c->seed, c->layers, c->top_k, c->experts, c->stages,
		  c->shards, c->replicas, c->copies ? ", copies" : "",
		  c->draft_channel ? ", draft" : "", c->disaggregated ? ", disaggregated" : "",
		  c->key_kind, c->block_tokens, c->blocks, c->requests, c->batch, c->chunk,
		  c->drafts, c->lag, c->policy, c->in_place ? ", in place" : "", c->gap, c->dropped,
		  c->unheard, c->partial, c->never_late, c->engine_dies, c->daemon_dies,
		  c->late_reader ? ", late reader" : "", c->map_spans, c->skew,
		  (unsigned long long)c->max_bytes, (unsigned long long)c->max_keys, c->late_steps,
		  c->ids, c->names, c->untold ? ", untold" : "");
}

void sim_open(struct sim *sim, const struct sim_config *config, const struct sim_port *port,
	      void *port_ctx, bool trace)
{
	*sim = (struct sim){
		.config = *config,
		.chance = sim_mix(config->seed, 2),
		.fault_chance = sim_mix(config->seed, 3),
		.skew_chance = sim_mix(config->seed, 4),
		.port = port,
		.port_ctx = port_ctx,
		.trace = trace,
	};
	describe(sim);
	sim_ranks_make(sim);
	sim_workload_make(sim);
	assembler_make(sim);
	for (uint32_t i = 0; i < sim->engines; i++)
		port->open(sim, &sim->engine[i]);
}

/* Requests come one after the other; a turn comes when the one before is over. */
static void arrive(struct sim *sim, uint32_t *next)
{
	while (*next < sim->requests && sim_below(&sim->chance, 2)) {
		struct sim_request *request = &sim->request[(*next)++];
		bool is_turn = request->number &&
			       sim->request[request->number - 1].next_turn == request;
		uint32_t engine = sim->config.disaggregated ? 0
							    : sim_below(&sim->chance, sim->engines);

		if (!is_turn)
			sim_enqueue(sim, &sim->engine[engine], request);
	}
}

void sim_serve(struct sim *sim)
{
	uint32_t next = 0, rounds = 0;
	bool busy = true;

	while (busy || next < sim->requests) {
		busy = false;
		arrive(sim, &next);
		for (uint32_t i = 0; i < sim->engines; i++)
			busy |= sim_engine_step(sim, &sim->engine[i]);
		for (uint32_t i = 0; i < sim->engines; i++)
			busy |= sim->engine[i].waiting || sim->engine[i].running;
		if (++rounds > ROUNDS_MOST) {
			sim_fault(sim, "the engine does not get on");
			return;
		}
	}
}

uint32_t sim_finish(struct sim *sim)
{
	struct r3ring_assembler_stats stats;

	r3ring_assembler_flush(sim->assembler);
	sim_take(sim, true);
	r3ring_assembler_get_stats(sim->assembler, &stats);
	if (stats.requests_live)
		sim_fault(sim, "%llu requests are held after the end",
			  (unsigned long long)stats.requests_live);
	return sim_check(sim);
}

static void step_free(struct sim_step *step)
{
	for (uint32_t i = 0; i < SIM_CHANNELS; i++)
		free(step->told[i]);
	free(step);
}

static void request_free(struct sim_request *request)
{
	for (uint32_t i = 0; i < request->lives; i++) {
		for (uint32_t c = 0; c < SIM_CHANNELS; c++)
			free(request->life[i]->seen[c]);
		free(request->life[i]);
	}
}

void sim_close(struct sim *sim)
{
	r3ring_assembler_destroy(sim->assembler);
	while (sim->given) {
		struct sim_given *given = sim->given;

		sim->given = given->next;
		sim_given_free(given);
	}
	while (sim->steps) {
		struct sim_step *step = sim->steps;

		sim->steps = step->next;
		step_free(step);
	}
	for (uint32_t i = 0; i < sim->requests; i++)
		request_free(&sim->request[i]);
	for (uint32_t i = 0; i < sim->channels; i++) {
		sim_records_free(&sim->channel[i]);
		free(sim->channel[i].heard);
	}
}

uint32_t sim_run(uint64_t seed, bool trace, struct sim_figures *figures)
{
	struct sim *sim = malloc(sizeof(*sim));
	struct sim_config config;
	uint32_t faults;

	sim_config_make(&config, seed);
	sim_open(sim, &config, &sim_records, NULL, trace);
	sim->figures = *figures;
	sim_serve(sim);
	sim_records_pump(sim, true);
	faults = sim_finish(sim);
	*figures = sim->figures;
	sim_close(sim);
	free(sim);
	return faults;
}
