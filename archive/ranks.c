/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/ranks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rank {
	uint16_t index[ARCHIVE_RANK_LEVELS];
};

struct archive_engine {
	char instance[R3RING_INSTANCE_MAX + 1];
	uint16_t size[ARCHIVE_RANK_LEVELS];
	struct rank *rank; /* [ranks] that are there, in order */
	uint32_t ranks;
};

void archive_ranks_free(struct archive_ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->engines; i++)
		free(ranks->engine[i].rank);
	free(ranks->engine);
	*ranks = (struct archive_ranks){0};
}

/* ---- those that are there ------------------------------------------------ */

static struct archive_engine *engine_of(struct archive_ranks *ranks,
					const struct archive_engine *which)
{
	struct archive_engine *grown;

	for (uint32_t i = 0; i < ranks->engines; i++)
		if (!strcmp(ranks->engine[i].instance, which->instance) &&
		    !memcmp(ranks->engine[i].size, which->size, sizeof(which->size)))
			return &ranks->engine[i];
	grown = reallocarray(ranks->engine, ranks->engines + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	ranks->engine = grown;
	grown[ranks->engines] = *which;
	return &grown[ranks->engines++];
}

static int compare(const struct rank *one, const struct rank *other)
{
	for (int level = 0; level < ARCHIVE_RANK_LEVELS; level++)
		if (one->index[level] != other->index[level])
			return one->index[level] < other->index[level] ? -1 : 1;
	return 0;
}

static int add_rank(struct archive_engine *engine, const struct rank *rank)
{
	struct rank *grown;
	uint32_t at = 0;

	while (at < engine->ranks && compare(&engine->rank[at], rank) < 0)
		at++;
	if (at < engine->ranks && !compare(&engine->rank[at], rank))
		return 0;
	grown = reallocarray(engine->rank, engine->ranks + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	engine->rank = grown;
	memmove(grown + at + 1, grown + at, (engine->ranks - at) * sizeof(*grown));
	grown[at] = *rank;
	engine->ranks++;
	return 0;
}

static bool is_draft(const char *channel)
{
	const char *end = strrchr(channel, '.');

	return end && !strcmp(end, ".draft");
}

int archive_ranks_note(struct archive_ranks *ranks, const char *channel,
		       const struct r3ring_schema_record *schema)
{
	const struct r3ring_coordinate at[ARCHIVE_RANK_LEVELS] = {schema->rank.dp, schema->rank.pp,
								  schema->rank.sp, schema->rank.cp};
	struct archive_engine which = {0}, *engine;
	struct rank rank;

	if (is_draft(channel))
		return 0;
	snprintf(which.instance, sizeof(which.instance), "%.*s", (int)strcspn(channel, "/"),
		 channel);
	for (int level = 0; level < ARCHIVE_RANK_LEVELS; level++) {
		which.size[level] = at[level].size ? at[level].size : 1;
		rank.index[level] = at[level].index;
	}
	engine = engine_of(ranks, &which);
	return engine ? add_rank(engine, &rank) : -ENOMEM;
}

/* ---- those that are not -------------------------------------------------- */

static void tell(struct archive_absent_ranks *absent, const struct archive_engine *engine,
		 uint32_t level, const struct rank *part_of, uint32_t index)
{
	struct archive_absent_rank *rank = &absent->rank[absent->told++];

	*rank = (struct archive_absent_rank){.level = level};
	memcpy(rank->instance, engine->instance, sizeof(rank->instance));
	memcpy(rank->index, part_of->index, sizeof(rank->index));
	memcpy(rank->size, engine->size, sizeof(rank->size));
	rank->index[level] = (uint16_t)index;
}

/* Where those that have the index of @level in common with the one @at end. */
static uint32_t run_end(const struct archive_engine *engine, uint32_t at, uint32_t end,
			uint32_t level)
{
	const uint16_t index = engine->rank[at].index[level];

	while (at < end && engine->rank[at].index[level] == index)
		at++;
	return at;
}

/* Of ranks [at, end), which are the parts of one of the level above. */
static void count(const struct archive_engine *engine, uint32_t level, uint32_t at, uint32_t end,
		  struct archive_absent_ranks *absent)
{
	const struct rank part_of = engine->rank[at];
	uint32_t next = 0;

	while (next < engine->size[level]) {
		const uint32_t there = at < end ? engine->rank[at].index[level]
						: engine->size[level];

		absent->count += there - next;
		absent->parts += level > ARCHIVE_RANK_DP ? there - next : 0;
		for (; next < there && absent->told < ARCHIVE_RANKS_TOLD; next++)
			tell(absent, engine, level, &part_of, next);
		next = there + 1;
		at = at < end ? run_end(engine, at, end, level) : end;
	}
}

static void count_parts(const struct archive_engine *engine, uint32_t level, uint32_t at,
			uint32_t end, struct archive_absent_ranks *absent)
{
	for (uint32_t to; at < end; at = to) {
		to = end;
		for (uint32_t above = 0; above < level; above++)
			to = run_end(engine, at, to, above);
		count(engine, level, at, to, absent);
	}
}

void archive_ranks_absent(const struct archive_ranks *ranks, struct archive_absent_ranks *absent)
{
	*absent = (struct archive_absent_ranks){0};
	for (uint32_t i = 0; i < ranks->engines; i++)
		for (uint32_t level = 0; level < ARCHIVE_RANK_LEVELS; level++)
			count_parts(&ranks->engine[i], level, 0, ranks->engine[i].ranks, absent);
}

/* ---- in words ------------------------------------------------------------ */

void archive_absent_rank_text(char text[ARCHIVE_RANK_TEXT], const struct archive_absent_rank *rank)
{
	static const char *const names[ARCHIVE_RANK_LEVELS] = {
		"data-parallel rank", "pipeline stage", "sequence shard", "context shard"};
	size_t used = 0;

	for (uint32_t level = rank->level + 1; level-- > 0;)
		if (level == rank->level || rank->size[level] > 1)
			used += (size_t)snprintf(text + used, ARCHIVE_RANK_TEXT - used,
						 "%s%s %u of %u", used ? " of " : "", names[level],
						 rank->index[level], rank->size[level]);
	snprintf(text + used, ARCHIVE_RANK_TEXT - used, ", counted from 0, of %s", rank->instance);
}
