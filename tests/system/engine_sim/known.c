/* SPDX-License-Identifier: Apache-2.0 */
/* What readers were given of a cell, and what they can tell from it. */
#include "tests/system/engine_sim/cell.h"

#define ROWS_TOLD ((2 + SIM_EITHER) * SIM_CHANNELS)

bool cell_ids_are(const struct cell *cell, const struct sim_row *row)
{
	for (uint32_t k = 0; k < cell->sim->config.top_k; k++)
		if (cell->ids[k] != sim_route(&cell->sim->config, &row->pass, cell->layer, k))
			return false;
	return true;
}

static bool same_routes(const struct cell *cell, const struct sim_row *a, const struct sim_row *b)
{
	for (uint32_t k = 0; k < cell->sim->config.top_k; k++)
		if (sim_route(&cell->sim->config, &a->pass, cell->layer, k) !=
		    sim_route(&cell->sim->config, &b->pass, cell->layer, k))
			return false;
	return true;
}

static bool same_pass(const struct sim_row *a, const struct sim_row *b)
{
	return a->pass.weights == b->pass.weights && a->pass.history == b->pass.history &&
	       a->pass.run == b->pass.run;
}

static bool contradict(const struct cell *cell, const struct sim_row *a, const struct sim_row *b)
{
	return a->pass.weights == b->pass.weights && !same_routes(cell, a, b);
}

static bool kept_was_told(const struct sim_life *life)
{
	return life->end_heard && life->told_kept != R3RING_UNKNOWN_U32;
}

bool cell_is_cut(const struct cell *cell, const struct sim_life *life)
{
	if (!cell->sim->config.disaggregated || cell->request->given > 1 ||
	    cell->given->info.flags & R3RING_ASSEMBLED_EVICTED)
		return false;
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *other = cell->request->life[i];

		if (other->engine == life->engine || other->attempt < life->attempt ||
		    !other->ever_named)
			continue;
		if (kept_was_told(life) && cell->position >= life->told_kept)
			return true;
		if (!kept_was_told(life) && other->attempt == life->attempt &&
		    kept_was_told(other) && other->told_kept > other->prompt &&
		    cell->position >= other->prompt)
			return true;
	}
	return false;
}

bool cell_is_past_unheard_end(const struct cell *cell, const struct sim_life *life)
{
	return cell->sim->config.disaggregated && cell->position >= life->kept &&
	       !cell_is_cut(cell, life) &&
	       cell->given->info.flags &
		       (R3RING_ASSEMBLED_LENGTH_GUESSED | R3RING_ASSEMBLED_EVICTED);
}

static bool is_last(const struct sim_life *life)
{
	for (uint32_t i = 0; i < life->request->lives; i++)
		if (life->request->life[i]->attempt > life->attempt &&
		    life->request->life[i]->ever_named)
			return false;
	return true;
}

/* How much the engine kept of the attempt, where it told so. */
static bool engine_told_kept(const struct sim_request *request, const struct sim_engine *engine,
			     uint16_t attempt)
{
	for (uint32_t i = 0; i < request->lives; i++)
		if (request->life[i]->engine == engine && request->life[i]->attempt == attempt &&
		    kept_was_told(request->life[i]))
			return true;
	return false;
}

/* Whether the row may be past the life's end, for all that readers can know: nobody heard that end,
 * nor how much another instance kept of the attempt, which may have gone on with it. Which of the two
 * returned first they do not tell. */
static bool may_be_past_end(const struct cell *cell, const struct sim_life *life)
{
	const struct sim_request *request = cell->request;

	if (!cell->sim->config.disaggregated || life->end_heard || is_last(life))
		return false;
	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *other = request->life[i];

		if (other->engine != life->engine && other->ever_named &&
		    other->attempt >= life->attempt &&
		    !engine_told_kept(request, other->engine, life->attempt) &&
		    cell->position >= (other->attempt == life->attempt ? other->told_prompt
								       : life->told_prompt))
			return true;
	}
	return false;
}

/* What readers of all channels have of the cell, of an attempt; @counting: and that its engine
 * did not run past its end. */
static uint32_t rows_told(const struct cell *cell, int32_t attempt, bool counting,
			  const struct sim_row **rows)
{
	const struct sim *sim = cell->sim;
	uint32_t count = 0;

	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		for (uint32_t c = 0; c < sim->channels && life->attempt == attempt; c++) {
			const struct sim_channel *channel = &sim->channel[c];
			const struct sim_seen *seen = life->seen[c] ? &life->seen[c][cell->position]
								    : NULL;

			if (!seen || seen->known != SIM_ROW || cell_is_cut(cell, life) ||
			    (counting &&
			     (cell->position >= life->kept || may_be_past_end(cell, life))) ||
			    cell->layer < channel->first_layer ||
			    cell->layer >= channel->first_layer + channel->layers)
				continue;
			if (sim_cell_told(sim, channel, seen->row, cell->layer))
				rows[count++] = seen->row;
			if (seen->other && sim_cell_told(sim, channel, seen->other, cell->layer))
				rows[count++] = seen->other;
			for (uint32_t e = 0; e < seen->eithers; e++)
				if (sim_cell_told(sim, channel, seen->either[e], cell->layer))
					rows[count++] = seen->either[e];
		}
	}
	return count;
}

bool cell_seems_earlier(const struct cell *cell, const struct truth *truth)
{
	for (uint32_t i = 0; i < cell->request->lives && truth->passes; i++) {
		const struct sim_life *life = cell->request->life[i];

		for (uint32_t c = 0; c < cell->sim->channels; c++) {
			const struct sim_seen *seen = life->seen[c] ? &life->seen[c][cell->position]
								    : NULL;

			if (!seen || seen->known != SIM_ROW || cell_is_cut(cell, life))
				continue;
			if (life->attempt != truth->attempt && cell_is_past_unheard_end(cell, life))
				return true;
			if (life->attempt == truth->attempt &&
			    life->engine != truth->pass[0]->step->engine &&
			    sim_counts_more(cell->sim, seen->row, truth->pass[0]))
				return true;
		}
	}
	return false;
}

/* Whether a cache may have found one of several passes of which the channel lost one. */
static bool lost_either(const struct cell *cell, const struct sim_channel *channel,
			const struct sim_seen *seen)
{
	bool told = sim_cell_told(cell->sim, channel, seen->row, cell->layer);

	for (uint32_t i = 0; i < seen->eithers; i++)
		told &= sim_cell_told(cell->sim, channel, seen->either[i], cell->layer);
	return seen->eithers && !told;
}

static bool is_either_lost(const struct cell *cell, int32_t attempt)
{
	const struct sim *sim = cell->sim;

	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		for (uint32_t c = 0; c < sim->channels && life->attempt == attempt; c++) {
			const struct sim_channel *channel = &sim->channel[c];
			const struct sim_seen *seen = life->seen[c] ? &life->seen[c][cell->position]
								    : NULL;

			if (seen && seen->known == SIM_ROW && !cell_is_cut(cell, life) &&
			    cell->layer >= channel->first_layer &&
			    cell->layer < channel->first_layer + channel->layers &&
			    lost_either(cell, channel, seen))
				return true;
		}
	}
	return false;
}

void cell_find_known(struct cell *cell, const struct truth *truth)
{
	const struct sim_row *rows[ROWS_TOLD];
	uint32_t count = rows_told(cell, truth->attempt, true, rows);

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < truth->passes; j++)
			cell->known |= same_pass(rows[i], truth->pass[j]);
		for (uint32_t j = 0; j < i; j++)
			cell->contradicted |= contradict(cell, rows[i], rows[j]) && truth->passes &&
					      rows[i]->pass.weights == truth->pass[0]->pass.weights;
	}
	cell->either = is_either_lost(cell, truth->attempt);
	cell->known &= !cell->either;
}

bool cell_is_contradicted(const struct cell *cell)
{
	const struct sim_row *rows[ROWS_TOLD];

	for (uint32_t attempt = 0; attempt <= cell->request->attempts; attempt++) {
		uint32_t count = rows_told(cell, (int32_t)attempt, false, rows);

		for (uint32_t i = 0; i < count; i++)
			for (uint32_t j = 0; j < i; j++)
				if (contradict(cell, rows[i], rows[j]))
					return true;
	}
	return false;
}

static bool was_told(const struct cell *cell, const struct sim_row *row)
{
	for (uint32_t c = 0; c < cell->sim->channels; c++)
		if (cell->sim->channel[c].engine == row->step->engine &&
		    sim_cell_told(cell->sim, &cell->sim->channel[c], row, cell->layer))
			return true;
	return false;
}

bool cell_passes_contradict(const struct cell *cell, const struct truth *truth)
{
	for (uint32_t attempt = 0; attempt <= cell->request->attempts; attempt++) {
		struct passes passes = {.truth = truth, .attempt = (int32_t)attempt};
		const struct sim_row *row, *other;

		while ((row = sim_passes_next(&passes))) {
			struct passes behind = passes;

			while ((other = sim_passes_next(&behind)))
				if (contradict(cell, row, other) && was_told(cell, row) &&
				    was_told(cell, other))
					return true;
		}
	}
	return false;
}

/* Whether a reader was given a row with these ids, of the same tokens, wherever it put it. */
static bool was_given(const struct cell *cell)
{
	const uint64_t history = cell->request->history[cell->position];
	const struct sim *sim = cell->sim;

	for (const struct sim_step *step = sim->steps; step; step = step->next)
		for (uint32_t i = 0; i < step->rows; i++) {
			const struct sim_row *row = &step->row[i];

			if (row->pass.history == history && cell_ids_are(cell, row) &&
			    was_told(cell, row))
				return true;
		}
	return false;
}

bool cell_is_told(const struct cell *cell)
{
	const struct sim_config *config = &cell->sim->config;
	bool torn_maps = config->map_spans < SIM_SPANS && cell->sim->gaps;
	const struct sim_row *rows[ROWS_TOLD];

	for (uint32_t attempt = 0; attempt <= cell->request->attempts; attempt++) {
		uint32_t count = rows_told(cell, (int32_t)attempt, false, rows);

		for (uint32_t i = 0; i < count; i++)
			if (cell_ids_are(cell, rows[i]))
				return true;
	}
	/* Where there was no memory for the position when its first pass came, it has a later one. */
	return (config->late_steps || config->max_bytes || config->max_keys || torn_maps ||
		cell->request->given > 1 || cell->given->info.flags & R3RING_ASSEMBLED_EVICTED) &&
	       was_given(cell);
}
