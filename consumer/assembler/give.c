/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is ready becomes an assembled one: layers, length and accounts. */
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/assembled.h"
#include "consumer/assembler/assembler.h"
#include "consumer/layers.h"

/* ---- passes ------------------------------------------------------------- */

static struct pass *pass_of(struct r3ring_assembled *assembled, uint16_t number)
{
	uint32_t place = assembled->passes;
	struct pass *pass = assembled->pass;

	for (uint32_t i = 0; i < assembled->passes; i++)
		if (pass[i].number == number)
			return &pass[i];
	pass = realloc(pass, (assembled->passes + 1) * sizeof(*pass));
	if (!pass)
		return NULL;
	assembled->pass = pass;
	while (place > 0 && pass[place - 1].number > number)
		place--;
	memmove(&pass[place + 1], &pass[place], (assembled->passes - place) * sizeof(*pass));
	assembled->passes++;
	pass[place] = (struct pass){.number = number, .kept = R3RING_UNKNOWN_U32};
	return &pass[place];
}

static int pass_add(const struct r3ring_assembler *assembler, struct r3ring_assembled *assembled,
		    const struct part *part, const struct attempt *attempt)
{
	struct pass *pass = pass_of(assembled, attempt->number);

	if (!pass)
		return -1;
	if (attempt->prompt > pass->prompt)
		pass->prompt = attempt->prompt;
	if (attempt->accepted != R3RING_UNKNOWN_U32 &&
	    (pass->kept == R3RING_UNKNOWN_U32 || attempt->accepted > pass->kept))
		pass->kept = attempt->accepted;
	pass->unsure |= kept_by_engine(assembler, part, attempt->number) == R3RING_UNKNOWN_U32;
	return 0;
}

static uint8_t cause_of_open_end(const struct r3ring_assembled *assembled, const struct pass *pass)
{
	if (assembled->counts)
		return 0;
	if (pass_lost_end(assembled, pass))
		return R3RING_MISSING_GAP;
	return pass_left_open(assembled, pass) ? R3RING_MISSING_SPANS : 0;
}

/* That no attempt throws away: the least that one was told to be fed. */
static uint32_t first_prompt(const struct r3ring_assembled *assembled)
{
	uint32_t least = R3RING_UNKNOWN_U32;

	for (uint32_t i = 0; i < assembled->passes; i++)
		if (assembled->pass[i].prompt && assembled->pass[i].prompt < least)
			least = assembled->pass[i].prompt;
	return least == R3RING_UNKNOWN_U32 ? 0 : least;
}

/* Tokens that a later attempt did not begin with, or did not keep, were thrown away, whichever attempt
 * had sampled them; and may have been where nobody told how many that one kept. */
static void passes_limit(struct r3ring_assembled *assembled)
{
	uint32_t most = R3RING_UNKNOWN_U32, sure = R3RING_UNKNOWN_U32;
	uint8_t doubt = 0;

	for (uint32_t i = assembled->passes; i-- > 0;) {
		struct pass *pass = &assembled->pass[i];

		pass->most = most;
		pass->sure = sure;
		pass->doubt = doubt;
		if (i + 1 < assembled->passes)
			pass->cut_off = cause_of_open_end(assembled, pass);
		if (pass->unsure && pass->cut_off)
			doubt = pass->cut_off;
		else if (i && !assembled->counts && pass->number != pass[-1].number + 1u)
			doubt = R3RING_MISSING_GAP; /* by one that nobody heard of */
		if (doubt)
			sure = first_prompt(assembled);
		if (!pass->unsure && pass->kept < most)
			most = pass->kept;
		if (assembled->counts && pass->prompt && pass->prompt < most)
			most = pass->prompt;
	}
}

/* What the next attempt was fed as its prompt is what was kept of this one; where that is
 * not known, it was its own prompt at least. @next: the attempt behind it, NULL where it is not known. */
static void pass_join(struct pass *pass, const struct pass *next)
{
	uint32_t least = pass->unsure ? pass->prompt : pass->kept;

	if (pass->kept != R3RING_UNKNOWN_U32 && pass->kept > least)
		least = pass->kept;
	if (next && next->prompt > least)
		least = next->prompt;
	pass->sampled = least;
	pass->kept = least < pass->most ? least : pass->most;
}

static void passes_join(struct r3ring_assembled *assembled)
{
	uint32_t number = 0;

	passes_limit(assembled);
	for (uint32_t i = 0; i < assembled->passes; i++) {
		struct pass *pass = &assembled->pass[i];

		pass->orphan = pass->number != number;
		number = pass->number + 1u;
		/* Unless it may have thrown some away. */
		if (i && pass[-1].kept > pass->prompt && !(pass->unsure && pass->cut_off))
			pass->prompt = pass[-1].kept;
		if (i + 1 < assembled->passes)
			pass_join(pass, pass[1].number == number ? &pass[1] : NULL);
		else if (pass->unsure)
			pass->kept = R3RING_UNKNOWN_U32;
	}
	if (assembled->passes)
		assembled->pass[assembled->passes - 1].sampled =
			assembled->pass[assembled->passes - 1].kept;
}

/* Channels that knew the request may know different things of an attempt. */
int assembled_find_passes(const struct r3ring_assembler *assembler,
			  struct r3ring_assembled *assembled)
{
	assembled->passes = 0;
	for (const struct part *part = assembled->request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++)
			if (pass_add(assembler, assembled, part, part->attempt[i]) < 0)
				return -1;
	assembled->counts = prompts_count(assembled);
	passes_join(assembled);
	return 0;
}

/* ---- layers ------------------------------------------------------------- */

static int map_add(struct r3ring_assembled *assembled, const struct row_pool *pool)
{
	struct layer_map *map = realloc(assembled->map, (assembled->maps + 1) * sizeof(*map));

	if (!map)
		return -1;
	assembled->map = map;
	map[assembled->maps] = (struct layer_map){.pool = pool};
	assembled->maps++;
	return layers_add(&assembled->layer, &assembled->layers, pool->layer, pool->layers);
}

static bool map_known(const struct r3ring_assembled *assembled, const struct row_pool *pool)
{
	for (uint32_t i = 0; i < assembled->maps; i++)
		if (assembled->map[i].pool == pool)
			return true;
	return false;
}

/* All schemas that the request's channels had. */
static int maps_find(struct r3ring_assembler *assembler, struct r3ring_assembled *assembled)
{
	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct row_pool *pool = assembler->channel[part->channel]->pools;

		for (; pool; pool = pool->next)
			if (!map_known(assembled, pool) && map_add(assembled, pool) < 0)
				return -1;
	}
	return 0;
}

static int maps_fill(struct r3ring_assembled *assembled)
{
	layers_sort(assembled->layer, assembled->layers);
	for (uint32_t i = 0; i < assembled->maps; i++) {
		struct layer_map *map = &assembled->map[i];

		map->to_row = malloc((assembled->layers + 1) * sizeof(*map->to_row));
		if (!map->to_row)
			return -1;
		map->same = map->pool->layers == assembled->layers;
		for (uint32_t layer = 0; layer < assembled->layers; layer++) {
			uint32_t j = layers_find(map->pool->layer, map->pool->layers,
						 &assembled->layer[layer], layer);

			map->to_row[layer] = j < map->pool->layers ? (uint16_t)j : LAYER_ELSEWHERE;
			map->same &= map->to_row[layer] == layer;
		}
	}
	return 0;
}

/* ---- length and accounts ------------------------------------------------ */

static uint32_t last_position(const struct request *request)
{
	uint32_t end = 0;

	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++)
			if (part->attempt[i]->positions > end)
				end = part->attempt[i]->positions;
	return end;
}

/* A later attempt may count what the first one sampled. */
static uint32_t prompt_of(const struct r3ring_assembled *assembled)
{
	const struct pass *first = assembled->pass;

	return first && first->number == 0 && first->prompt ? first->prompt : R3RING_UNKNOWN_U32;
}

void assembled_find_length(const struct r3ring_assembler *assembler,
			   struct r3ring_assembled *assembled)
{
	struct r3ring_assembled_info *info = &assembled->info;
	const struct pass *last = assembled->passes ? &assembled->pass[assembled->passes - 1]
						    : NULL;

	if (last && last->kept != R3RING_UNKNOWN_U32) {
		info->tokens = last->kept;
	} else {
		info->tokens = last_position(assembled->request);
		info->flags |= R3RING_ASSEMBLED_LENGTH_GUESSED;
	}
	if (assembled->request->cut || info->tokens > assembler->options.max_tokens)
		info->flags |= R3RING_ASSEMBLED_CUT;
	if (info->tokens > assembler->options.max_tokens)
		info->tokens = assembler->options.max_tokens;
	info->prompt_tokens = prompt_of(assembled);
}

static void info_fill(struct r3ring_assembled *assembled, const struct r3ring_assembler *assembler,
		      uint32_t flags)
{
	struct r3ring_assembled_info *info = &assembled->info;
	const struct request *request = assembled->request;

	info->flags = flags;
	info->id = request->text[0];
	info->session = request->text[1];
	info->turn = request->text[2];
	info->sample = request->text[3];
	info->model = assembler->model;
	info->experts = assembler->experts;
	info->top_k = assembler->top_k;
	info->attempts = assembled->passes;
	info->layers = (uint16_t)assembled->layers;
	info->layer = assembled->layer;
	assembled_find_length(assembler, assembled);
	assembled_count(assembled);
	if (!assembled->mixed)
		return;
	info->flags |= R3RING_ASSEMBLED_MIXED;
	for (int i = 0; i < 2; i++)
		info->mixed_by[i] = assembler->channel[assembled->mixed_by[i]]->name;
}

/* A row that several hold counts for each. */
static uint64_t attempt_bytes(const struct attempt *attempt)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < attempt->positions; i++)
		if (attempt->row[i])
			bytes += row_bytes(attempt->row[i]);
	for (uint32_t i = 0; i < attempt->recomputed; i++)
		if (attempt->newest[i])
			bytes += row_bytes(attempt->newest[i]);
	for (uint32_t i = 0; i < attempt->contradictions; i++)
		bytes += row_bytes(attempt->contradiction[i].row);
	return bytes;
}

static uint64_t bytes_of(const struct request *request)
{
	uint64_t bytes = request->bytes;

	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++)
			bytes += attempt_bytes(part->attempt[i]);
	return bytes;
}

/* Of all but the request. */
static uint64_t own_bytes(const struct r3ring_assembled *assembled)
{
	return heap_bytes(sizeof(*assembled)) +
	       heap_bytes(assembled->passes * sizeof(*assembled->pass)) +
	       heap_bytes(assembled->layers * sizeof(*assembled->layer)) +
	       heap_bytes(assembled->maps * sizeof(*assembled->map)) +
	       assembled->maps *
		       heap_bytes((assembled->layers + 1) * sizeof(*assembled->map->to_row));
}

/* All but the request. */
static void assembled_free(struct r3ring_assembled *assembled)
{
	for (uint32_t i = 0; i < assembled->maps; i++)
		free(assembled->map[i].to_row);
	free(assembled->map);
	free(assembled->layer);
	free(assembled->pass);
	free(assembled);
}

struct r3ring_assembled *assembled_make(struct r3ring_assembler *assembler, struct request *request,
					uint32_t flags)
{
	struct r3ring_assembled *assembled = calloc(1, sizeof(*assembled));

	if (!assembled)
		return NULL;
	assembled->assembler = assembler;
	assembled->request = request;
	assembled->policy = assembler->options.policy;
	assembled->joined = assembler->options.min_ends > 0;
	if (assembled_find_passes(assembler, assembled) < 0 ||
	    maps_find(assembler, assembled) < 0 || maps_fill(assembled) < 0) {
		assembled_free(assembled);
		return NULL;
	}
	strangers_find(assembler, assembled);
	assembled->lacks_shard = shard_is_unheard(assembled);
	info_fill(assembled, assembler, flags);
	return assembled;
}

void request_give(struct r3ring_assembler *assembler, struct request *request, uint32_t flags)
{
	struct r3ring_assembled *assembled;

	request_trim(assembler, request);
	assembled = assembled_make(assembler, request, flags);
	if (!assembled) {
		request_free(request);
		return;
	}
	assembled->bytes_own = own_bytes(assembled);
	assembled->bytes = bytes_of(request) + assembled->bytes_own;
	assembler->memory.held += assembled->bytes_own;
	assembler->memory.given += assembled->bytes;
	if (assembler->given_last)
		assembler->given_last->next = assembled;
	else
		assembler->given_first = assembled;
	assembler->given_last = assembled;
	assembler->stats.requests_given++;
}

struct r3ring_assembled *r3ring_assembler_take(struct r3ring_assembler *assembler)
{
	struct r3ring_assembled *assembled = assembler->given_first;

	if (!assembled)
		return NULL;
	assembler->given_first = assembled->next;
	if (!assembled->next)
		assembler->given_last = NULL;
	assembled->next = NULL;
	return assembled;
}

void r3ring_assembled_free(struct r3ring_assembled *assembled)
{
	if (!assembled)
		return;
	if (!assembled->looked) {
		assembled->request->memory->given -= assembled->bytes;
		assembled->request->memory->held -= assembled->bytes_own;
		request_free(assembled->request);
	}
	assembled_free(assembled);
}
