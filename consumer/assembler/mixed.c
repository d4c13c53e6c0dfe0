/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether channels that were joined by a request's id ran requests of their own. Where `min_ends`
 * joined them their prompts tell, how far they went, and what both ran: of one text the same
 * experts are chosen in nearly all cells, though two machines round, and may put them in another
 * order; of two texts in next to none. Where coordinates did, whether it could be known whose
 * the parts are (candidates.c), and when they ended.
 */
#include "consumer/assembler/assembler.h"
#include "consumer/assembler/choose.h"

static bool differ_much(uint32_t prompt, uint32_t other)
{
	return prompt && other && (prompt > other + 1 || other > prompt + 1);
}

/* The first attempt that both know, or NULL. Later ones begin with what was sampled before, and
 * engines that number their own may each have gone on from another place. */
static const struct attempt *first_shared(const struct part *part, const struct part *other)
{
	for (uint32_t i = 0; i < part->attempts; i++)
		if (part_find_attempt(other, part->attempt[i]->number))
			return part->attempt[i];
	return NULL;
}

/* Whether two parts were run for prompts that cannot be one. An engine that decodes may count the
 * token that the other sampled. */
static bool is_other_prompt(const struct part *part, const struct part *other)
{
	const struct attempt *attempt = first_shared(part, other);

	return attempt &&
	       differ_much(attempt->prompt, part_find_attempt(other, attempt->number)->prompt);
}

/* That it was not ended by the first token, which is all that a prefill is for. */
static bool has_decoded(const struct attempt *attempt)
{
	return attempt->accepted != R3RING_UNKNOWN_U32 && attempt->accepted > attempt->prompt + 1;
}

/* Whether two parts each went on from the prompt of one attempt. */
static bool both_decoded(const struct part *part, const struct part *other)
{
	for (uint32_t i = 0; i < part->attempts; i++) {
		const struct attempt *its = part_find_attempt(other, part->attempt[i]->number);

		if (its && has_decoded(part->attempt[i]) && has_decoded(its))
			return true;
	}
	return false;
}

/* Whether a request had ended on one part, and was begun again on the other. */
static bool went_on_from_its_end(const struct part *part, const struct part *other)
{
	return part_ended_for_good(part) && other->attempts &&
	       other->attempt[other->attempts - 1]->number >
		       part->attempt[part->attempts - 1]->number;
}

static bool are_strangers(const struct r3ring_assembler *assembler, const struct part *part,
			  const struct part *other)
{
	const struct channel *channel = assembler->channel[part->channel];

	if (channels_of_one_engine(channel, assembler->channel[other->channel]))
		return parts_compare(assembler, part, other) != ARE_ONE;
	if (assembler->options.min_ends)
		return is_other_prompt(part, other) || both_decoded(part, other);
	return went_on_from_its_end(part, other) || went_on_from_its_end(other, part);
}

void strangers_note(struct r3ring_assembled *assembled, uint32_t channel, uint32_t other)
{
	if (assembled->mixed)
		return;
	assembled->mixed = true;
	assembled->mixed_by[0] = channel;
	assembled->mixed_by[1] = other;
}

bool strangers_in(const struct r3ring_assembler *assembler, const struct request *request,
		  uint32_t by[2])
{
	const uint32_t *told = request->unclear ? request->unclear_by : request->twin;

	if (request->unclear || (request->has_twin && request->part && request->part->next)) {
		by[0] = told[0];
		by[1] = told[1];
		return true;
	}
	for (const struct part *part = request->part; part; part = part->next)
		for (const struct part *other = part->next; other; other = other->next)
			if (are_strangers(assembler, part, other)) {
				by[0] = part->channel;
				by[1] = other->channel;
				return true;
			}
	return false;
}

void strangers_find(const struct r3ring_assembler *assembler, struct r3ring_assembled *assembled)
{
	uint32_t by[2];

	if (strangers_in(assembler, assembled->request, by))
		strangers_note(assembled, by[0], by[1]);
}

/* Whether an expert of @ids is none of @others. */
static bool is_other_choice(const uint16_t *ids, const uint16_t *others, uint32_t top_k)
{
	for (uint32_t i = 0; i < top_k; i++) {
		uint32_t j = 0;

		while (j < top_k && others[j] != ids[i])
			j++;
		if (j == top_k)
			return true;
	}
	return false;
}

/* The row of a token of the prompt that the part's channel ran for this very request: what a cache
 * had was run for another one, and what is sampled may be another token on each side. */
static const struct row *row_run(const struct part *part, uint16_t number, uint32_t position)
{
	const struct attempt *attempt = part_find_attempt(part, number);

	if (!attempt || position < attempt->found ||
	    (attempt->prompt && position >= attempt->prompt))
		return NULL;
	return attempt_row(attempt, position);
}

/* The ids that a row has of a layer, or NULL. */
static const uint16_t *ids_of(const struct r3ring_assembled *assembled, const struct row *row,
			      uint32_t layer)
{
	const struct layer_map *map = map_of(assembled, row);
	const uint16_t place = map ? map->to_row[layer] : LAYER_ELSEWHERE;

	return place != LAYER_ELSEWHERE && row_cell_valid(row, place) ? row_ids(row, place) : NULL;
}

/* Whether two rows may be of shards of one engine, that ran a token twice. */
static bool may_be_shards(const struct row *row, const struct row *other)
{
	const struct row_pool *pool = row_tile(row)->pool, *its = row_tile(other)->pool;

	return pool->instance == its->instance &&
	       (pool->sp.index != its->sp.index || pool->cp.index != its->cp.index);
}

static void rows_overlap(struct overlap *overlap, const struct r3ring_assembled *assembled,
			 const struct row *row, const struct row *other)
{
	if (row_tile(row)->weight_version != row_tile(other)->weight_version ||
	    may_be_shards(row, other))
		return;
	for (uint32_t layer = 0; layer < assembled->layers; layer++) {
		const uint16_t *ids = ids_of(assembled, row, layer);
		const uint16_t *others = ids_of(assembled, other, layer);

		if (!ids || !others)
			continue;
		overlap->shared++;
		if (!is_other_choice(ids, others, assembled->info.top_k))
			continue;
		if (!overlap->apart++) {
			overlap->by[0] = row_tile(row)->pool->channel;
			overlap->by[1] = row_tile(other)->pool->channel;
		}
	}
}

/* Whether a rank of the part's engine lost something of the request: its first passes may have been there. */
static bool engine_is_torn(const struct r3ring_assembled *assembled, const struct part *part)
{
	const struct r3ring_assembler *assembler = assembled->assembler;
	const struct channel *channel = assembler->channel[part->channel];

	for (uint32_t i = 0; i < assembler->channels; i++) {
		const struct channel *mate = assembler->channel[i];
		const struct part *its = part_on(assembled->request, mate);

		if (channels_share_engine(channel, mate) && (its ? its->gap != 0 : mate->lossy))
			return true;
	}
	return false;
}

void overlap_add(struct overlap *overlap, const struct r3ring_assembled *assembled,
		 const struct chosen *chosen, uint32_t position)
{
	const uint64_t apart = overlap->apart;

	if (chosen->passes < 2)
		return;
	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct row *row = row_run(part, chosen->pass->number, position);

		for (const struct part *other = part->next; row && other; other = other->next) {
			const struct row *its = row_run(other, chosen->pass->number, position);

			if (!its)
				continue;
			rows_overlap(overlap, assembled, row, its);
			overlap->torn = overlap->torn || engine_is_torn(assembled, part) ||
					engine_is_torn(assembled, other);
		}
	}
	overlap->positions += overlap->apart > apart;
}

/* One position alone may be one that was run again, and whose first pass was lost. */
bool overlap_is_mixed(const struct overlap *overlap)
{
	return overlap->apart > overlap->shared / 2 && (overlap->positions > 1 || !overlap->torn);
}
