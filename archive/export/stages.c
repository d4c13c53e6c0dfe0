/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/stages.h"

void export_stages_free(struct export_stages *stages)
{
	free(stages->stage);
	*stages = (struct export_stages){0};
}

/* ---- noting ------------------------------------------------------------- */

static bool comes_before(const struct export_stage *one, const struct export_stage *other)
{
	return one->size != other->size ? one->size < other->size : one->index < other->index;
}

static struct export_stage stage_of(const struct r3ring_record *schema)
{
	const struct r3ring_coordinate pp = schema->u.schema.head.rank.pp;
	struct export_stage stage = {pp.index, pp.size ? pp.size : 1, INT32_MAX, -1};

	for (uint32_t i = 0; i < schema->u.schema.head.layers; i++) {
		const struct r3ring_layer_entry *layer = &schema->u.schema.layers[i];

		if (layer->kind == R3RING_LAYER_MTP)
			continue;
		if (layer->layer_id < stage.first)
			stage.first = layer->layer_id;
		if (layer->layer_id > stage.last)
			stage.last = layer->layer_id;
	}
	return stage;
}

int export_stages_note(struct export_stages *stages, const struct r3ring_record *schema)
{
	const struct export_stage stage = stage_of(schema);
	struct export_stage *grown, *there;
	uint32_t at = 0;

	while (at < stages->stages && comes_before(&stages->stage[at], &stage))
		at++;
	there = &stages->stage[at];
	if (at < stages->stages && !comes_before(&stage, there)) {
		there->first = stage.first < there->first ? stage.first : there->first;
		there->last = stage.last > there->last ? stage.last : there->last;
		return 0;
	}
	grown = reallocarray(stages->stage, stages->stages + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	stages->stage = grown;
	memmove(grown + at + 1, grown + at, (stages->stages - at) * sizeof(*grown));
	grown[at] = stage;
	stages->stages++;
	return 0;
}

/* ---- what is there ------------------------------------------------------ */

/* Where the stages of a pipeline of the same size end that begin @at. */
static uint32_t pipeline_end(const struct export_stages *stages, uint32_t at)
{
	const uint16_t size = stages->stage[at].size;

	while (at < stages->stages && stages->stage[at].size == size)
		at++;
	return at;
}

bool export_stages_whole(const struct export_stages *stages)
{
	for (uint32_t at = 0, end; at < stages->stages; at = end) {
		end = pipeline_end(stages, at);
		if (end - at == stages->stage[at].size)
			return true;
	}
	return !stages->stages;
}

bool export_stages_end(const struct export_stages *stages)
{
	for (uint32_t i = 0; i < stages->stages; i++)
		if (stages->stage[i].index + 1u == stages->stage[i].size)
			return true;
	return false;
}

/* Up to where a stage reaches: what lies between it and the next one does not route. */
static int64_t reach(const struct export_stage *stage, const struct export_stage *next)
{
	if (stage->index + 1u == stage->size)
		return INT32_MAX;
	if (next && next->index == stage->index + 1u && next->last >= 0)
		return (int64_t)next->first - 1;
	return stage->last;
}

static bool pipeline_covers(const struct export_stage *stage, uint32_t count, int32_t first,
			    int32_t end)
{
	int64_t layer = first;

	for (uint32_t i = 0; i < count && layer < end; i++) {
		const int64_t to = reach(&stage[i], i + 1 < count ? &stage[i + 1] : NULL);

		if ((!stage[i].index || stage[i].first <= layer) && to >= layer)
			layer = to + 1;
	}
	return layer >= end;
}

bool export_stages_cover(const struct export_stages *stages, int32_t first, int32_t end)
{
	for (uint32_t at = 0, to; at < stages->stages; at = to) {
		to = pipeline_end(stages, at);
		if (pipeline_covers(&stages->stage[at], to - at, first, end))
			return true;
	}
	return false;
}

/* ---- what is not -------------------------------------------------------- */

void export_stages_missing(const struct export_stages *stages, char *text, size_t bytes)
{
	const uint32_t count = stages->stages ? pipeline_end(stages, 0) : 0;
	const uint32_t size = count ? stages->stage[0].size : 0;
	uint32_t next = 0;
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i <= count && used < bytes; i++) {
		const uint32_t there = i < count ? stages->stage[i].index : size;
		const char *comma = used ? ", " : "";

		if (there == next + 1)
			used += (size_t)snprintf(text + used, bytes - used, "%s%u", comma, next);
		else if (there > next)
			used += (size_t)snprintf(text + used, bytes - used, "%s%u to %u", comma,
						 next, there - 1);
		next = there + 1;
	}
	if (used < bytes)
		snprintf(text + used, bytes - used, " of %u", size);
}
