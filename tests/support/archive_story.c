/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/archive_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/ring.h>

uint16_t story_id(uint64_t generation, uint64_t step, uint32_t row, uint32_t layer, uint32_t k)
{
	return (uint16_t)((generation * 499 + step * 131 + row * 37 + layer * 7 + k * 333) %
			  STORY_EXPERTS);
}

static const uint8_t *uuid_of(const struct story *story)
{
	static uint8_t uuid[16];

	snprintf((char *)uuid, sizeof(uuid), "ring %u %u", (unsigned int)story->channel % 1000,
		 (unsigned int)story->generation % 1000);
	return uuid;
}

/* ---- records ----------------------------------------------------------- */

static void put(const struct story *story, const struct r3ring_record *record,
		struct archive_entry entry)
{
	size_t bytes = r3ring_record_size(record);
	void *payload = aligned_alloc(64, (bytes + 64) / 64 * 64);
	struct r3ring_error err = {0};

	if (!payload || r3ring_record_encode(record, payload, bytes, &err) != (long)bytes) {
		fprintf(stderr, "a story cannot tell a %s: %s\n",
			r3ring_record_type_name(record->type), err.text);
		exit(1);
	}
	entry.kind = ARCHIVE_RECORD;
	entry.type = record->type;
	entry.channel = story->channel;
	builder_entry(story->builder, entry, payload, bytes);
	free(payload);
}

void story_record(struct story *story, const struct r3ring_record *record, uint64_t step,
		  uint64_t units, uint16_t flags)
{
	story->seq++;
	story->units += units;
	if (story->absent)
		return;
	put(story, record,
	    (struct archive_entry){
		    .flags = flags, .seq = story->seq, .step = step, .units = story->units});
}

static void repeat(const struct story *story, const struct r3ring_record *record, uint64_t seq,
		   uint16_t flags)
{
	put(story, record,
	    (struct archive_entry){.flags = (uint16_t)(flags | ARCHIVE_ENTRY_REPEATED),
				   .seq = seq});
}

static struct r3ring_record schema_of(const struct story *story)
{
	static struct r3ring_layer_entry layers[STORY_LAYERS];
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < STORY_LAYERS; i++)
		layers[i] = (struct r3ring_layer_entry){.layer_id = (int32_t)i + 1, .bound = 1};
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = STORY_LAYERS,
		.experts = STORY_EXPERTS,
		.top_k = STORY_TOP_K,
		.max_rows = 64,
		.rows_per_record = 64,
		.clock = 1,
		.generation = story->generation,
		.continues = story->continues,
		.model = "a small model",
	};
	memcpy(record.u.schema.head.uuid, uuid_of(story), 16);
	record.u.schema.layers = layers;
	return record;
}

static struct r3ring_record begin_of(const struct story_request *request)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = request->handle,
		.prompt_tokens = request->prompt,
		.accepted_tokens = R3RING_UNKNOWN_U32,
		.event = R3RING_REQUEST_BEGIN,
		.id_len = (uint16_t)strlen(request->id),
	};
	record.u.request.id = request->id;
	record.u.request.session = record.u.request.turn = record.u.request.sample = "";
	return record;
}

static struct r3ring_record keyframe_of(const struct story *story)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};
	uint32_t live = 0;

	for (uint32_t i = 0; i < STORY_LIVE_MAX; i++)
		live += story->live[i].handle != 0;
	record.u.keyframe.step = story->step;
	record.u.keyframe.records = live + 1;
	record.u.keyframe.live_requests = live;
	record.u.keyframe.totals = story->totals;
	return record;
}

/* ---- channels and segments --------------------------------------------- */

void story_begin(struct story *story, struct archive_builder *builder, uint16_t channel,
		 const char *name)
{
	*story = (struct story){
		.builder = builder, .channel = channel, .name = name, .weight_version = 1};
	builder_channel(builder, channel, name, false);
	story_generation(story, 1);
}

void story_generation(struct story *story, uint64_t generation)
{
	struct r3ring_record schema;

	story->generation = generation;
	story->seq = story->units = story->step = 0;
	story->totals = (struct r3ring_totals){0};
	memset(story->live, 0, sizeof(story->live));
	builder_generation(story->builder, story->channel, generation, uuid_of(story), 0, false);
	schema = schema_of(story);
	story_record(story, &schema, 0, 0, 0);
}

void story_repeat(const struct story *story)
{
	const struct r3ring_record keyframe = keyframe_of(story);
	const struct r3ring_record schema = schema_of(story);
	uint64_t seq = 0;

	builder_channel(story->builder, story->channel, story->name, true);
	builder_generation(story->builder, story->channel, story->generation, uuid_of(story),
			   story->seq, true);
	repeat(story, &keyframe, seq++, R3RING_DESC_KEYFRAME);
	repeat(story, &schema, seq++, R3RING_DESC_REPEATED);
	for (uint32_t i = 0; i < STORY_LIVE_MAX; i++) {
		const struct r3ring_record begin = begin_of(&story->live[i]);

		if (story->live[i].handle)
			repeat(story, &begin, seq++, R3RING_DESC_REPEATED);
	}
}

void story_next_segment(struct story *const *stories, uint32_t count)
{
	builder_segment_full(stories[0]->builder);
	builder_segment(stories[0]->builder);
	for (uint32_t i = 0; i < count; i++)
		story_repeat(stories[i]);
	builder_ready(stories[0]->builder);
}

/* ---- requests ---------------------------------------------------------- */

void story_request(struct story *story, uint64_t handle, const char *id, uint32_t prompt)
{
	struct story_request *request = &story->live[handle % STORY_LIVE_MAX];
	struct r3ring_record record;

	request->handle = handle;
	request->prompt = prompt;
	snprintf(request->id, sizeof(request->id), "%s", id);
	record = begin_of(request);
	story_record(story, &record, 0, 0, 0);
}

void story_end(struct story *story, uint64_t handle, uint32_t accepted)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.accepted_tokens = accepted,
		.event = R3RING_REQUEST_END,
		.reason = R3RING_END_FINISHED,
	};
	record.u.request.id = record.u.request.session = record.u.request.turn =
		record.u.request.sample = "";
	story->live[handle % STORY_LIVE_MAX].handle = 0;
	story_record(story, &record, 0, 0, 0);
}

/* ---- steps ------------------------------------------------------------- */

void story_step_begin(struct story *story, uint64_t handle, uint32_t position, uint32_t rows)
{
	const struct r3ring_span span = {
		.request = handle,
		.position = position,
		.rows = rows,
		.accepted = R3RING_UNKNOWN_U32,
	};
	struct r3ring_record record = {.type = R3RING_STEP};

	story->step++;
	story->totals.steps++;
	record.u.step.head = (struct r3ring_step_record){
		.step = story->step,
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
		.spans = 1,
		.weight_version = story->weight_version,
		.host_ns = story->step * 1000000,
	};
	record.u.step.spans = &span;
	story_record(story, &record, story->step, 0, R3RING_DESC_BOUNDARY);
}

static void leave_out(struct story *story, uint32_t rows)
{
	story->units += rows;
	builder_entry(story->builder,
		      (struct archive_entry){.kind = ARCHIVE_SKIPPED,
					     .type = R3RING_LAYER,
					     .channel = story->channel,
					     .seq = ++story->seq,
					     .step = story->step,
					     .units = story->units},
		      NULL, 0);
}

void story_layer(struct story *story, uint32_t layer, uint32_t rows)
{
	static uint16_t ids[64 * STORY_TOP_K];
	struct r3ring_record record = {.type = R3RING_LAYER};

	for (uint32_t row = 0; row < rows; row++)
		for (uint32_t k = 0; k < STORY_TOP_K; k++)
			ids[row * STORY_TOP_K + k] =
				story_id(story->generation, story->step, row, layer, k);
	record.u.layer.head = (struct r3ring_layer_record){
		.step = story->step,
		.layer_id = (int32_t)layer + 1,
		.layer_index = (uint16_t)layer,
		.rows = rows,
		.total_rows = rows,
		.valid_rows = rows,
		.top_k = STORY_TOP_K,
	};
	record.u.layer.ids = ids;
	story->totals.layer_records++;
	if (story->builder->layer_end && layer + 1 >= story->builder->layer_end)
		leave_out(story, rows);
	else
		story_record(story, &record, story->step, rows, 0);
}

void story_step_end(struct story *story, uint32_t rows)
{
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head.step = story->step;
	record.u.step_end.head.status = R3RING_STEP_COMPLETE;
	story->totals.steps_complete++;
	story->totals.rows += rows;
	story->totals.layer_rows += (uint64_t)rows * STORY_LAYERS;
	story_record(story, &record, story->step, 0, 0);
}

void story_step(struct story *story, uint64_t handle, uint32_t position, uint32_t rows)
{
	story_step_begin(story, handle, position, rows);
	for (uint32_t layer = 0; layer < STORY_LAYERS; layer++)
		story_layer(story, layer, rows);
	story_step_end(story, rows);
}

void story_lost(struct story *story, uint64_t steps, uint64_t rows, enum r3ring_cause cause)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = (struct r3ring_lost_record){
		.from_step = story->step + 1,
		.to_step = story->step + steps,
		.steps = steps,
		.rows = rows,
		.layer_rows = rows * STORY_LAYERS,
		.cause = cause,
	};
	story->step += steps;
	story->totals.steps += steps;
	story->totals.lost_steps[cause] += steps;
	story->totals.lost_rows[cause] += rows;
	story_record(story, &record, story->step, 0, 0);
}

void story_keyframe(struct story *story)
{
	struct r3ring_record said = keyframe_of(story);

	story_record(story, &said, story->step, 0, R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY);
	said = schema_of(story);
	story_record(story, &said, 0, 0, R3RING_DESC_REPEATED);
	for (uint32_t i = 0; i < STORY_LIVE_MAX; i++) {
		said = begin_of(&story->live[i]);
		if (story->live[i].handle)
			story_record(story, &said, 0, 0, R3RING_DESC_REPEATED);
	}
}

void story_closed(struct story *story)
{
	story_closed_for(story, R3RING_CLOSED_SHUTDOWN, false);
}

void story_closed_for(struct story *story, enum r3ring_closed_reason reason, bool engine_lives)
{
	struct r3ring_record record = {.type = R3RING_CLOSED};

	record.u.closed.reason = reason;
	record.u.closed.engine_lives = engine_lives;
	story_record(story, &record, 0, 0, 0);
}
