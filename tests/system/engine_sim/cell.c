/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cell that came out, against the passes over its token and what was delivered of
 * them: true or missing, never wrong; and not missing where it was delivered.
 */
#include "tests/system/engine_sim/cell.h"

static bool is_pass(const struct cell *cell, const struct truth *truth, int32_t attempt)
{
	struct passes passes = {.truth = truth, .attempt = attempt};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (cell_ids_are(cell, row) && !cell_is_cut(cell, sim_passes_life(&passes)))
			return true;
	return false;
}

/* Of an engine that ran it past its end, where nobody can know that. */
static bool is_past_end(const struct cell *cell, const struct truth *truth)
{
	struct passes passes = {.truth = truth, .attempt = -1};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (cell_ids_are(cell, row) &&
		    cell_is_past_unheard_end(cell, sim_passes_life(&passes)))
			return true;
	return false;
}

/* Of the attempt that counts: a contradiction, or of an engine that ran it as well. */
static bool is_other_pass(const struct cell *cell, const struct truth *truth)
{
	struct passes passes = {.truth = truth, .attempt = truth->attempt};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (cell_ids_are(cell, row) && !cell_is_cut(cell, sim_passes_life(&passes)) &&
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

/* What ran past the stop, or was thrown away, where nobody said where that is; nor did anybody hear
 * of a later attempt. Such a request is told not to be whole. */
static bool is_of_unknown_length(const struct cell *cell, const struct truth *truth)
{
	const bool latest = cell->sim->config.policy == R3RING_ROWS_LATEST;
	const int32_t said = cell->given->attempt[cell->position];
	const uint32_t flags = cell->given->info.flags;
	const uint32_t told = cell->given->info.prompt_tokens;
	const uint32_t prompt = told == R3RING_UNKNOWN_U32 ? cell->request->life[0]->prompt : told;

	if (latest && said < truth->attempt &&
	    flags & (R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_LENGTH_GUESSED |
		     R3RING_ASSEMBLED_EVICTED))
		return is_pass(cell, truth, said);
	return flags & R3RING_ASSEMBLED_LENGTH_GUESSED && cell->position >= prompt &&
	       (latest || truth->attempt < 0 || said <= truth->attempt) && is_pass(cell, truth, -1);
}

/* What a later attempt threw away only after the request had come out, for want of room or at the end, which
 * is told not to be whole. */
static bool was_thrown_away_later(const struct cell *cell, const struct truth *truth)
{
	const uint16_t said = cell->given->attempt[cell->position];

	if (!(cell->given->info.flags & (R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_EVICTED)) ||
	    cell->position < sim_limit_of(cell->request, said))
		return false;
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		if (life->attempt > said && cell->position >= life->kept && life->told_end &&
		    life->told_end <= cell->given->at)
			return false;
	}
	return is_pass(cell, truth, said);
}

/* Ids of another pass that are no lie where the one that counts was lost. One of another attempt
 * is: whoever gives it must know that no attempt before it kept the token. */
static bool may_stand_in(const struct cell *cell, const struct truth *truth)
{
	if (cell->known)
		return false;
	if (is_of_unknown_length(cell, truth) || was_thrown_away_later(cell, truth))
		return true;
	if (truth->attempt < 0)
		return false;
	if (is_other_pass(cell, truth) || is_past_end(cell, truth))
		return true;
	/* What a channel left it tells of again as it is later, in keyframes. */
	return (spans_may_be_lost(cell->sim) || sim_was_left(cell->request)) &&
	       is_pass(cell, truth, truth->attempt);
}

/* A block that was loaded from elsewhere unseen has the hash of one that was run here: the
 * same tokens, under the weights that are said. */
static bool is_same_content(const struct cell *cell, const struct truth *truth)
{
	const uint64_t history = cell->request->history[cell->position];
	const uint64_t weights = cell->given->weights[cell->position];

	if (cell->sim->config.key_kind != R3RING_KEYS_BLOCK_HASH || !truth->external ||
	    !spans_may_be_lost(cell->sim))
		return false;
	for (const struct sim_step *step = cell->sim->steps; step; step = step->next)
		for (uint32_t i = 0; i < step->rows; i++)
			if (step->row[i].pass.history == history &&
			    step->row[i].pass.weights == weights &&
			    cell_ids_are(cell, &step->row[i]))
				return true;
	return false;
}

static void complain(const struct cell *cell, const struct truth *truth, const char *what)
{
	sim_fault(cell->sim,
		  "%s, position %u, layer %u: %s (attempt %d and weights %llu count, said %u and "
		  "%llu; cause %s)",
		  cell->request->name, cell->position, cell->layer, what, truth->attempt,
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

	if (config->max_bytes || config->late_steps || cell->request->given > 1 ||
	    sim_is_unclear(cell->sim, cell->request) ||
	    (config->ids != SIM_IDS_UNIQUE && sim_one_is_mixed(cell->sim, cell->request)))
		return false;
	/* Of two that live at a time the rows of the first are nobody's, whoever finds them later. */
	if ((config->max_keys || config->ids == SIM_IDS_AT_ONCE) && came_from_elsewhere(cell, true))
		return false;
	return !(cell->given->info.flags &
		 (R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_EVICTED));
}

/* What was kept of an attempt its end says, or the next one's prompt. Where neither was heard
 * it is its own prompt, but what more? */
static bool kept_is_known(const struct cell *cell, const struct truth *truth)
{
	bool named = false, sampled = false, told = false;
	const struct kept kept = sim_kept_of(cell->sim, cell->request, truth->attempt);
	uint32_t fed = 0; /* what attempts before are known to have kept */

	for (int32_t attempt = 0; attempt < truth->attempt; attempt++) {
		const uint32_t least = sim_kept_of(cell->sim, cell->request, attempt).least;

		fed = fed > least ? fed : least;
	}
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		named |= life->attempt == truth->attempt + 1 && life->ever_named &&
			 (cell->position < kept.least || !kept.cut_off);
		sampled |= life->attempt == truth->attempt && cell->position >= life->told_prompt &&
			   cell->position >= fed;
		told |= life->attempt == truth->attempt && life->end_heard &&
			life->told_kept != R3RING_UNKNOWN_U32 && cell->position < life->told_kept;
	}
	return truth->attempt == (int32_t)cell->request->attempts || named || told || !sampled;
}

static void check_valid(const struct cell *cell, const struct truth *truth)
{
	const struct sim_row *right = NULL;

	for (uint32_t i = 0; i < truth->passes; i++)
		if (cell_ids_are(cell, truth->pass[i]) &&
		    (!right ||
		     cell->given->weights[cell->position] == truth->pass[i]->pass.weights))
			right = truth->pass[i];
	if (cell->contradicted && is_strict(cell) && !cell_seems_earlier(cell, truth))
		complain(cell, truth, "valid, but two passes contradict each other");
	else if (cell->either && is_strict(cell) && !cell->sim->config.disaggregated &&
		 !cell_seems_earlier(cell, truth))
		complain(cell, truth, "valid, but a cache may have found a pass that was lost");
	else if (!right && sim_seem_one(cell->sim, cell->request))
		return;
	else if (!right && !may_stand_in(cell, truth) && !is_same_content(cell, truth))
		complain(cell, truth, "WRONG");
	else if (!cell_is_told(cell))
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

		if (life->attempt != attempt || cell_is_cut(cell, life))
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
		    !cell_is_past_unheard_end(cell, life))
			continue;
		for (uint32_t c = 0; c < cell->sim->channels; c++)
			if (life->seen[c] && life->seen[c][cell->position].known == SIM_NO_SPANS)
				return true;
	}
	return false;
}

/* Readers heard of all its attempts, but of one rank's last when another's had ended it: that it
 * came out without, and what it was fed with before is not known there. */
static bool came_in_parts(const struct cell *cell)
{
	const struct sim_request *request = cell->request;
	bool moved = false;

	for (uint32_t i = 0; i < request->lives; i++) {
		if (!request->life[i]->ever_named)
			return false;
		moved |= request->life[i]->engine != request->life[0]->engine;
	}
	return moved && cell->sim->config.replicas > 1 && request->given > 1;
}

/* An attempt before the last ended, or must have, without a word of how much was kept. */
static bool end_is_open(const struct cell *cell)
{
	for (uint32_t i = 0; i + 1 < cell->request->lives; i++)
		if (cell->request->life[i]->told_kept == R3RING_UNKNOWN_U32)
			return true;
	return false;
}

/* Whether the attempt was run by an engine of which a rank that has the layer was silent. */
static bool has_silent_rank(const struct cell *cell, const struct sim_life *life)
{
	for (uint32_t i = 0; i < life->engine->channels; i++) {
		const uint32_t c = life->engine->first_channel + i;
		const struct sim_channel *channel = &cell->sim->channel[c];

		if (((cell->given->silent >> c) & 1) && !channel->copy && !channel->draft &&
		    cell->layer >= channel->first_layer &&
		    cell->layer < channel->first_layer + channel->layers)
			return true;
	}
	return false;
}

/* A rank may have run the token of whose channel nobody had heard anything, in the attempt that counts
 * or one before it. */
static bool silent_rank_may_have_run(const struct cell *cell, const struct truth *truth)
{
	for (uint32_t i = 0; i < cell->request->lives; i++) {
		const struct sim_life *life = cell->request->life[i];

		if (life->attempt <= truth->attempt && has_silent_rank(cell, life) &&
		    sim_may_have_run(cell->sim, cell->request, life->attempt, cell->position))
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
		return cell_is_contradicted(cell) ||
		       (cell->given->info.flags & R3RING_ASSEMBLED_EVICTED &&
			cell_passes_contradict(cell, truth));
	case R3RING_CAUSE_TOO_FEW_ROWS:
		return sim->config.partial;
	case R3RING_CAUSE_RING_FULL:
		return sim->config.dropped;
	case R3RING_CAUSE_QUEUE_FULL:
		return sim->config.unheard;
	case R3RING_MISSING_GAP:
		return sim->gaps || sim->losses || sim->config.max_bytes || came_in_parts(cell) ||
		       sim_was_left(cell->request);
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
		       is_unheard_of(cell, truth) || is_said_for_drafts(cell) ||
		       sim_was_left(cell->request);
	case R3RING_MISSING_NOT_FED:
		return cell->position + 1 == cell->given->info.tokens;
	case R3RING_MISSING_SPANS:
		/* Or for want of room nobody waits for them. */
		return sim->config.never_late || sim->gaps || sim->losses ||
		       sim->config.late_steps || sim->config.max_bytes || end_is_open(cell);
	case R3RING_MISSING_EVICTED:
		return cell->given->info.flags & R3RING_ASSEMBLED_EVICTED || sim->config.max_bytes;
	case R3RING_MISSING_OTHER_SHARDS:
		return sim->config.shards > 1 && silent_rank_may_have_run(cell, truth);
	default:
		return false;
	}
}

/* Of other attempts than the one that counts, which would if they had run the token: what one that
 * nobody heard of had run nobody can tell, nor what was run in records that were lost. */
static bool other_attempts_are_known(const struct cell *cell, const struct truth *truth)
{
	const bool latest = cell->sim->config.policy == R3RING_ROWS_LATEST;
	const int32_t first = latest ? truth->attempt + 1 : 0;
	const int32_t end = latest ? (int32_t)cell->request->attempts + 1 : truth->attempt;

	for (int32_t attempt = first; attempt < end; attempt++) {
		bool named = false;

		for (uint32_t i = 0; i < cell->request->lives; i++)
			named |= cell->request->life[i]->attempt == attempt &&
				 cell->request->life[i]->ever_named;
		/* Nor how many of its drafts were accepted. */
		if (!named || accepted_is_unknown(cell, (uint16_t)attempt) ||
		    sim_may_have_run(cell->sim, cell->request, attempt, cell->position))
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

static bool is_certain(const struct cell *cell, const struct truth *truth)
{
	return is_strict(cell) && other_attempts_are_known(cell, truth) &&
	       !sim_may_be_thrown_away(cell->sim, cell->request, truth->attempt, cell->position) &&
	       kept_is_known(cell, truth) && !cell_seems_earlier(cell, truth);
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
	else if (cell->certain && cause_told(cell, truth) && cell->cause != R3RING_CAUSE_CONFLICT &&
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

	cell_find_known(&cell, truth);
	cell.certain = is_certain(&cell, truth);
	cell.known &= cell.certain;
	if (cell.valid != (cell.cause == 0))
		complain(&cell, truth, "valid and a cause, or neither");
	else if (cell.valid)
		check_valid(&cell, truth);
	else if (!sim_is_unclear(sim, given->request))
		check_missing(&cell, truth);
	sim->figures.cells++;
	sim->figures.valid += cell.valid;
	sim->figures.conflicts += cell.cause == R3RING_CAUSE_CONFLICT;
	sim->figures.causes[cell.cause]++;
}
