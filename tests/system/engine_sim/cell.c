/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cell that came out, against the passes over its token and what was delivered of
 * them: true or missing, never wrong; and not missing where it was delivered.
 */
#include "tests/system/engine_sim/passes.h"

struct cell {
	struct sim *sim;
	const struct sim_given *given;
	const struct sim_request *request;
	uint32_t position, layer;
	const uint16_t *ids;
	uint8_t valid, cause;
	bool known;
	bool contradicted;
};

static bool ids_are(const struct cell *cell, const struct sim_row *row)
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

/* Whether readers were told that its engine ended the attempt before the token, and another
 * instance went on: by its own end, or by what the other sampled from there on. What it ran
 * past its end is nobody's. Of what was evicted it may not have been told yet. */
static bool is_cut(const struct cell *cell, const struct sim_life *life)
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

/* Whether the life's engine ran the token past its end, and no reader can know that: its end
 * was lost, and how much the other instance kept. Who is given such a row is told that not all
 * ends were heard. */
static bool is_past_unheard_end(const struct cell *cell, const struct sim_life *life)
{
	return cell->sim->config.disaggregated && cell->position >= life->kept &&
	       !is_cut(cell, life) && cell->given->info.flags;
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

			if (!seen || seen->known != SIM_ROW || is_cut(cell, life) ||
			    (counting && cell->position >= life->kept) ||
			    cell->layer < channel->first_layer ||
			    cell->layer >= channel->first_layer + channel->layers)
				continue;
			if (sim_cell_told(sim, channel, seen->row, cell->layer))
				rows[count++] = seen->row;
			if (seen->other && sim_cell_told(sim, channel, seen->other, cell->layer))
				rows[count++] = seen->other;
		}
	}
	return count;
}

/*
 * Whether a reader has a pass that must be taken for an earlier one than the pass that counts:
 * of the same attempt by another engine, where it is no first one, but what came before it was
 * lost; or one that lies past its engine's end, unheard of. Nobody can tell the two apart then.
 */
static bool seems_earlier(const struct cell *cell, const struct truth *truth)
{
	for (uint32_t i = 0; i < cell->request->lives && truth->passes; i++) {
		const struct sim_life *life = cell->request->life[i];

		for (uint32_t c = 0; c < cell->sim->channels; c++) {
			const struct sim_seen *seen = life->seen[c] ? &life->seen[c][cell->position]
								    : NULL;

			if (!seen || seen->known != SIM_ROW || is_cut(cell, life))
				continue;
			if (life->attempt != truth->attempt && is_past_unheard_end(cell, life))
				return true;
			if (life->attempt == truth->attempt &&
			    life->engine != truth->pass[0]->step->engine &&
			    sim_counts_more(cell->sim, seen->row, truth->pass[0]))
				return true;
		}
	}
	return false;
}

static void find_known(struct cell *cell, const struct truth *truth)
{
	const struct sim_row *rows[2 * SIM_CHANNELS];
	uint32_t count = rows_told(cell, truth->attempt, true, rows);

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < truth->passes; j++)
			cell->known |= same_pass(rows[i], truth->pass[j]);
		for (uint32_t j = 0; j < i; j++)
			cell->contradicted |= contradict(cell, rows[i], rows[j]) && truth->passes &&
					      rows[i]->pass.weights == truth->pass[0]->pass.weights;
	}
}

/* In whatever attempt that may stand in. */
static bool is_contradicted(const struct cell *cell)
{
	const struct sim_row *rows[2 * SIM_CHANNELS];

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

/* What was given when it was evicted later passes may hide from the account: it was right to
 * call it a conflict where both of the passes were told. */
static bool passes_contradict(const struct cell *cell, const struct truth *truth)
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

			if (row->pass.history == history && ids_are(cell, row) &&
			    was_told(cell, row))
				return true;
		}
	return false;
}

/* Whether any reader has these ids, of whatever attempt. The account leaves out spans that came
 * too late for their step, and goes on with a request that was given before its end and is
 * begun again: there they must have been given to it at all. */
static bool is_told(const struct cell *cell)
{
	const struct sim_row *rows[2 * SIM_CHANNELS];

	for (uint32_t attempt = 0; attempt <= cell->request->attempts; attempt++) {
		uint32_t count = rows_told(cell, (int32_t)attempt, false, rows);

		for (uint32_t i = 0; i < count; i++)
			if (ids_are(cell, rows[i]))
				return true;
	}
	return (cell->sim->config.late_steps || cell->request->given > 1 ||
		cell->given->info.flags & R3RING_ASSEMBLED_EVICTED) &&
	       was_given(cell);
}

static bool is_pass(const struct cell *cell, const struct truth *truth, int32_t attempt)
{
	struct passes passes = {.truth = truth, .attempt = attempt};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (ids_are(cell, row) && !is_cut(cell, sim_passes_life(&passes)))
			return true;
	return false;
}

/* Of an engine that ran it past its end, where nobody can know that. */
static bool is_past_end(const struct cell *cell, const struct truth *truth)
{
	struct passes passes = {.truth = truth, .attempt = -1};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (ids_are(cell, row) && is_past_unheard_end(cell, sim_passes_life(&passes)))
			return true;
	return false;
}

/* Of the attempt that counts: a contradiction, or of an engine that ran it as well. */
static bool is_other_pass(const struct cell *cell, const struct truth *truth)
{
	struct passes passes = {.truth = truth, .attempt = truth->attempt};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (ids_are(cell, row) && !is_cut(cell, sim_passes_life(&passes)) &&
		    (!truth->passes || row->pass.weights == truth->pass[0]->pass.weights ||
		     row->step->engine != truth->pass[0]->step->engine))
			return true;
	return false;
}

/* Of a pass that nobody heard of nobody can tell that a later one under new weights, in the
 * same attempt, is not the first. Its weights are told. */
static bool spans_may_be_lost(const struct sim *sim)
{
	const struct sim_config *config = &sim->config;

	return config->gap || config->unheard || config->never_late || config->late_reader ||
	       config->engine_dies || config->daemon_dies || config->real || config->max_bytes ||
	       config->late_steps;
}

/* Ids of another pass that are no lie where the one that counts was lost. */
static bool may_stand_in(const struct cell *cell, const struct truth *truth)
{
	bool latest = cell->sim->config.policy == R3RING_ROWS_LATEST;

	if (cell->known)
		return false;
	/* What ran past the stop, or was thrown away, where nobody said where that is. */
	if (cell->given->info.flags & R3RING_ASSEMBLED_LENGTH_GUESSED &&
	    cell->position >= cell->given->info.prompt_tokens && is_pass(cell, truth, -1))
		return true;
	if (truth->attempt < 0)
		return false;
	if (is_other_pass(cell, truth) || is_past_end(cell, truth))
		return true;
	if (spans_may_be_lost(cell->sim) && is_pass(cell, truth, truth->attempt))
		return true;
	if (!latest && !truth->external &&
	    sim_sampled_behind(cell->request, (uint32_t)truth->attempt, cell->position))
		return false;
	return is_pass(cell, truth, -1);
}

/* A block that was loaded from elsewhere unseen has the hash of one that was run here: the
 * same tokens, under whatever weights. */
static bool is_same_content(const struct cell *cell, const struct truth *truth)
{
	const uint64_t *history = cell->request->history;
	const struct sim_engine *engine = &cell->sim->engine[cell->sim->engines - 1];
	struct sim_row row = {.pass = {.history = history[cell->position]}};

	if (cell->sim->config.key_kind != R3RING_KEYS_BLOCK_HASH || !truth->external ||
	    !spans_may_be_lost(cell->sim))
		return false;
	for (row.pass.weights = 1; row.pass.weights <= engine->weights; row.pass.weights++)
		if (ids_are(cell, &row))
			return true;
	return false;
}

static void complain(const struct cell *cell, const struct truth *truth, const char *what)
{
	sim_fault(cell->sim,
		  "%s, position %u, layer %u: %s (attempt %d and weights %llu count, said %u and "
		  "%llu; cause %s)",
		  cell->request->id, cell->position, cell->layer, what, truth->attempt,
		  truth->passes ? (unsigned long long)truth->pass[0]->pass.weights : 0,
		  cell->given->attempt[cell->position],
		  (unsigned long long)cell->given->weights[cell->position],
		  r3ring_missing_cause_name(cell->cause));
}

static bool came_from_elsewhere(const struct cell *cell, bool cache)
{
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];
		const struct sim_fill *fill = &life->fill[cell->position];

		if (fill->external || (cache && fill->pass && fill->pass->life != life))
			return true;
	}
	return false;
}

static bool is_strict(const struct cell *cell)
{
	const struct sim_config *config = &cell->sim->config;

	if (config->max_bytes || config->late_steps || cell->request->given > 1)
		return false;
	if (config->max_keys && came_from_elsewhere(cell, true))
		return false;
	return !(cell->given->info.flags &
		 (R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_EVICTED));
}

/* What was kept of an attempt its end says, or the next one's prompt. Where neither was heard
 * it is its own prompt, but what more? */
static bool kept_is_known(const struct cell *cell, const struct truth *truth)
{
	bool named = false, sampled = false, told = false;

	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		named |= life->attempt == truth->attempt + 1 && life->ever_named;
		sampled |= life->attempt == truth->attempt && cell->position >= life->prompt;
		told |= life->attempt == truth->attempt && life->end_heard &&
			life->told_kept != R3RING_UNKNOWN_U32 && cell->position < life->told_kept;
	}
	return truth->attempt == (int32_t)cell->request->attempts || named || told || !sampled;
}

static void check_valid(const struct cell *cell, const struct truth *truth)
{
	const struct sim_row *right = NULL;

	for (uint32_t i = 0; i < truth->passes; i++)
		if (ids_are(cell, truth->pass[i]) &&
		    (!right ||
		     cell->given->weights[cell->position] == truth->pass[i]->pass.weights))
			right = truth->pass[i];
	if (cell->contradicted && is_strict(cell))
		complain(cell, truth, "valid, but two passes contradict each other");
	else if (!right && !may_stand_in(cell, truth) && !is_same_content(cell, truth))
		complain(cell, truth, "WRONG");
	else if (!is_told(cell))
		complain(cell, truth, "valid, though nobody can know it");
	else if (right && cell->given->attempt[cell->position] != truth->attempt && cell->known)
		complain(cell, truth, "of another attempt");
	else if (right && cell->known &&
		 cell->given->weights[cell->position] != right->pass.weights)
		complain(cell, truth, "of other weights");
}

/* ---- why it is missing -------------------------------------------------- */

static bool is_bad(const struct cell *cell, const struct truth *truth)
{
	struct passes passes = {.truth = truth, .attempt = -1};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (sim_row_is_bad(&cell->sim->config, row, cell->layer))
			return true;
	return false;
}

/* Whether some reader was never told how many of the attempt's drafts were accepted there. */
static bool accepted_is_unknown(const struct cell *cell, uint16_t attempt)
{
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		if (life->attempt != attempt || is_cut(cell, life))
			continue;
		for (uint32_t c = 0; c < cell->sim->channels; c++)
			if (life->seen[c] && life->seen[c][cell->position].known == SIM_NO_SPANS)
				return true;
	}
	return false;
}

/* A rank that has the layer never knew of the attempt that counts, so that nothing says that
 * anything was run. */
static bool is_unheard_of(const struct cell *cell, const struct truth *truth)
{
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		for (uint32_t c = 0; c < life->engine->channels; c++) {
			const struct sim_channel *channel =
				&cell->sim->channel[life->engine->first_channel + c];

			if (life->attempt == truth->attempt && !channel->copy && !channel->draft &&
			    cell->layer >= channel->first_layer &&
			    cell->layer < channel->first_layer + channel->layers &&
			    !life->heard_of[channel->index])
				return true;
		}
	}
	return false;
}

/* The attempt that is said did not run the token, which is true, and is said only because an
 * engine seems to have, past an end and with drafts of which nobody heard. */
static bool is_said_for_drafts(const struct cell *cell)
{
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		if (life->attempt != cell->given->attempt[cell->position] ||
		    !is_past_unheard_end(cell, life))
			continue;
		for (uint32_t c = 0; c < cell->sim->channels; c++)
			if (life->seen[c] && life->seen[c][cell->position].known == SIM_NO_SPANS)
				return true;
	}
	return false;
}

static bool cause_is_true(const struct cell *cell, const struct truth *truth)
{
	const struct sim *sim = cell->sim;

	/* What a real daemon loses it has causes of its own for. */
	if (sim->config.real && cell->cause < R3RING_CAUSE_COUNT &&
	    cell->cause != R3RING_CAUSE_CONFLICT)
		return true;
	switch (cell->cause) {
	case R3RING_CAUSE_CONFLICT:
		return is_contradicted(cell) ||
		       (cell->given->info.flags & R3RING_ASSEMBLED_EVICTED &&
			passes_contradict(cell, truth));
	case R3RING_CAUSE_TOO_FEW_ROWS:
		return sim->config.partial;
	case R3RING_CAUSE_RING_FULL:
		return sim->config.dropped;
	case R3RING_CAUSE_QUEUE_FULL:
		return sim->config.unheard;
	case R3RING_MISSING_GAP:
		return sim->gaps || sim->losses || sim->config.max_bytes;
	case R3RING_MISSING_EXTERNAL:
		return came_from_elsewhere(cell, false);
	case R3RING_MISSING_UNKNOWN_KEY:
		return came_from_elsewhere(cell, true);
	case R3RING_MISSING_NO_EXPERT:
		/* A hash may stand for an older pass over the same tokens. */
		return is_bad(cell, truth) ||
		       (sim->config.bad && sim->config.key_kind == R3RING_KEYS_BLOCK_HASH);
	case R3RING_MISSING_NOT_RUN:
		return truth->attempt < 0 || cell->request->given > 1 ||
		       is_unheard_of(cell, truth) || is_said_for_drafts(cell);
	case R3RING_MISSING_NOT_FED:
		return cell->position + 1 == cell->given->info.tokens;
	case R3RING_MISSING_SPANS:
		return sim->config.never_late || sim->gaps || sim->losses || sim->config.late_steps;
	case R3RING_MISSING_EVICTED:
		return cell->given->info.flags & R3RING_ASSEMBLED_EVICTED || sim->config.max_bytes;
	default:
		return false;
	}
}

/* What an attempt that nobody heard of had run nobody can tell. */
static bool attempts_before_are_known(const struct cell *cell, const struct truth *truth)
{
	for (int32_t attempt = 0; attempt < truth->attempt; attempt++) {
		bool named = false;

		for (uint32_t i = 0; i < cell->request->lives; i++) {
			const struct sim_life *life = cell->request->life[i];

			if (life->attempt != attempt)
				continue;
			named |= life->ever_named;
		}
		/* Nor how many of its drafts were accepted. */
		if (!named || accepted_is_unknown(cell, (uint16_t)attempt))
			return false;
	}
	return true;
}

/* Why the end of the step that counts says the layer is missing; 0: it does not, or who knows. */
static uint8_t cause_told(const struct cell *cell, const struct truth *truth)
{
	uint8_t cause = 0;

	for (uint32_t i = 0; i < cell->request->lives && truth->passes == 1; i++) {
		const struct sim_life *life = cell->request->life[i];

		for (uint32_t c = 0; c < cell->sim->channels; c++) {
			const struct sim_row *row =
				life->seen[c] ? life->seen[c][cell->position].row : NULL;
			const struct sim_told *told = row ? row->step->told[c] : NULL;

			if (life->attempt == truth->attempt && row == truth->pass[0] && told &&
			    told->cause[cell->layer])
				cause = told->cause[cell->layer];
		}
	}
	return cause;
}

static void check_missing(const struct cell *cell, const struct truth *truth)
{
	for (uint32_t k = 0; k < cell->sim->config.top_k; k++)
		if (cell->ids[k] != R3RING_MISSING) {
			complain(cell, truth, "missing, with ids");
			return;
		}
	if (cell->known && !cell->contradicted)
		complain(cell, truth, "missing, but it was delivered");
	else if (is_strict(cell) && attempts_before_are_known(cell, truth) &&
		 kept_is_known(cell, truth) && !seems_earlier(cell, truth) &&
		 cause_told(cell, truth) && cell->cause != R3RING_CAUSE_CONFLICT &&
		 cell->cause != cause_told(cell, truth))
		complain(cell, truth, "missing, and not for the cause that was told");
	else if (!cause_is_true(cell, truth))
		complain(cell, truth, "missing for a cause that is none");
}

void sim_check_cell(struct sim *sim, const struct sim_given *given, const struct truth *truth,
		    uint32_t position, uint32_t layer)
{
	size_t place = (size_t)position * given->info.layers + layer;
	struct cell cell = {
		.sim = sim,
		.given = given,
		.request = given->request,
		.position = position,
		.layer = layer,
		.ids = given->ids + place * sim->config.top_k,
		.valid = given->valid[place],
		.cause = given->cause[place],
	};

	find_known(&cell, truth);
	cell.known &= is_strict(&cell) && attempts_before_are_known(&cell, truth) &&
		      kept_is_known(&cell, truth) && !seems_earlier(&cell, truth);
	if (cell.valid != (cell.cause == 0))
		complain(&cell, truth, "valid and a cause, or neither");
	else if (cell.valid)
		check_valid(&cell, truth);
	else
		check_missing(&cell, truth);
	sim->figures.cells++;
	sim->figures.valid += cell.valid;
	sim->figures.conflicts += cell.cause == R3RING_CAUSE_CONFLICT;
	sim->figures.causes[cell.cause]++;
}
