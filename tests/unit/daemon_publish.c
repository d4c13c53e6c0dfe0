/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher on a small ring: splitting, keyframes, bounds. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_daemon/publish.h"

#define ARENA 65536u
#define DEPTH 1024u
#define RECORD_MAX (ARENA / 8)

static struct r3ring_segment *segment;
static struct publisher publisher;
static struct r3ring_cursor *cursor;

static void open_publisher(void)
{
	char name[64];
	const struct r3ring_segment_options options = {
		.size = sizeof(options),
		.name = name,
		.label = "unit/0",
		.arena_bytes = ARENA,
		.depth = DEPTH,
		.generation = 1,
	};
	const struct r3ring_layer_entry layers[2] = {{.layer_id = 1}, {.layer_id = 2}};
	struct r3ring_record schema = {.type = R3RING_SCHEMA};

	snprintf(name, sizeof(name), "/r3ring-unit-publish-%d", getpid());
	cr_assert_eq(r3ring_segment_create(&segment, &options, NULL), 0);
	r3ring_segment_unlink(segment);
	schema.u.schema.head = (struct r3ring_schema_record){
		.layers = 2,
		.experts = 8,
		.top_k = 2,
		.max_rows = 16,
		.rows_per_record = 16,
		.clock = 1,
		.model = "unit",
	};
	schema.u.schema.layers = layers;
	cr_assert_eq(publisher_open(&publisher, segment, &schema), 0);
	cr_assert_eq(publish_schema(&publisher, R3RING_DESC_BOUNDARY), 0);
	cr_assert_eq(r3ring_cursor_open(&cursor, segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0), 0);
}

static void close_publisher(void)
{
	r3ring_cursor_close(cursor);
	publisher_close(&publisher);
	r3ring_segment_close(segment);
}

TestSuite(daemon_publish, .init = open_publisher, .fini = close_publisher);

/* The next record, decoded; false when there is none. */
static bool next(struct r3ring_record *record, struct r3ring_view *view)
{
	if (r3ring_cursor_next(cursor, view) != 1)
		return false;
	cr_assert_eq(r3ring_record_decode(record, view->type, view->data, view->len, NULL), 0);
	return true;
}

static void skip_schema(void)
{
	struct r3ring_record record;
	struct r3ring_view view;

	cr_assert(next(&record, &view));
	cr_expect_eq(view.seq, 1);
	cr_expect_eq(view.type, R3RING_SCHEMA);
	cr_expect_eq(view.flags & R3RING_DESC_BOUNDARY, R3RING_DESC_BOUNDARY);
}

/* ---- long STEP records -------------------------------------------------- */

static struct r3ring_record step_of(const struct r3ring_span *spans, uint32_t count,
				    const uint64_t *keys, uint32_t key_count)
{
	struct r3ring_record record = {.type = R3RING_STEP};

	record.u.step.head = (struct r3ring_step_record){
		.step = 1,
		.total_rows = 16,
		.row_end = 16,
		.valid_end = 16,
		.spans = count,
		.keys = key_count,
		.tokens_per_key = key_count ? 16 : 0,
		.key_kind = key_count ? R3RING_KEYS_BLOCK_HASH : R3RING_KEYS_NONE,
	};
	record.u.step.spans = spans;
	record.u.step.keys = keys;
	return record;
}

Test(daemon_publish, spans_that_do_not_fit_one_record_follow_in_order_with_their_keys)
{
	enum { SPANS = 1000, KEYS_EACH = 3 };
	struct r3ring_span *spans = calloc(SPANS, sizeof(*spans));
	uint64_t *keys = calloc(SPANS * KEYS_EACH, sizeof(*keys));
	uint32_t spans_seen = 0, keys_seen = 0, records = 0;
	bool more = true;
	struct r3ring_record record;
	struct r3ring_view view;

	for (uint32_t i = 0; i < SPANS; i++) {
		spans[i] = (struct r3ring_span){.request = i + 1,
						.kind = R3RING_SPAN_CACHED,
						.rows = 48,
						.keys = KEYS_EACH};
		for (uint32_t k = 0; k < KEYS_EACH; k++)
			keys[i * KEYS_EACH + k] = i * 100 + k;
	}
	record = step_of(spans, SPANS, keys, SPANS * KEYS_EACH);
	cr_assert_eq(publish_step(&publisher, &record), 0);
	skip_schema();
	while (next(&record, &view)) {
		bool first = records++ == 0;
		const struct r3ring_span *got = first ? record.u.step.spans : record.u.spans.spans;
		const uint64_t *got_keys = first ? record.u.step.keys : record.u.spans.keys;
		uint32_t count = first ? record.u.step.head.spans : record.u.spans.head.spans;

		cr_assert_eq(view.type, first ? R3RING_STEP : R3RING_SPANS);
		cr_assert_leq(view.len, RECORD_MAX);
		/* Each but the last says that another goes on with it. */
		cr_assert(more);
		more = first ? record.u.step.head.flags == R3RING_STEP_MAP_CONTINUED
			     : record.u.spans.head.flags & R3RING_SPANS_CONTINUED;
		cr_expect(first || record.u.spans.head.flags & R3RING_SPANS_MORE);
		cr_expect(first || !(record.u.spans.head.flags & R3RING_SPANS_REPLACE));
		for (uint32_t i = 0; i < count; i++)
			cr_assert_eq(got[i].request, ++spans_seen);
		for (uint32_t k = 0; k < count * KEYS_EACH; k++, keys_seen++)
			cr_assert_eq(got_keys[k],
				     keys_seen / KEYS_EACH * 100 + keys_seen % KEYS_EACH);
	}
	cr_expect_eq(spans_seen, SPANS);
	cr_expect_gt(records, 1);
	cr_expect_not(more);
	free(spans);
	free(keys);
}

Test(daemon_publish, spans_learned_later_that_do_not_fit_one_record_all_replace)
{
	enum { SPANS = 1000 };
	struct r3ring_span *spans = calloc(SPANS, sizeof(*spans));
	uint32_t spans_seen = 0, records = 0;
	struct r3ring_record record = {.type = R3RING_SPANS};
	struct r3ring_view view;

	for (uint32_t i = 0; i < SPANS; i++)
		spans[i] = (struct r3ring_span){.request = i + 1, .rows = 1};
	record.u.spans.head.step = 1;
	record.u.spans.head.spans = SPANS;
	record.u.spans.head.flags = R3RING_SPANS_REPLACE;
	record.u.spans.spans = spans;
	cr_assert_eq(publish_spans(&publisher, &record), 0);
	skip_schema();
	while (next(&record, &view)) {
		const struct r3ring_spans_record *head = &record.u.spans.head;

		spans_seen += head->spans;
		cr_expect(head->flags & R3RING_SPANS_REPLACE);
		cr_expect_eq((head->flags & R3RING_SPANS_MORE) != 0, records++ > 0);
		cr_expect_eq((head->flags & R3RING_SPANS_CONTINUED) != 0, spans_seen < SPANS);
	}
	cr_expect_eq(spans_seen, SPANS);
	cr_expect_gt(records, 1);
	free(spans);
}

Test(daemon_publish, a_span_that_fits_no_record_is_refused_before_anything_is_said)
{
	enum { KEYS = RECORD_MAX / 8 };
	const struct r3ring_span span = {
		.request = 1, .kind = R3RING_SPAN_CACHED, .rows = 16 * KEYS, .keys = KEYS};
	static uint64_t keys[KEYS];
	struct r3ring_record record = step_of(&span, 1, keys, KEYS);
	struct r3ring_view view;

	cr_expect_eq(publish_step(&publisher, &record), -EMSGSIZE);
	skip_schema();
	cr_expect_not(next(&record, &view));
}

/* ---- keyframes ---------------------------------------------------------- */

static void begin_request(uint64_t handle)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};
	uint8_t payload[64];
	long len;

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.event = R3RING_REQUEST_BEGIN,
		.id_len = 3,
		.attempt = handle > 1,
		.since_first = (uint32_t)(handle - 1),
	};
	record.u.request.id = "abc";
	record.u.request.session = record.u.request.turn = record.u.request.sample = "";
	len = r3ring_record_encode(&record, payload, sizeof(payload), NULL);
	cr_assert_gt(len, 0);
	live_note_request(&publisher.live, &record.u.request.head, payload, (size_t)len);
}

Test(daemon_publish, a_keyframe_is_due_after_a_quarter_of_the_arena)
{
	const struct r3ring_record_spec spec = {.len = 4096, .type = R3RING_LAYER};
	static uint8_t payload[4096];

	for (uint32_t bytes = 0; bytes < ARENA / 4; bytes += 4096) {
		cr_assert_not(keyframe_due(&publisher), "after %u bytes", bytes);
		r3ring_writer_put(publisher.writer, &spec, payload);
	}
	cr_expect(keyframe_due(&publisher));
	publish_keyframe(&publisher);
	cr_expect_not(keyframe_due(&publisher));
}

Test(daemon_publish, a_keyframe_is_due_after_a_quarter_of_the_descriptors)
{
	const struct r3ring_record_spec spec = {.type = R3RING_LAYER};
	uint32_t records = 0;

	while (!keyframe_due(&publisher) && records <= DEPTH) {
		r3ring_writer_put(publisher.writer, &spec, "");
		records++;
	}
	cr_expect_leq(records, DEPTH / 4);
	cr_expect_geq(records, DEPTH / 4 - 1);
}

Test(daemon_publish, failure_49_a_keyframe_tells_schema_and_live_requests_again)
{
	struct r3ring_request_record end = {.handle = 2, .event = R3RING_REQUEST_END};
	struct r3ring_record record;
	struct r3ring_view view;
	uint64_t keyframe;

	begin_request(1);
	begin_request(2);
	begin_request(3);
	live_note_request(&publisher.live, &end, NULL, 0);
	publisher.totals.steps = 77;
	keyframe = r3ring_writer_next_seq(publisher.writer);
	cr_assert_eq(publish_keyframe(&publisher), 0);
	skip_schema();
	cr_assert(next(&record, &view));
	cr_expect_eq(view.seq, keyframe);
	cr_expect_eq(view.type, R3RING_KEYFRAME);
	cr_expect_eq(view.flags, R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY);
	cr_expect_eq(record.u.keyframe.records, 3);
	cr_expect_eq(record.u.keyframe.live_requests, 2);
	cr_expect_eq(record.u.keyframe.totals.steps, 77);
	cr_assert(next(&record, &view));
	cr_expect_eq(view.type, R3RING_SCHEMA);
	cr_assert(next(&record, &view));
	cr_expect_eq(record.u.request.head.handle, 1);
	cr_expect_eq(view.flags & R3RING_DESC_REPEATED, R3RING_DESC_REPEATED);
	cr_assert(next(&record, &view));
	cr_expect_eq(record.u.request.head.handle, 3);
	cr_expect_eq(r3ring_request_first(&record.u.request.head), 1);
	cr_expect_not(next(&record, &view));
}

Test(daemon_publish, a_keyframe_takes_at_most_a_quarter_of_the_ring)
{
	uint64_t before = r3ring_writer_position(publisher.writer);

	for (uint64_t handle = 1; handle <= 5000; handle++)
		begin_request(handle);
	cr_assert_eq(publish_keyframe(&publisher), 0);
	cr_expect_leq(r3ring_writer_position(publisher.writer) - before, ARENA / 4 + RECORD_MAX);
	cr_expect_leq(r3ring_writer_next_seq(publisher.writer), DEPTH / 4 + 4);
}

Test(daemon_publish, a_keyframe_says_whether_live_requests_are_left_out_of_it)
{
	struct r3ring_record record;
	struct r3ring_view view;

	begin_request(1);
	cr_assert_eq(publish_keyframe(&publisher), 0);
	cr_expect_eq(publisher.left_out, 0);
	skip_schema();
	cr_assert(next(&record, &view));
	cr_expect_eq(view.flags & R3RING_DESC_ABRIDGED, 0);
	cr_assert(next(&record, &view) && next(&record, &view));
	for (uint64_t handle = 2; handle <= DEPTH; handle++)
		begin_request(handle);
	cr_assert_eq(publish_keyframe(&publisher), 0);
	cr_assert(next(&record, &view));
	cr_expect_eq(view.flags,
		     R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY | R3RING_DESC_ABRIDGED);
	cr_expect_eq(publisher.left_out, DEPTH - record.u.keyframe.live_requests);
	cr_expect_gt(publisher.left_out, 0);
}

Test(daemon_publish, one_that_a_request_had_no_memory_for_says_so_too)
{
	struct r3ring_record record;
	struct r3ring_view view;

	publisher.live.lacks = true;
	cr_assert_eq(publish_keyframe(&publisher), 0);
	skip_schema();
	cr_assert(next(&record, &view));
	cr_expect_eq(view.flags & R3RING_DESC_ABRIDGED, R3RING_DESC_ABRIDGED);
}

/* ---- EPLB --------------------------------------------------------------- */

Test(daemon_publish, a_map_that_does_not_fit_one_record_is_told_by_layers)
{
	enum { LAYERS = 16, EXPERTS = 512, REPLICAS = 2, IDS = EXPERTS * REPLICAS };
	uint16_t *map = calloc(LAYERS * IDS, sizeof(*map));
	struct r3ring_record record = {.type = R3RING_EPLB};
	struct r3ring_view view;
	uint32_t layers = 0;

	for (uint32_t i = 0; i < LAYERS * IDS; i++)
		map[i] = (uint16_t)(i % (2 * EXPERTS));
	record.u.eplb.head = (struct r3ring_eplb_record){.epoch = 3,
							 .first_step = 1,
							 .layers = LAYERS,
							 .experts = EXPERTS,
							 .replicas = REPLICAS,
							 .physical = 2 * EXPERTS,
							 .gpus = 1};
	record.u.eplb.map = map;
	cr_assert_eq(publish_map(&publisher, &record), 0);
	skip_schema();
	while (next(&record, &view)) {
		cr_assert_eq(view.type, R3RING_EPLB);
		cr_expect_eq(record.u.eplb.head.first_layer, layers);
		cr_expect_eq(memcmp(record.u.eplb.map, map + layers * IDS,
				    record.u.eplb.head.layers * IDS * sizeof(*map)),
			     0);
		layers += record.u.eplb.head.layers;
	}
	cr_expect_eq(layers, LAYERS);
	free(map);
}

/* What the ring of an earlier generation took as one record. */
static void leave_map(struct live *live, uint32_t layers, uint32_t experts)
{
	struct r3ring_record record = {.type = R3RING_EPLB};
	size_t bytes = sizeof(record.u.eplb.head) + layers * experts * sizeof(uint16_t);
	uint16_t *map = calloc((size_t)layers * experts, sizeof(*map));
	uint8_t *payload = malloc(bytes);

	for (uint32_t i = 0; i < layers * experts; i++)
		map[i] = (uint16_t)(i % experts);
	record.u.eplb.head = (struct r3ring_eplb_record){.epoch = 3,
							 .layers = layers,
							 .experts = experts,
							 .physical = experts,
							 .replicas = 1,
							 .gpus = 1};
	record.u.eplb.map = map;
	cr_assert_eq(r3ring_record_encode(&record, payload, bytes, NULL), (long)bytes);
	cr_assert_eq(live_note_map(live, &record.u.eplb.head, payload, bytes), 0);
	free(payload);
	free(map);
}

Test(daemon_publish, a_map_that_a_larger_ring_left_is_told_by_layers)
{
	enum { LAYERS = 6, EXPERTS = 1024 };
	struct live left = {0};
	struct r3ring_record record;
	struct r3ring_view view;
	uint32_t layers = 0;

	leave_map(&left, LAYERS, EXPERTS);
	cr_assert_eq(publish_carried(&publisher, &left), 0);
	cr_expect_eq(left.bytes, 0);
	/* Keyframes of this ring repeat it likewise. */
	cr_assert_eq(publish_keyframe(&publisher), 0);
	skip_schema();
	while (layers < LAYERS) {
		cr_assert(next(&record, &view));
		cr_assert_eq(view.type, R3RING_EPLB);
		cr_expect_eq(record.u.eplb.head.first_layer, layers);
		cr_expect_eq(record.u.eplb.map[1], 1);
		layers += record.u.eplb.head.layers;
	}
	layers = 0;
	while (next(&record, &view))
		layers += view.type == R3RING_EPLB ? record.u.eplb.head.layers : 0;
	cr_expect_eq(layers, LAYERS);
}

Test(daemon_publish, a_map_of_an_earlier_generation_of_which_no_layer_fits_is_told_as_lost)
{
	struct live left = {0};
	struct r3ring_record record;
	struct r3ring_view view;

	leave_map(&left, 2, RECORD_MAX);
	cr_assert_eq(publish_carried(&publisher, &left), 0);
	skip_schema();
	cr_assert(next(&record, &view));
	cr_assert_eq(view.type, R3RING_LOST);
	cr_expect_eq(record.u.lost.cause, R3RING_CAUSE_TOO_BIG);
	cr_expect_eq(record.u.lost.spans_unknown, 1);
	cr_expect_not(next(&record, &view));
}

/* ---- bounds ------------------------------------------------------------- */

Test(daemon_publish, live_requests_are_bounded_in_memory)
{
	const size_t len = 1024;
	struct r3ring_request_record head = {.event = R3RING_REQUEST_BEGIN};
	uint8_t payload[1024] = {0};
	int r = 0;

	for (head.handle = 1; r == 0 && head.handle < 1000000; head.handle++)
		r = live_note_request(&publisher.live, &head, payload, len);
	cr_expect_eq(r, -ENOBUFS);
	cr_expect_leq(publisher.live.bytes, LIVE_BYTES_MAX);
	cr_expect(publisher.live.lacks);
	live_clear(&publisher.live);
	cr_expect_eq(publisher.live.bytes, 0);
}
