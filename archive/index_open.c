/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index_open.h"

#define OPEN_MAX 65536u /* of a channel: no engine has so many, so their ends were lost */
#define LATE_STEPS 64u  /* so long spans of a step may come behind it */

int tally_open_add(struct tally_channel *channel, const struct index_open *is,
		   struct index_part *part)
{
	struct tally_open *entry;

	if (channel->count == OPEN_MAX)
		channel->count = 0;
	if (channel->count == channel->capacity) {
		uint32_t capacity = channel->capacity ? 2 * channel->capacity : 64;
		struct tally_open *grown =
			reallocarray(channel->open, capacity, sizeof(*channel->open));

		if (!grown)
			return -ENOMEM;
		channel->open = grown;
		channel->capacity = capacity;
	}
	entry = &channel->open[channel->count++];
	*entry = (struct tally_open){.is = *is, .part = part};
	memcpy(entry->is.uuid, channel->uuid, sizeof(entry->is.uuid));
	return 0;
}

static struct tally_open *find_open(const struct tally_channel *channel,
				    const struct index_open *like)
{
	for (uint32_t i = channel->count; i--;) {
		struct tally_open *entry = &channel->open[i];

		if (entry->is.step == like->step && entry->is.kind == like->kind &&
		    entry->is.handle == like->handle && entry->is.row == like->row &&
		    entry->is.rows == like->rows)
			return entry;
	}
	return NULL;
}

const struct tally_open *tally_open_step(const struct tally_channel *channel, uint64_t step)
{
	for (uint32_t i = channel->count; i--;) {
		const struct tally_open *entry = &channel->open[i];

		if (entry->is.step == step && entry->is.kind <= INDEX_OPEN_STEP_FOLLOW)
			return entry;
	}
	return NULL;
}

bool tally_open_drop_spans(struct tally_channel *channel, uint64_t step, uint64_t handle)
{
	uint32_t kept = 0;
	bool any;

	for (uint32_t i = 0; i < channel->count; i++) {
		const struct index_open *is = &channel->open[i].is;

		if (is->kind != INDEX_OPEN_SPAN || is->step != step || is->handle != handle)
			channel->open[kept++] = channel->open[i];
	}
	any = kept < channel->count;
	channel->count = kept;
	return any;
}

void tally_open_end(struct tally_channel *channel, uint64_t step)
{
	const struct tally_open *ended = tally_open_step(channel, step);
	bool stays = ended && ended->is.kind == INDEX_OPEN_STEP_FOLLOW;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < channel->count; i++) {
		const struct index_open *is = &channel->open[i].is;

		if (is->step + LATE_STEPS > step && (is->step != step || stays))
			channel->open[kept++] = channel->open[i];
	}
	channel->count = kept;
}

uint32_t tally_open_overlap(const struct index_open *span, uint32_t row, uint32_t rows)
{
	uint64_t begin = row > span->row ? row : span->row;
	uint64_t end = (uint64_t)row + rows;
	uint64_t span_end = (uint64_t)span->row + span->rows;

	end = end < span_end ? end : span_end;
	return end > begin ? (uint32_t)(end - begin) : 0;
}

int tally_open_keep_layer(struct tally_channel *channel, uint64_t step, uint32_t row, uint32_t rows)
{
	const struct index_open open = {
		.step = step, .kind = INDEX_OPEN_LAYERS, .row = row, .rows = rows, .layers = 1};
	struct tally_open *known = find_open(channel, &open);

	/* What is carried stays apart. */
	if (known && !known->carried) {
		known->is.layers++;
		return 0;
	}
	return tally_open_add(channel, &open, NULL);
}

void tally_open_count_layers(const struct tally_channel *channel, const struct index_open *span,
			     struct index_part *part)
{
	for (uint32_t i = 0; i < channel->count; i++) {
		const struct tally_open *entry = &channel->open[i];
		uint64_t found;

		if (entry->is.kind != INDEX_OPEN_LAYERS || entry->is.step != span->step)
			continue;
		found = (uint64_t)tally_open_overlap(span, entry->is.row, entry->is.rows) *
			entry->is.layers;
		if (entry->carried)
			part->carried_layer_rows += found;
		else
			part->layer_rows += found;
	}
}
