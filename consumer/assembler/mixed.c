/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether channels that `min_ends` joined by a request's id ran requests of their own. Their
 * prompts tell, and what both ran: of one text the same experts are chosen in nearly all cells,
 * though two machines round, and may put them in another order; of two texts in next to none.
 */
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

bool prompts_differ(const struct request *request)
{
	for (const struct part *part = request->part; part; part = part->next)
		for (const struct part *other = part->next; other; other = other->next)
			if (is_other_prompt(part, other))
				return true;
	return false;
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
		overlap->apart += is_other_choice(ids, others, assembled->info.top_k);
	}
}

void overlap_add(struct overlap *overlap, const struct r3ring_assembled *assembled,
		 const struct chosen *chosen, uint32_t position)
{
	const uint64_t shared = overlap->shared;

	if (chosen->passes < 2)
		return;
	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct row *row = row_run(part, chosen->pass->number, position);

		for (const struct part *other = part->next; row && other; other = other->next) {
			const struct row *its = row_run(other, chosen->pass->number, position);

			if (!its)
				continue;
			rows_overlap(overlap, assembled, row, its);
			overlap->torn |= part->gap || other->gap;
		}
	}
	overlap->positions += overlap->shared > shared;
}

/* One position alone may be one that was run again, and whose first pass was lost. */
bool overlap_is_mixed(const struct overlap *overlap)
{
	return overlap->apart > overlap->shared / 2 && (overlap->positions > 1 || !overlap->torn);
}
