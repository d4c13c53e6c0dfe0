/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one generation into its ring. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/publish.h"

int publisher_open(struct publisher *publisher, struct r3ring_segment *segment,
		   const struct r3ring_record *schema)
{
	size_t table = schema->u.schema.head.layers * sizeof(struct r3ring_layer_entry);
	struct publisher made = {
		.segment = segment,
		.schema = schema->u.schema.head,
		.scratch_bytes = r3ring_segment_max_record(segment),
	};
	int r = -ENOMEM;

	r3ring_segment_arena(segment, &made.arena_bytes);
	made.depth =
		1u << r3ring_segment_get_header(segment)->regions[R3RING_REGION_DESCS].count_log2;
	made.layers = malloc(table ? table : 1);
	made.scratch = malloc(made.scratch_bytes);
	if (!made.layers || !made.scratch)
		goto failed;
	if (table)
		memcpy(made.layers, schema->u.schema.layers, table);
	r = r3ring_writer_open(&made.writer, segment);
	if (r < 0)
		goto failed;
	made.keyframe_position = r3ring_writer_position(made.writer);
	made.keyframe_seq = r3ring_writer_next_seq(made.writer);
	*publisher = made;
	return 0;
failed:
	free(made.layers);
	free(made.scratch);
	return r;
}

void publisher_close(struct publisher *publisher)
{
	live_clear(&publisher->live);
	if (publisher->writer)
		r3ring_writer_close(publisher->writer);
	gate_destroy(publisher->stall.gate);
	free(publisher->layers);
	free(publisher->scratch);
	*publisher = (struct publisher){0};
}

int publisher_serve(struct publisher *publisher, const struct stall_policy *policy,
		    bool (*carry_on)(void *ctx), void *ctx)
{
	struct gate *gate = gate_create(publisher->segment, policy->drop);

	if (!gate)
		return -ENOMEM;
	publisher->stall =
		(struct stall){.policy = *policy, .gate = gate, .carry_on = carry_on, .ctx = ctx};
	writer_set_gate(publisher->writer, gate);
	return 0;
}

int publisher_put(struct publisher *publisher, const struct r3ring_record_spec *spec,
		  const void *payload)
{
	struct stall_wait wait = {0};
	int r;

	while ((r = r3ring_writer_put(publisher->writer, spec, payload)) == -EAGAIN)
		stall_wait(&publisher->stall, publisher->writer, &wait);
	return r;
}

int publisher_reserve(struct publisher *publisher, const struct r3ring_record_spec *spec,
		      struct r3ring_slot *slot)
{
	struct stall_wait wait = {0};
	int r;

	while ((r = r3ring_writer_reserve(publisher->writer, spec, slot)) == -EAGAIN)
		stall_wait(&publisher->stall, publisher->writer, &wait);
	return r;
}

static uint64_t record_step(const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_STEP:
		return record->u.step.head.step;
	case R3RING_SPANS:
		return record->u.spans.head.step;
	case R3RING_ROWS:
		return record->u.rows.head.step;
	case R3RING_STEP_END:
		return record->u.step_end.head.step;
	case R3RING_LOST:
		return record->u.lost.to_step;
	case R3RING_KEY_COPY:
		return record->u.key_copy.head.step;
	case R3RING_KEYFRAME:
		return record->u.keyframe.step;
	default:
		return 0;
	}
}

int publish_record(struct publisher *publisher, const struct r3ring_record *record, uint16_t flags)
{
	struct r3ring_record_spec spec = {
		.step = record_step(record),
		.type = record->type,
		.flags = flags,
	};
	long len;

	len = r3ring_record_encode(record, publisher->scratch, publisher->scratch_bytes, NULL);
	if (len == -ENOBUFS)
		return -EMSGSIZE;
	if (len < 0)
		return (int)len;
	if (publisher->said) {
		publisher->said--;
		return 0;
	}
	spec.len = (uint32_t)len;
	return publisher_put(publisher, &spec, publisher->scratch);
}

int publish_schema(struct publisher *publisher, uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	record.u.schema.head = publisher->schema;
	record.u.schema.layers = publisher->layers;
	return publish_record(publisher, &record, flags);
}

int publish_lost(struct publisher *publisher, const struct r3ring_lost_record *lost)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = *lost;
	if (!publisher->said) {
		publisher->totals.lost_steps[lost->cause] += lost->steps;
		publisher->totals.lost_rows[lost->cause] += lost->rows;
	}
	return publish_record(publisher, &record, 0);
}

int publish_closed(struct publisher *publisher, const struct r3ring_closed_record *closed)
{
	const struct r3ring_record record = {.type = R3RING_CLOSED, .u.closed = *closed};
	int r = publish_record(publisher, &record, 0);

	r3ring_writer_finish(publisher->writer);
	r3ring_writer_wake(publisher->writer);
	return r;
}

int publish_too_big(struct publisher *publisher)
{
	const struct r3ring_lost_record lost = {
		.cause = R3RING_CAUSE_TOO_BIG,
		.spans_unknown = 1,
	};

	return publish_lost(publisher, &lost);
}

/* ---- EPLB -------------------------------------------------------------- */

static int publish_map_part(struct publisher *publisher, const struct r3ring_record *part)
{
	long len;
	int r = publish_record(publisher, part, 0);

	if (r < 0)
		return r;
	/* publish_record() left the encoded record in scratch. */
	len = (long)r3ring_record_size(part);
	live_note_map(&publisher->live, &part->u.eplb.head, publisher->scratch, (size_t)len);
	return 0;
}

int publish_map(struct publisher *publisher, const struct r3ring_record *record)
{
	const struct r3ring_eplb_record *head = &record->u.eplb.head;
	uint64_t layer_ids = (uint64_t)head->experts * head->replicas;
	uint64_t room = publisher->scratch_bytes - sizeof(*head);
	uint64_t most = layer_ids ? room / (layer_ids * sizeof(uint16_t)) : head->layers;
	struct r3ring_record part = *record;
	int r = 0;

	if (most == 0)
		return -EMSGSIZE;
	for (uint32_t layer = 0; r == 0 && layer < head->layers; layer += part.u.eplb.head.layers) {
		uint32_t rest = head->layers - layer;

		part.u.eplb.head.first_layer = head->first_layer + layer;
		part.u.eplb.head.layers = rest < most ? rest : (uint32_t)most;
		part.u.eplb.map = record->u.eplb.map + layer * layer_ids;
		r = publish_map_part(publisher, &part);
	}
	return r;
}

/* ---- what an earlier generation left ------------------------------------ */

/* Its ring may have taken longer records: told by as many layers as this one takes. */
static int carry_map(struct publisher *publisher, const struct live_payload *map)
{
	struct r3ring_record record;
	int r = r3ring_record_decode(&record, R3RING_EPLB, map->bytes, map->len, NULL);

	if (r == 0)
		r = publish_map(publisher, &record);
	return r == -EMSGSIZE ? publish_too_big(publisher) : r;
}

static int carry_request(struct publisher *publisher, const struct live_payload *request)
{
	const struct r3ring_record_spec spec = {.len = (uint32_t)request->len,
						.type = R3RING_REQUEST};

	return publisher_put(publisher, &spec, request->bytes);
}

int publish_carried(struct publisher *publisher, struct live *live)
{
	const struct live_payload *p;
	int r = 0;

	for (p = live->maps; r == 0 && p; p = p->hh.next)
		r = carry_map(publisher, p);
	for (p = live->requests; r == 0 && p; p = p->hh.next)
		r = carry_request(publisher, p);
	if (r < 0)
		return r;
	live_move_requests(&publisher->live, live);
	live_clear(live);
	return 0;
}
