/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: running requests first, in chunks, then those that wait. */
#include <stdlib.h>

#include "tests/system/engine_sim/sim.h"

/* ---- spans and rows ----------------------------------------------------- */

static void span_keys(const struct sim *sim, struct sim_step *step, struct sim_span *span,
		      uint32_t counted)
{
	const uint32_t tokens = sim->config.block_tokens;
	uint32_t block = span->told.position / tokens;
	uint32_t end = span->told.position + span->told.rows;

	if (sim->config.key_kind == R3RING_KEYS_NONE)
		return;
	/* A block has a hash once it is full. */
	if (sim->config.key_kind == R3RING_KEYS_BLOCK_HASH)
		end = (span->told.position + counted) / tokens * tokens;
	for (; block * tokens < end; block++) {
		step->key[step->keys++] = sim_block_key(sim, span->life, block);
		span->told.keys++;
	}
}

static struct sim_span *span_add(struct sim_step *step, struct sim_life *life, uint8_t kind,
				 uint32_t position, uint32_t rows)
{
	struct sim_span *span = &step->span[step->spans++];

	*span = (struct sim_span){
		.told = {.request = life->handle,
			 .position = position,
			 .row = kind == R3RING_SPAN_COMPUTED ? step->rows : 0,
			 .rows = rows,
			 .accepted = R3RING_UNKNOWN_U32,
			 .attempt = life->attempt,
			 .kind = kind},
		.life = life,
		.first_key = step->keys,
	};
	return span;
}

/* Of the blocks up to @end those that the engine has none of, once a step. */
static void tell_misses(struct sim *sim, struct sim_step *step, struct sim_life *life, uint32_t end)
{
	const uint32_t tokens = sim->config.block_tokens;
	struct sim_span *span = NULL;

	for (uint32_t i = 0; i < step->spans; i++)
		if (step->span[i].life == life && !step->span[i].told.rows)
			return;
	for (uint32_t i = life->computed / tokens; (i + 1) * tokens <= end; i++) {
		const uint64_t hash = sim_block_hash(sim, life, i);

		if (sim_hash_is_held(sim, life->engine, hash))
			continue;
		if (!span)
			span = span_add(step, life, R3RING_SPAN_CACHED, life->computed, 0);
		step->key[step->keys++] = hash;
		span->told.keys++;
	}
}

static uint64_t run_of(const struct sim *sim, const struct sim_life *life)
{
	if (sim->config.key_kind == R3RING_KEYS_BLOCK_HASH && !sim->config.apart)
		return 0;
	return 1 + life->request->number * SIM_ATTEMPTS + life->attempt;
}

static struct sim_row *row_add(struct sim *sim, struct sim_step *step, struct sim_life *life,
			       uint32_t position, bool counts)
{
	struct sim_row *row = &step->row[step->rows];

	*row = (struct sim_row){
		.pass = {.weights = step->weights,
			 .history = counts ? life->request->history[position]
					   : sim_mix(step->number, step->rows),
			 .run = run_of(sim, life)},
		.step = step,
		.life = life,
		.number = step->rows++,
		.position = position,
		.counts = counts,
		.bad = sim_chance(&sim->chance, sim->config.bad),
	};
	return row;
}

static void row_fills(struct sim *sim, struct sim_life *life, struct sim_row *row)
{
	const uint32_t tokens = sim->config.block_tokens;
	struct sim_fill *fill = &life->fill[row->position];
	struct sim_block *block = &life->engine->block[life->block[row->position / tokens]];

	if (life->rerun && (fill->pass || fill->external)) {
		row->former = fill->again;
		fill->again = row;
	} else {
		*fill = (struct sim_fill){.pass = row};
	}
	block->row[row->position % tokens] = row;
}

static void compute(struct sim *sim, struct sim_step *step, struct sim_life *life, uint32_t rows,
		    uint32_t counted, bool drafts)
{
	const bool late = life->untold || (drafts && sim->config.lag);
	struct sim_span *span;

	/* Which blocks drafts fill the host does not know before. */
	if (sim->config.misses && !late && !drafts)
		tell_misses(sim, step, life, life->computed + rows);
	span = span_add(step, life, R3RING_SPAN_COMPUTED, life->computed, rows);
	if (drafts) {
		span->told.flags = R3RING_SPAN_DRAFT;
		span->told.accepted = counted;
	}
	span->late = late;
	span_keys(sim, step, span, counted);
	for (uint32_t i = 0; i < rows; i++) {
		struct sim_row *row = row_add(sim, step, life, life->computed + i, i < counted);

		if (i < counted)
			row_fills(sim, life, row);
	}
	life->computed += counted;
	if (span->late) {
		step->late = true;
		step->positions_late |= life->untold > 0;
		life->untold++;
	} else {
		sim_cache_label(sim, life, life->computed);
	}
}

/* ---- one request -------------------------------------------------------- */

/* Room for so many tokens more; takes it from those who came later. Returns what fits. */
static uint32_t reserve(struct sim *sim, struct sim_life *life, uint32_t rows, uint32_t place)
{
	struct sim_engine *engine = life->engine;
	const uint32_t tokens = sim->config.block_tokens;

	while (life->blocks * tokens < life->computed + rows) {
		if (sim_block_take(sim, life))
			continue;
		if (engine->running <= place + 1)
			return life->blocks * tokens - life->computed;
		sim_life_put_back(sim, engine->run[engine->running - 1]);
	}
	return rows;
}

static void prefill(struct sim *sim, struct sim_step *step, struct sim_life *life, uint32_t place)
{
	uint32_t rows = life->request->length - life->computed;
	uint32_t budget = sim->config.max_rows - step->rows;

	if (rows > sim->config.chunk)
		rows = sim->config.chunk;
	if (rows > budget)
		rows = budget;
	rows = reserve(sim, life, rows, place);
	if (!rows)
		return;
	if (life->computed + rows == life->request->length)
		sim_sample(life->request, 1, life->attempt);
	compute(sim, step, life, rows, rows, false);
}

/* A pass over a token that was run already, which comes to other routes, and fills KV anew. */
static void contradict(struct sim *sim, struct sim_step *step, struct sim_life *life, uint32_t rows)
{
	const uint32_t tokens = sim->config.block_tokens;
	uint32_t position = sim_below(&sim->chance, life->computed);
	struct sim_fill *fill = &life->fill[position];
	struct sim_span *span;
	struct sim_row *row;

	if (life->untold || step->rows + rows + 1 > sim->config.max_rows || !fill->pass ||
	    fill->again || fill->pass->life != life || fill->pass->pass.weights != step->weights)
		return;
	span = span_add(step, life, R3RING_SPAN_COMPUTED, position, 1);
	span_keys(sim, step, span, 1);
	row = row_add(sim, step, life, position, true);
	row->pass.run += UINT64_C(1) << 32;
	fill->again = row;
	life->engine->block[life->block[position / tokens]].row[position % tokens] = row;
}

static void decode(struct sim *sim, struct sim_step *step, struct sim_life *life, uint32_t place)
{
	uint32_t budget = sim->config.max_rows - step->rows;
	uint32_t drafts = sim->config.drafts ? sim_below(&sim->chance, sim->config.drafts + 1) : 0;
	uint32_t rows = 1 + drafts, accepted;

	if (rows > budget)
		rows = budget;
	rows = reserve(sim, life, rows, place);
	if (!rows)
		return;
	accepted = drafts ? sim_drafts_accept(sim, rows) : rows;
	sim_sample(life->request, accepted, life->attempt);
	if (sim_chance(&sim->chance, sim->config.conflict))
		contradict(sim, step, life, rows);
	compute(sim, step, life, rows, accepted, drafts > 0);
}

static void schedule(struct sim *sim, struct sim_step *step, struct sim_life *life, uint32_t place)
{
	if (step->rows >= sim->config.max_rows || step->spans + 5 > SIM_SPANS)
		return;
	if (life->request->length - life->computed > 1)
		prefill(sim, step, life, place);
	else
		decode(sim, step, life, place);
}

/* ---- those that wait ---------------------------------------------------- */

/* What another engine, or a store beside this one, computed already. */
static uint32_t tokens_from_elsewhere(struct sim *sim, const struct sim_life *life)
{
	const uint32_t tokens = sim->config.block_tokens;
	uint32_t left = life->request->length - 1 - life->computed;
	bool from_prefill = life->engine->decode_only && life->attempt == 0;

	if (!from_prefill && !sim_chance(&sim->chance, sim->config.external))
		return 0;
	left -= sim_below(&sim->chance, left < 4 ? left + 1 : 4);
	return left / tokens * tokens;
}

static void load(struct sim *sim, struct sim_step *step, struct sim_life *life)
{
	uint32_t cached = sim_cache_match(sim, life), loaded;

	if (cached)
		span_keys(sim, step, span_add(step, life, R3RING_SPAN_CACHED, 0, cached), cached);
	life->computed = cached;
	if (sim->config.misses && sim_below(&sim->chance, 2))
		tell_misses(sim, step, life, life->request->length);
	loaded = tokens_from_elsewhere(sim, life);
	if (!loaded)
		return;
	for (uint32_t i = 0; i * sim->config.block_tokens < loaded; i++)
		if (!sim_block_take(sim, life)) {
			loaded = i * sim->config.block_tokens;
			break;
		}
	if (!loaded)
		return;
	span_keys(sim, step, span_add(step, life, R3RING_SPAN_EXTERNAL, cached, loaded), loaded);
	for (uint32_t i = 0; i < loaded; i++)
		life->fill[cached + i].external = true;
	life->computed += loaded;
	sim_cache_label(sim, life, life->computed);
}

static bool has_room(const struct sim *sim, const struct sim_engine *engine,
		     const struct sim_request *request)
{
	if (!engine->running)
		return true;
	return sim_blocks_free(sim, engine) * sim->config.block_tokens >=
	       request->length + 2 * sim->config.block_tokens;
}

static void admit(struct sim *sim, struct sim_step *step, struct sim_engine *engine)
{
	while (engine->waiting && engine->running < sim->config.batch &&
	       step->rows < sim->config.max_rows && step->spans + 5 < SIM_SPANS &&
	       has_room(sim, engine, engine->wait[0])) {
		struct sim_life *life = sim_life_begin(sim, engine, engine->wait[0]);

		engine->waiting--;
		for (uint32_t i = 0; i < engine->waiting; i++)
			engine->wait[i] = engine->wait[i + 1];
		engine->run[engine->running++] = life;
		load(sim, step, life);
		schedule(sim, step, life, engine->running - 1);
	}
}

/* ---- the end of a request ----------------------------------------------- */

static bool has_all(const struct sim_life *life)
{
	if (life->engine->prefill_only)
		return life->request->length > life->request->prompt;
	return life->request->length >= life->request->target;
}

static void finish(struct sim *sim, struct sim_life *life)
{
	struct sim_request *request = life->request;

	sim_late_tell(sim, life->engine, life);
	if (!life->engine->prefill_only) {
		sim_life_end(sim, life, R3RING_END_FINISHED, request->target, SIM_END_TOLD);
		sim_request_over(sim, request);
		return;
	}
	sim_life_end(sim, life, R3RING_END_FINISHED, request->prompt, SIM_END_TOLD);
	/* The engine that decodes samples the first token itself. */
	request->length = request->prompt;
	sim_enqueue(sim, &sim->engine[1], request);
}

static void finish_those_done(struct sim *sim, struct sim_engine *engine)
{
	for (uint32_t i = engine->running; i-- > 0;) {
		struct sim_life *life = engine->run[i];

		if (has_all(life) && life->past_stop++ >= sim->config.lag)
			finish(sim, life);
	}
}

/* ---- a step ------------------------------------------------------------- */

static struct sim_step *step_new(struct sim *sim, struct sim_engine *engine)
{
	struct sim_step *step = calloc(1, sizeof(*step));

	step->engine = engine;
	step->epoch = engine->epoch;
	step->number = engine->steps + 1;
	step->weights = engine->weights;
	step->next = sim->steps;
	sim->steps = step;
	return step;
}

static void trace_step(const struct sim *sim, const struct sim_step *step)
{
	sim_trace(sim, "engine %u: step %u, %u rows of %u, weights %u%s", step->engine->index,
		  (unsigned int)step->number, step->rows, step->total, (unsigned int)step->weights,
		  step->late ? ", not all known yet" : "");
	for (uint32_t i = 0; i < step->spans; i++) {
		const struct r3ring_span *span = &step->span[i].told;

		sim_trace(sim, "\t%s, %s %u+%u, row %u, accepted %d, %u keys%s",
			  step->span[i].life->request->name, r3ring_span_kind_name(span->kind),
			  span->position, span->rows, span->row, (int)span->accepted, span->keys,
			  step->span[i].late ? ", late" : "");
	}
}

bool sim_engine_step(struct sim *sim, struct sim_engine *engine)
{
	struct sim_step *step;

	sim_events(sim, engine);
	if (!engine->running && !engine->waiting)
		return false;
	step = step_new(sim, engine);
	for (uint32_t i = 0; i < engine->running; i++)
		schedule(sim, step, engine->run[i], i);
	admit(sim, step, engine);
	if (step->spans) {
		uint32_t shards = sim->config.shards;

		engine->steps++;
		step->total = step->rows + sim_below(&sim->chance, 3);
		step->total = (step->total + shards - 1) / shards * shards;
		trace_step(sim, step);
		sim->port->step(sim, step);
		sim_late_note(sim, step);
	}
	sim_late_tell(sim, engine, NULL);
	finish_those_done(sim, engine);
	if (engine->dying)
		sim_engine_die(sim, engine);
	sim->port->between(sim, engine);
	return true;
}
