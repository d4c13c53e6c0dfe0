/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index_open.h"

struct index_tally {
	struct index_part *parts;
	struct tally_channel *channels; /* [count], by the reader's numbers */
	uint32_t count;
	struct index_open *resumed; /* [resumed_count], whose channels were not met yet */
	uint32_t resumed_count;
};

/* ---- parts ------------------------------------------------------------- */

static void forget_parts(struct index_tally *tally)
{
	struct index_part *part, *next;

	HASH_ITER (hh, tally->parts, part, next) {
		HASH_DEL(tally->parts, part);
		free(part->texts.id);
		free(part);
	}
}

static struct index_part *part_of(struct index_tally *tally, const struct tally_channel *channel,
				  uint64_t handle)
{
	struct index_key key = {.handle = handle};
	struct index_part *part;
	unsigned int before = HASH_COUNT(tally->parts);

	memcpy(key.uuid, channel->uuid, sizeof(key.uuid));
	HASH_FIND(hh, tally->parts, &key, sizeof(key), part);
	if (part)
		return part;
	part = calloc(1, sizeof(*part));
	if (!part)
		return NULL;
	part->key = key;
	part->channel = channel->name;
	part->generation = channel->generation;
	part->first_position = UINT64_MAX;
	part->weight_min = UINT64_MAX;
	part->prompt_tokens = part->accepted_tokens = R3RING_UNKNOWN_U32;
	HASH_ADD(hh, tally->parts, key, sizeof(part->key), part);
	if (HASH_COUNT(tally->parts) > before)
		return part;
	free(part);
	return NULL;
}

static void touch(struct index_part *part, const struct archive_item *item)
{
	if (!part->touched)
		part->first_offset = item->place.offset;
	part->last_offset = item->place.offset;
	part->touched = true;
}

/* ---- requests ---------------------------------------------------------- */

static char *put_text(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	to[len] = '\0';
	return to + len + 1;
}

static int keep_texts(struct index_part *part, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	char *text = malloc((size_t)head->id_len + head->session_len + head->turn_len +
			    head->sample_len + 4);

	if (!text)
		return -ENOMEM;
	free(part->texts.id);
	part->texts.id = text;
	part->texts.session = put_text(text, record->u.request.id, head->id_len);
	part->texts.turn =
		put_text((char *)part->texts.session, record->u.request.session, head->session_len);
	part->texts.sample =
		put_text((char *)part->texts.turn, record->u.request.turn, head->turn_len);
	put_text((char *)part->texts.sample, record->u.request.sample, head->sample_len);
	return 0;
}

static int take_begin(struct index_part *part, const struct archive_item *item,
		      const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	part->prompt_tokens = head->prompt_tokens;
	if (head->attempt >= part->attempts)
		part->attempts = (uint16_t)(head->attempt + 1u);
	if (!(item->view.flags & R3RING_DESC_REPEATED) && !part->begin_ns)
		part->begin_ns = item->time_ns;
	return keep_texts(part, record);
}

static int take_request(struct index_tally *tally, const struct tally_channel *channel,
			const struct archive_item *item, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct index_part *part = part_of(tally, channel, head->handle);

	if (!part)
		return -ENOMEM;
	if (!(item->view.flags & R3RING_DESC_REPEATED))
		touch(part, item);
	if (head->event == R3RING_REQUEST_BEGIN)
		return take_begin(part, item, record);
	part->end_ns = item->time_ns;
	part->end_reason = head->reason;
	part->accepted_tokens = head->accepted_tokens;
	return 0;
}

/* ---- steps ------------------------------------------------------------- */

static void note_positions(struct index_part *part, const struct r3ring_span *span)
{
	uint64_t end = (uint64_t)span->position + span->rows;

	if (span->position < part->first_position)
		part->first_position = span->position;
	if (end > part->end_position)
		part->end_position = end;
	if (span->attempt >= part->attempts)
		part->attempts = (uint16_t)(span->attempt + 1u);
}

static void note_step(struct index_part *part, uint64_t step)
{
	if (!part->first_step || step < part->first_step)
		part->first_step = step;
	if (step > part->last_step)
		part->last_step = step;
}

static void note_weight(struct index_part *part, uint64_t weight)
{
	if (weight < part->weight_min)
		part->weight_min = weight;
	if (weight > part->weight_max)
		part->weight_max = weight;
}

/* Rows run for a request, in a step that is open. */
static int open_rows(struct tally_channel *channel, uint64_t step, const struct r3ring_span *span,
		     struct index_part *part, bool replaces)
{
	const struct index_open open = {.kind = INDEX_OPEN_SPAN,
					.step = step,
					.handle = span->request,
					.row = span->row,
					.rows = span->rows};
	const struct tally_open *begun = tally_open_step(channel, step);

	if (!replaces) {
		if (begun && !begun->carried)
			part->rows += span->rows;
		else
			part->carried_rows += span->rows;
		tally_open_count_layers(channel, &open, part);
	}
	return begun ? tally_open_add(channel, &open, part) : 0;
}

static struct index_part *take_span(struct index_tally *tally, struct tally_channel *channel,
				    const struct archive_item *item, uint64_t step,
				    const struct r3ring_span *span)
{
	struct index_part *part = part_of(tally, channel, span->request);

	if (!part)
		return NULL;
	touch(part, item);
	note_positions(part, span);
	note_step(part, step);
	return part;
}

static bool has_rows(const struct r3ring_span *span)
{
	return span->kind == R3RING_SPAN_COMPUTED && span->rows;
}

static int take_step(struct index_tally *tally, struct tally_channel *channel,
		     const struct archive_item *item, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	const struct index_open open = {.step = head->step,
					.kind = head->flags & R3RING_STEP_SPANS_FOLLOW
							? INDEX_OPEN_STEP_FOLLOW
							: INDEX_OPEN_STEP};
	bool runs = !(head->flags & (R3RING_STEP_WARMUP | R3RING_STEP_DROPPED));
	int code = runs ? tally_open_add(channel, &open, NULL) : 0;

	for (uint32_t i = 0; !code && i < head->spans; i++) {
		const struct r3ring_span *span = &record->u.step.spans[i];
		struct index_part *part = take_span(tally, channel, item, head->step, span);

		if (!part)
			return -ENOMEM;
		if (!runs || !has_rows(span))
			continue;
		note_weight(part, head->weight_version);
		code = open_rows(channel, head->step, span, part, false);
	}
	return code;
}

/* Spans that come behind their step; those that replace others were counted with them. */
static int take_spans(struct index_tally *tally, struct tally_channel *channel,
		      const struct archive_item *item, const struct r3ring_record *record)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;
	int code = 0;

	for (uint32_t i = 0; !code && i < head->spans; i++) {
		const struct r3ring_span *span = &record->u.spans.spans[i];
		struct index_part *part = take_span(tally, channel, item, head->step, span);
		bool replaces;

		if (!part)
			return -ENOMEM;
		replaces = (head->flags & R3RING_SPANS_REPLACE) &&
			   tally_open_drop_spans(channel, head->step, span->request);
		if (has_rows(span))
			code = open_rows(channel, head->step, span, part, replaces);
	}
	return code;
}

static int take_layer(struct index_tally *tally, struct tally_channel *channel,
		      const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	uint32_t rows = head->valid_rows < head->rows ? head->valid_rows : head->rows;
	const struct tally_open *step = tally_open_step(channel, head->step);

	for (uint32_t i = 0; i < channel->count; i++) {
		struct tally_open *span = &channel->open[i];
		uint32_t found;

		if (span->is.kind != INDEX_OPEN_SPAN || span->is.step != head->step)
			continue;
		found = tally_open_overlap(&span->is, head->row, rows);
		if (!span->part)
			span->part = part_of(tally, channel, span->is.handle);
		if (!span->part)
			return -ENOMEM;
		if (span->carried)
			span->part->carried_layer_rows += found;
		else
			span->part->layer_rows += found;
	}
	if (!step || step->is.kind != INDEX_OPEN_STEP_FOLLOW)
		return 0;
	return tally_open_keep_layer(channel, head->step, head->row, rows);
}

/* ---- entries ----------------------------------------------------------- */

static int take_record(struct index_tally *tally, struct tally_channel *channel,
		       const struct archive_item *item)
{
	struct r3ring_record record;

	/* What cannot be decoded says nothing of a request. */
	if (r3ring_record_decode(&record, item->view.type, item->view.data, item->view.len, NULL))
		return 0;
	switch (record.type) {
	case R3RING_REQUEST:
		return take_request(tally, channel, item, &record);
	case R3RING_STEP:
		return take_step(tally, channel, item, &record);
	case R3RING_SPANS:
		return take_spans(tally, channel, item, &record);
	case R3RING_LAYER:
		return take_layer(tally, channel, &record);
	case R3RING_STEP_END:
		tally_open_end(channel, record.u.step_end.head.step);
		return 0;
	default:
		return 0;
	}
}

static int meet_channel(struct index_tally *tally, uint32_t number)
{
	struct tally_channel *grown;

	if (number < tally->count)
		return 0;
	grown = reallocarray(tally->channels, number + 1u, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + tally->count, 0, (number + 1u - tally->count) * sizeof(*grown));
	tally->channels = grown;
	tally->count = number + 1;
	return 0;
}

/* What was carried here from a segment that this tally did not see. */
static int resume_channel(struct index_tally *tally, struct tally_channel *channel)
{
	for (uint32_t i = 0; i < tally->resumed_count; i++) {
		const struct index_open *open = &tally->resumed[i];

		if (memcmp(open->uuid, channel->uuid, sizeof(channel->uuid)) != 0)
			continue;
		if (tally_open_add(channel, open, NULL))
			return -ENOMEM;
		channel->open[channel->count - 1].carried = true;
	}
	return 0;
}

static int take_generation(struct index_tally *tally, struct tally_channel *channel,
			   const struct archive_item *item)
{
	const struct archive_generation *said = &item->u.generation;
	bool same = memcmp(channel->uuid, said->uuid, sizeof(said->uuid)) == 0;

	channel->name = item->name;
	channel->generation = said->generation;
	if (same)
		return 0;
	memcpy(channel->uuid, said->uuid, sizeof(channel->uuid));
	channel->count = 0;
	return item->repeated ? resume_channel(tally, channel) : 0;
}

int index_tally_take(struct index_tally *tally, const struct archive_item *item)
{
	struct tally_channel *channel;

	if (item->kind != ARCHIVE_GENERATION && item->kind != ARCHIVE_RECORD)
		return 0;
	if (meet_channel(tally, item->channel))
		return -ENOMEM;
	channel = &tally->channels[item->channel];
	if (item->kind == ARCHIVE_GENERATION)
		return take_generation(tally, channel, item);
	return take_record(tally, channel, item);
}

/* ---- interface --------------------------------------------------------- */

struct index_tally *index_tally_create(void)
{
	return calloc(1, sizeof(struct index_tally));
}

void index_tally_destroy(struct index_tally *tally)
{
	if (!tally)
		return;
	forget_parts(tally);
	for (uint32_t i = 0; i < tally->count; i++)
		free(tally->channels[i].open);
	free(tally->channels);
	free(tally->resumed);
	free(tally);
}

void index_tally_segment(struct index_tally *tally)
{
	forget_parts(tally);
	for (uint32_t i = 0; i < tally->count; i++) {
		for (uint32_t j = 0; j < tally->channels[i].count; j++) {
			tally->channels[i].open[j].part = NULL;
			tally->channels[i].open[j].carried = true;
		}
	}
}

void index_tally_forget_open(struct index_tally *tally)
{
	for (uint32_t i = 0; i < tally->count; i++)
		tally->channels[i].count = 0;
}

const struct index_part *index_tally_parts(const struct index_tally *tally)
{
	return tally->parts;
}

int index_tally_get_open(const struct index_tally *tally, struct index_open **open, uint32_t *count)
{
	struct index_open *list;
	uint32_t all = 0;

	for (uint32_t i = 0; i < tally->count; i++)
		all += tally->channels[i].count;
	list = malloc((all ? all : 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	*open = list;
	*count = all;
	for (uint32_t i = 0; i < tally->count; i++) {
		for (uint32_t j = 0; j < tally->channels[i].count; j++)
			*list++ = tally->channels[i].open[j].is;
	}
	return 0;
}

int index_tally_set_open(struct index_tally *tally, const struct index_open *open, uint32_t count)
{
	struct index_open *copy = malloc((count ? count : 1) * sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (count)
		memcpy(copy, open, count * sizeof(*copy));
	free(tally->resumed);
	tally->resumed = copy;
	tally->resumed_count = count;
	return 0;
}

static bool is_open(const struct tally_channel *channel, const struct index_open *like)
{
	for (uint32_t i = 0; i < channel->count; i++) {
		if (memcmp(&channel->open[i].is, like, sizeof(*like)) == 0)
			return true;
	}
	return false;
}

static int adopt(struct tally_channel *channel, const struct index_open *open, uint32_t count)
{
	uint32_t own = channel->count, known = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (memcmp(open[i].uuid, channel->uuid, sizeof(channel->uuid)) != 0)
			continue;
		if (is_open(channel, &open[i]))
			known++;
		else if (tally_open_add(channel, &open[i], NULL))
			return -ENOMEM;
		else
			channel->open[channel->count - 1].carried = true;
	}
	return known < own;
}

int index_tally_adopt_open(struct index_tally *tally, const struct index_open *open, uint32_t count)
{
	int code = 0;

	for (uint32_t i = 0; !code && i < tally->count; i++)
		code = adopt(&tally->channels[i], open, count);
	return code;
}
