/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's pages and buffer to be spoilt, and the drain thread that takes them. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/drain_image.h"
#include "tests/support/drain_image_ring.h"
#include "tests/support/record_examples.h"
#include "tests/support/scratch_segment.h"

#define LANE_BYTES 65536u
#define BUFFER_BYTES 65536u
#define ROWS_PER_RECORD 3u
#define ALIGN 64u
#define STALL_NS 1000000u
/* Room for all that an image can make. */
#define RING_ARENA (1u << 18)
#define RING_DEPTH 2048u

static void die(const char *what)
{
	fprintf(stderr, "drain image: %s\n", what);
	exit(1);
}

/* ---- making ------------------------------------------------------------- */

static uint32_t entry_bytes(uint32_t payload_bytes)
{
	return ((uint32_t)sizeof(struct lane_entry) + payload_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* A lane of the image while it is filled. */
struct filling {
	uint8_t *lane;
	struct lane_head *head;
};

/* Returns where its payload goes. */
static void *add_entry(struct filling *filling, const struct lane_head *other,
		       const struct lane_entry *entry)
{
	uint8_t *at = filling->lane + filling->head->position;
	struct lane_entry made = *entry;

	made.bytes = entry_bytes(entry->payload_bytes);
	made.number = ++filling->head->number;
	made.after = other->number;
	if (filling->head->position + made.bytes > DRAIN_IMAGE_LANE)
		die("the example's entries do not fit");
	memcpy(at, &made, sizeof(made));
	filling->head->position += made.bytes;
	return at + sizeof(made);
}

static void add_record(struct drain_image *image, const struct r3ring_record *record)
{
	struct filling filling = {image->sides, &image->words.side_head};
	struct lane_entry entry = {.type = LANE_RECORD, .record_type = record->type};
	void *payload;

	entry.payload_bytes = (uint32_t)r3ring_record_size(record);
	payload = add_entry(&filling, &image->words.step_head, &entry);
	if (r3ring_record_encode(record, payload, entry.payload_bytes, NULL) !=
	    (long)entry.payload_bytes)
		die("an example record is refused");
}

static void add_example(struct drain_image *image, uint16_t type)
{
	struct r3ring_record record;

	example_record(&record, type, EXAMPLE_TYPICAL);
	add_record(image, &record);
}

static void add_step(struct drain_image *image, const struct r3ring_step_record *head,
		     const struct lane_step *lane)
{
	static const struct r3ring_span span = {.request = 1, .rows = DRAIN_IMAGE_ROWS};
	struct filling filling = {image->steps, &image->words.step_head};
	struct r3ring_record record = {.type = R3RING_STEP};
	struct lane_entry entry = {.type = LANE_STEP, .record_type = R3RING_STEP};
	uint8_t *payload;

	record.u.step.head = *head;
	record.u.step.head.spans = 1;
	record.u.step.spans = &span;
	entry.payload_bytes = (uint32_t)(sizeof(*lane) + r3ring_record_size(&record));
	payload = add_entry(&filling, &image->words.side_head, &entry);
	memcpy(payload, lane, sizeof(*lane));
	if (r3ring_record_encode(&record, payload + sizeof(*lane),
				 entry.payload_bytes - sizeof(*lane), NULL) < 0)
		die("the example step is refused");
}

static struct extent_geometry geometry(void)
{
	return (struct extent_geometry){.layers = DRAIN_IMAGE_LAYERS,
					.top_k = DRAIN_IMAGE_TOP_K,
					.experts = DRAIN_IMAGE_EXPERTS,
					.rows_per_record = ROWS_PER_RECORD,
					.captures_rows = 1};
}

/* The slot of @step with the bells of @layers layers, and its end. */
static void ring_bells(struct drain_image *image, uint64_t step, uint32_t layers)
{
	uint8_t *at =
		image->bells + step % DRAIN_IMAGE_SLOTS * extent_slot_bytes(DRAIN_IMAGE_LAYERS);
	const struct extent_slot slot = {.begin_step = step,
					 .begin_ns = 1,
					 .end_step = step,
					 .end_ns = 2,
					 .rows_step = step,
					 .rows_content = R3RING_ROWS_POSITIONS};
	const struct extent_bell bell = {.step = step, .rows = DRAIN_IMAGE_ROWS};

	memcpy(at, &slot, sizeof(slot));
	for (uint32_t layer = 0; layer < layers; layer++)
		memcpy(at + sizeof(slot) + layer * sizeof(bell), &bell, sizeof(bell));
}

static void add_captured_step(struct drain_image *image, uint64_t step, uint32_t layers)
{
	const struct extent_geometry g = geometry();
	const struct r3ring_step_record head = {.step = step,
						.total_rows = DRAIN_IMAGE_ROWS,
						.row_end = DRAIN_IMAGE_ROWS,
						.valid_end = DRAIN_IMAGE_ROWS};
	struct lane_step lane = {.rows_before = (step - 1) * DRAIN_IMAGE_ROWS,
				 .extent_offset = EXTENT_NONE,
				 .slot = (uint32_t)(step % DRAIN_IMAGE_SLOTS),
				 .cause = R3RING_CAUSE_BUFFER_FULL};

	if (layers) {
		lane.extent_offset = step == 1 ? 0 : extent_bytes(&g, DRAIN_IMAGE_ROWS);
		lane.extents = step;
		ring_bells(image, step, layers);
	}
	add_step(image, &head, &lane);
}

void drain_image_make(struct drain_image *image)
{
	memset(image, 0, sizeof(*image));
	add_example(image, R3RING_REQUEST);
	add_captured_step(image, 1, DRAIN_IMAGE_LAYERS);
	add_example(image, R3RING_SPANS);
	add_example(image, R3RING_EPLB);
	add_captured_step(image, 2, DRAIN_IMAGE_LAYERS - 1);
	add_example(image, R3RING_KEY_COPY);
	add_captured_step(image, 3, 0);
	image->words.begun[1].step = DRAIN_IMAGE_STEPS;
	image->words.begun[1].rows = DRAIN_IMAGE_STEPS * DRAIN_IMAGE_ROWS;
}

/* ---- making right ------------------------------------------------------- */

/* Returns the bytes of the entry, 0 where none is. */
static uint32_t frame_entry(uint8_t *at, uint32_t room, enum lane_entry_type type, uint64_t number,
			    uint64_t others)
{
	uint32_t least = type == LANE_STEP ? sizeof(struct lane_step) : 0;
	struct lane_entry entry;

	memcpy(&entry, at, sizeof(entry));
	if (!entry.type || room < sizeof(entry) + least)
		return 0;
	if (entry.payload_bytes < least)
		entry.payload_bytes = least;
	if (entry.payload_bytes > room - sizeof(entry))
		entry.payload_bytes = room - (uint32_t)sizeof(entry);
	entry.bytes = entry_bytes(entry.payload_bytes);
	entry.type = (uint16_t)type;
	entry.number = number;
	if (entry.after > others)
		entry.after = others;
	memcpy(at, &entry, sizeof(entry));
	return entry.bytes;
}

static void frame_lane(uint8_t *lane, struct lane_head *head, enum lane_entry_type type,
		       uint64_t others)
{
	uint32_t bytes = 0, offset = 0;

	head->number = 0;
	while (offset + sizeof(struct lane_entry) <= DRAIN_IMAGE_LANE &&
	       (bytes = frame_entry(lane + offset, DRAIN_IMAGE_LANE - offset, type,
				    head->number + 1, others))) {
		offset += bytes;
		head->number++;
	}
	head->position = offset;
}

void drain_image_frame(struct drain_image *image)
{
	struct pages_words *words = &image->words;

	words->step_tail = 0;
	words->side_tail = 0;
	frame_lane(image->steps, &words->step_head, LANE_STEP, DRAIN_IMAGE_LANE);
	frame_lane(image->sides, &words->side_head, LANE_RECORD, words->step_head.number);
	frame_lane(image->steps, &words->step_head, LANE_STEP, words->side_head.number);
}

/* ---- working it off ----------------------------------------------------- */

void drain_image_open(struct drain_image_rig *rig)
{
	const struct device_ops *ops = &device_host_ops;
	struct r3ring_error err = {0};

	memset(rig, 0, sizeof(*rig));
	if (pages_create(&rig->pages, DRAIN_IMAGE_LAYERS, LANE_BYTES, LANE_BYTES, &err) < 0 ||
	    ops->open(&rig->device, &(struct device_options){0}, &err) < 0 ||
	    ops->buffer_alloc(rig->device, R3RING_BUFFER_HOST, BUFFER_BYTES, &rig->buffer, &err) <
		    0)
		die(err.text);
	rig->segment = scratch_segment_make(RING_DEPTH, RING_ARENA);
	for (uint32_t i = 0; i < DRAIN_IMAGE_LAYERS; i++)
		rig->layers[i].layer_id = (int32_t)i;
	rig->schema.type = R3RING_SCHEMA;
	rig->schema.u.schema.head =
		(struct r3ring_schema_record){.layers = DRAIN_IMAGE_LAYERS,
					      .experts = DRAIN_IMAGE_EXPERTS,
					      .top_k = DRAIN_IMAGE_TOP_K,
					      .max_rows = DRAIN_IMAGE_MAX_ROWS,
					      .rows_per_record = ROWS_PER_RECORD,
					      .captures_rows = 1,
					      .clock = 1,
					      .model = "image"};
	rig->schema.u.schema.layers = rig->layers;
}

void drain_image_close(struct drain_image_rig *rig)
{
	r3ring_segment_close(rig->segment);
	device_host_ops.buffer_free(rig->device, &rig->buffer);
	device_host_ops.close(rig->device);
	pages_release(&rig->pages);
}

/* The bytes of a lane in place; its first entry ends where the real lane does, if asked. */
static uint64_t put_lane(uint8_t *to, const uint8_t *lane, bool wraps)
{
	struct lane_entry first;
	uint64_t start = 0;

	memcpy(&first, lane, sizeof(first));
	if (wraps && first.bytes % ALIGN == 0 && first.bytes <= DRAIN_IMAGE_LANE)
		start = LANE_BYTES - first.bytes;
	memset(to, 0, LANE_BYTES);
	for (uint64_t i = 0; i < DRAIN_IMAGE_LANE; i += ALIGN)
		memcpy(to + (start + i) % LANE_BYTES, lane + i, ALIGN);
	return start;
}

static void put_image(struct drain_image_rig *rig, const struct drain_image *image, bool wraps)
{
	struct pages *pages = &rig->pages;
	uint64_t step_start = put_lane(pages->step_lane, image->steps, wraps);
	uint64_t side_start = put_lane(pages->side_lane, image->sides, wraps);

	*pages->words = image->words;
	pages->words->step_head.position += step_start;
	pages->words->step_tail += step_start;
	pages->words->side_head.position += side_start;
	pages->words->side_tail += side_start;
	memcpy(pages->bells, image->bells, sizeof(image->bells));
	memcpy(rig->buffer.base, image->buffer, sizeof(image->buffer));
}

/* Returns whether the pages are taken; the thread has nothing of them yet. */
static bool attach(struct drain_image_rig *rig, const struct drain_image_run *run,
		   struct drain *drain)
{
	const struct r3ring_hello_producer_message hello = {
		.buffer_kind = R3RING_BUFFER_HOST,
		.reconnect = run->resumed,
		.pages_bytes = rig->pages.bytes,
		.buffer_bytes = BUFFER_BYTES,
	};
	const struct drain_options options = {
		.hello = &hello,
		.pages_fd = dup(rig->pages.fd),
		.buffer_fd = dup(rig->buffer.fd),
	};
	const struct stall_policy policy = {.limit_ns = STALL_NS, .drop = run->drop};
	struct r3ring_error err;
	int r;

	drain_init(drain, "image");
	r = drain_attach(drain, &options, &rig->schema.u.schema.head, &err);
	if (!drain->pages.base)
		close(options.pages_fd);
	if (!drain->buffer.base)
		close(options.buffer_fd);
	return r == 0 && drain_prepare(drain, rig->segment, &err) == 0 &&
	       drain_take_place(drain, 0, policy, &err) == 0;
}

static void launch(struct drain_image_rig *rig, struct drain *drain)
{
	struct live none = {0};
	struct r3ring_error err;

	if (drain_begin(drain, rig->segment, &rig->schema, &none, &err) < 0 ||
	    drain_launch(drain, &err) < 0)
		die(err.text);
}

static void submit_late(struct drain_image_rig *rig, const struct drain_image *image,
			const struct drain_image_run *run, struct drain *drain)
{
	struct pollfd done = {.fd = drain->done_fd, .events = POLLIN};

	drain_stop(drain, UINT64_MAX);
	if (poll(&done, 1, -1) != 1)
		die("the thread's end is not to be seen");
	put_image(rig, image, run->wraps);
	drain_producer_gone(drain, run->producer);
}

static void work_off(struct drain_image_rig *rig, const struct drain_image *image,
		     const struct drain_image_run *run, struct drain *drain,
		     void (*meanwhile)(void *ctx), void *ctx)
{
	const struct r3ring_closed_record closed = {.reason = R3RING_CLOSED_SHUTDOWN};

	/* Read when the thread begins. */
	drain->producer = run->late ? DRAIN_PRODUCER_ALIVE : run->producer;
	launch(rig, drain);
	if (run->late)
		submit_late(rig, image, run, drain);
	if (meanwhile)
		meanwhile(ctx);
	drain_join(drain);
	drain_end_requests(drain, R3RING_END_ABORTED);
	publish_closed(&drain->publisher, &closed);
}

void drain_image_work(struct drain_image_rig *rig, const struct drain_image *image,
		      const struct drain_image_run *run, void (*meanwhile)(void *ctx), void *ctx,
		      struct drain_image_result *result)
{
	static const struct drain_image empty;
	struct drain_report report;
	struct drain drain;

	*result = (struct drain_image_result){0};
	put_image(rig, run->late ? &empty : image, run->wraps);
	if (!attach(rig, run, &drain)) {
		result->refused = true;
		drain_close(&drain);
		return;
	}
	scratch_segment_clear(rig->segment);
	work_off(rig, image, run, &drain, meanwhile, ctx);
	drain_get_report(&drain, &report);
	result->failed = report.failed;
	drain_image_ring_read(rig->segment, result);
	drain_close(&drain);
}
