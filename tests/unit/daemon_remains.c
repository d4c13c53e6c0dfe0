/* SPDX-License-Identifier: Apache-2.0 */
/* What the next daemon finds out from a dead one's ring, and when it goes on in it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_daemon/channel.h"
#include "capture_daemon/orphans.h"
#include "capture_daemon/remains.h"
#include "ring/internal.h"

#define LAYERS 3u
#define TOP_K 2u
#define ROWS 4u
#define GENERATION 7u

static struct publisher publisher;
static struct r3ring_segment *segment;
static struct remains remains;
static struct r3ring_layer_entry layers[LAYERS] = {
	{.layer_id = 1}, {.layer_id = 2}, {.layer_id = 3}};

static struct r3ring_record schema_record(void)
{
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	record.u.schema.head = (struct r3ring_schema_record){
		.layers = LAYERS,
		.experts = 8,
		.top_k = TOP_K,
		.max_rows = 16,
		.rows_per_record = 2,
		.clock = 1,
		.model = "unit",
	};
	record.u.schema.layers = layers;
	return record;
}

static void start(void)
{
	char name[64];
	const struct r3ring_segment_options options = {
		.size = sizeof(options),
		.name = name,
		.label = "unit/0",
		.arena_bytes = 65536,
		.depth = 1024,
		.generation = GENERATION,
	};
	struct r3ring_record schema = schema_record();

	snprintf(name, sizeof(name), "/r3ring-unit-remains-%d", getpid());
	cr_assert_eq(r3ring_segment_create(&segment, &options, NULL), 0);
	r3ring_segment_unlink(segment);
	cr_assert_eq(publisher_open(&publisher, segment, &schema), 0);
	cr_assert_eq(publish_schema(&publisher, R3RING_DESC_BOUNDARY), 0);
	remains_init(&remains);
}

static void finish(void)
{
	remains_free(&remains);
	publisher_close(&publisher);
	r3ring_segment_close(segment);
}

TestSuite(daemon_remains, .init = start, .fini = finish);

/* ---- records ------------------------------------------------------------ */

static void put(const struct r3ring_record *record)
{
	cr_assert_eq(publish_record(&publisher, record, 0), 0);
}

static void put_step_of_cause(uint64_t step, uint32_t flags, enum r3ring_cause cause)
{
	struct r3ring_record record = {.type = R3RING_STEP};

	record.u.step.head = (struct r3ring_step_record){.step = step,
							 .total_rows = ROWS,
							 .row_end = ROWS,
							 .valid_end = ROWS - 1,
							 .flags = flags,
							 .cause = (uint16_t)cause};
	put(&record);
}

static void put_step(uint64_t step, uint32_t flags)
{
	put_step_of_cause(step, flags, R3RING_CAUSE_NONE);
}

static void put_drop(uint64_t step, enum r3ring_cause cause)
{
	put_step_of_cause(step, R3RING_STEP_DROPPED, cause);
}

/* A layer of four rows takes two records. */
static void put_layer_part(uint64_t step, uint32_t layer, uint32_t part)
{
	const uint16_t ids[2 * TOP_K] = {0};
	struct r3ring_record record = {.type = R3RING_LAYER};

	record.u.layer.head = (struct r3ring_layer_record){
		.step = step,
		.layer_id = layers[layer].layer_id,
		.layer_index = (uint16_t)layer,
		.row = 2 * part,
		.rows = 2,
		.total_rows = ROWS,
		.valid_rows = 2 - part,
		.missing = 1,
		.top_k = TOP_K,
	};
	record.u.layer.ids = ids;
	put(&record);
}

static void put_end(uint64_t step)
{
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head =
		(struct r3ring_step_end_record){.step = step, .status = R3RING_STEP_COMPLETE};
	put(&record);
}

static void put_lost(uint64_t from, uint64_t to, enum r3ring_cause cause)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = (struct r3ring_lost_record){
		.from_step = from, .to_step = to, .steps = to - from + 1, .cause = cause};
	put(&record);
}

static void read_back(void)
{
	cr_assert_eq(remains_read(&remains, segment), 0);
}

/* ---- what is found ------------------------------------------------------ */

Test(daemon_remains, a_step_at_work_is_known_with_every_part_that_was_told)
{
	put_step(1, 0);
	put_end(1);
	put_step(2, 0);
	put_layer_part(2, 1, 0);
	put_layer_part(2, 1, 1);
	put_layer_part(2, 0, 0);
	read_back();
	cr_expect_eq(remains.told_step, 1);
	cr_expect_eq(remains.said.step.step, 2);
	cr_expect_eq(remains.said.map_records, 1);
	cr_expect_eq(remains.said.layer_parts[0], 1);
	cr_expect_eq(remains.said.layer_parts[1], 2);
	cr_expect_eq(remains.said.layer_parts[2], 0);
	cr_expect_not(remains.said.unknown);
}

Test(daemon_remains, a_ring_that_claims_what_it_cannot_hold_is_refused_and_not_read_for_ever)
{
	for (uint64_t slot = 0; slot < segment->depth; slot++)
		segment->descs[slot].seq = 1ull << 60;
	segment->lines->tail_seq = ~0ull;
	cr_expect_eq(remains_read(&remains, segment), -EBADMSG);
	cr_expect_eq(remains_count_said(segment, 1), 0);
}

Test(daemon_remains, a_step_that_was_told_as_lost_is_at_work_no_more)
{
	put_step(1, 0);
	put_lost(1, 1, R3RING_CAUSE_COPY_FAILED);
	read_back();
	cr_expect_eq(remains.told_step, 1);
	cr_expect_eq(remains.said.step.step, 0);
	cr_expect_not(remains.said.unknown);
}

Test(daemon_remains, a_step_that_a_closing_daemon_left_to_the_next_generation_is_told_there)
{
	put_step(1, 0);
	put_end(1);
	put_step(2, 0);
	put_lost(2, 2, R3RING_CAUSE_DAEMON_RESTART);
	read_back();
	cr_expect_eq(remains.told_step, 1);
	cr_expect_eq(remains.said.step.step, 0);
	cr_expect(remains.said.unknown);
}

Test(daemon_remains, a_dropped_step_whose_loss_was_not_told_is_still_at_work)
{
	put_drop(1, R3RING_CAUSE_BUFFER_FULL);
	read_back();
	cr_expect_eq(remains.told_step, 0);
	cr_expect_eq(remains.said.step.step, 1);
	cr_expect_eq(remains.said.step.cause, R3RING_CAUSE_BUFFER_FULL);
}

Test(daemon_remains, a_dropped_step_whose_loss_was_told_is_told_for_good)
{
	put_drop(1, R3RING_CAUSE_DAEMON_RESTART);
	put_lost(1, 1, R3RING_CAUSE_DAEMON_RESTART);
	read_back();
	cr_expect_eq(remains.told_step, 1);
	cr_expect_not(remains.said.unknown);
}

Test(daemon_remains, a_step_without_its_beginning_is_not_known_until_it_ends)
{
	put_layer_part(5, 0, 1);
	read_back();
	cr_expect(remains.said.unknown);
	remains_free(&remains);
	put_end(5);
	read_back();
	cr_expect_not(remains.said.unknown);
	cr_expect_eq(remains.told_step, 5);
}

Test(daemon_remains, totals_count_steps_that_were_never_announced_once)
{
	put_step(1, 0);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		put_layer_part(1, layer, 0);
		put_layer_part(1, layer, 1);
	}
	put_end(1);
	put_lost(2, 4, R3RING_CAUSE_QUEUE_FULL);
	put_step(5, R3RING_STEP_DROPPED);
	put_lost(5, 5, R3RING_CAUSE_BUFFER_FULL);
	read_back();
	cr_expect_eq(remains.totals.steps, 5);
	cr_expect_eq(remains.totals.steps_complete, 1);
	cr_expect_eq(remains.totals.rows, ROWS - 1);
	cr_expect_eq(remains.totals.layer_rows, (ROWS - 1) * LAYERS);
	cr_expect_eq(remains.totals.layer_records, 2 * LAYERS);
	cr_expect_eq(remains.totals.ids_missing, LAYERS);
	cr_expect_eq(remains.totals.lost_steps[R3RING_CAUSE_QUEUE_FULL], 3);
	cr_expect_eq(remains.totals.lost_steps[R3RING_CAUSE_BUFFER_FULL], 1);
}

Test(daemon_remains, a_gap_of_several_causes_is_told_on_behind_what_was_told_of_it)
{
	struct r3ring_record lost = {.type = R3RING_LOST};

	put_step(1, 0);
	put_end(1);
	lost.u.lost = (struct r3ring_lost_record){
		.from_step = 2, .to_step = 9, .steps = 5, .cause = R3RING_CAUSE_DAEMON_RESTART};
	put(&lost);
	read_back();
	cr_expect_eq(remains.told_step, 1);
	cr_expect_eq(remains.said.gap_records, 1);
	cr_expect_eq(remains.totals.steps, 1);
	remains_free(&remains);
	lost.u.lost.steps = 3;
	lost.u.lost.cause = R3RING_CAUSE_QUEUE_FULL;
	put(&lost);
	read_back();
	cr_expect_eq(remains.told_step, 9);
	cr_expect_eq(remains.said.gap_records, 0);
	cr_expect_eq(remains.totals.steps, 9);
}

static void put_cut_end(uint64_t step)
{
	const struct r3ring_missing_layer missing = {.layer_id = layers[2].layer_id,
						     .cause = R3RING_CAUSE_PRODUCER_DIED};
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head = (struct r3ring_step_end_record){
		.step = step, .status = R3RING_STEP_PARTIAL, .missing = 1};
	record.u.step_end.missing = &missing;
	put(&record);
}

Test(daemon_remains, what_a_producers_death_cut_is_known_until_it_was_told_as_lost)
{
	put_step(1, 0);
	put_cut_end(1);
	put_step(2, 0);
	put_cut_end(2);
	read_back();
	cr_expect_eq(remains.totals.rows, 0);
	cr_expect_eq(remains.cut_short.from_step, 1);
	cr_expect_eq(remains.cut_short.to_step, 2);
	cr_expect_eq(remains.cut_short.steps, 2);
	cr_expect_eq(remains.cut_short.rows, 2 * (ROWS - 1));
	cr_expect_eq(remains.cut_short.layer_rows, 2 * (ROWS - 1));
	remains_free(&remains);
	put_lost(1, 2, R3RING_CAUSE_PRODUCER_DIED);
	read_back();
	cr_expect_eq(remains.cut_short.steps, 0);
}

Test(daemon_remains, totals_go_on_from_the_newest_keyframe)
{
	publisher.totals.steps = 41;
	publisher.newest_step = 41;
	cr_assert_eq(publish_keyframe(&publisher), 0);
	put_step(42, 0);
	read_back();
	cr_expect_eq(remains.totals.steps, 42);
	cr_expect_eq(remains.told_step, 41);
	cr_expect_eq(remains.newest_step, 42);
}

Test(daemon_remains, records_of_a_side_entry_are_counted_without_those_of_an_adoption)
{
	uint64_t begin = r3ring_writer_next_seq(publisher.writer);
	struct r3ring_record request = {.type = R3RING_REQUEST};
	const struct r3ring_lost_record restart = {.cause = R3RING_CAUSE_DAEMON_RESTART};

	request.u.request.head = (struct r3ring_request_record){
		.handle = 1, .event = R3RING_REQUEST_BEGIN, .id_len = 1};
	request.u.request.id = "r";
	cr_expect_eq(remains_count_said(segment, begin), 0);
	put(&request);
	cr_assert_eq(publish_lost(&publisher, &restart), 0);
	cr_assert_eq(publish_keyframe(&publisher), 0);
	cr_expect_eq(remains_count_said(segment, begin), 1);
	cr_expect_eq(remains_count_said(segment, begin + 1), 0);
	cr_expect_eq(remains_count_said(segment, UINT64_MAX), 0);
}

Test(daemon_remains, records_that_another_daemon_published_are_not_published_again)
{
	uint64_t before = r3ring_writer_next_seq(publisher.writer);

	publisher.said = 1;
	put_step(1, 0);
	cr_expect_eq(r3ring_writer_next_seq(publisher.writer), before);
	put_end(1);
	cr_expect_eq(r3ring_writer_next_seq(publisher.writer), before + 1);
}

/* ---- what of it is lost ----------------------------------------------------- */

static struct channel orphan;

/* The ring as a daemon finds it that adopts. */
static void adopt_remains(void)
{
	read_back();
	orphan.state = CHANNEL_ORPHAN;
	orphan.segment = segment;
	orphan.drain.publisher = publisher;
	orphan_take(&orphan, &remains);
}

static void give_back(void)
{
	publisher = orphan.drain.publisher;
	free(orphan.drain.said.layer_parts);
}

/* Reads what was lost of step 2 from the ring. */
static struct r3ring_lost_record lost_of_step_2(void)
{
	struct r3ring_lost_record found = {0};
	struct r3ring_record record;
	struct r3ring_cursor *cursor;
	struct r3ring_view view;

	cr_assert_eq(r3ring_cursor_open(&cursor, segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0), 0);
	while (r3ring_cursor_next(cursor, &view) == 1) {
		cr_assert_eq(r3ring_record_decode(&record, view.type, view.data, view.len, NULL),
			     0);
		if (record.type == R3RING_LOST && record.u.lost.to_step == 2) {
			cr_expect_eq(found.steps, 0);
			found = record.u.lost;
		}
	}
	r3ring_cursor_close(cursor);
	return found;
}

Test(daemon_remains, a_dropped_step_is_lost_by_its_own_cause_though_its_ring_is_not_gone_on_with)
{
	struct r3ring_lost_record lost;

	put_step(1, 0);
	put_end(1);
	put_drop(2, R3RING_CAUSE_BUFFER_FULL);
	adopt_remains();
	cr_expect_eq(orphan_told(&orphan).step, 2);
	orphan_say_lost(&orphan);
	cr_expect_eq(orphan_told(&orphan).step, 2);
	lost = lost_of_step_2();
	cr_expect_eq(lost.from_step, 2);
	cr_expect_eq(lost.steps, 1);
	cr_expect_eq(lost.cause, R3RING_CAUSE_BUFFER_FULL);
	cr_expect_eq(lost.rows, ROWS - 1);
	cr_expect_eq(lost.layer_rows, (ROWS - 1) * LAYERS);
	give_back();
}

Test(daemon_remains, a_step_at_work_is_lost_in_its_ring_and_left_to_the_next_generation)
{
	struct r3ring_lost_record lost;

	put_step(1, 0);
	put_end(1);
	put_step(2, 0);
	adopt_remains();
	cr_expect_eq(orphan_told(&orphan).step, 1);
	orphan_say_lost(&orphan);
	cr_expect_eq(orphan_told(&orphan).step, 1);
	lost = lost_of_step_2();
	cr_expect_eq(lost.steps, 1);
	cr_expect_eq(lost.cause, R3RING_CAUSE_DAEMON_RESTART);
	give_back();
}

/* ---- when it is gone on with -------------------------------------------- */

static struct r3ring_hello_producer_message hello;

static bool continues(const struct r3ring_record *schema)
{
	orphan.state = CHANNEL_ORPHAN;
	orphan.segment = segment;
	orphan.drain.publisher = publisher;
	return orphan_continues(&orphan, &hello, schema);
}

static void say_hello(void)
{
	hello = (struct r3ring_hello_producer_message){
		.buffer_kind = R3RING_BUFFER_HOST,
		.reconnect = 1,
		.last_generation = GENERATION,
	};
}

Test(daemon_remains, a_ring_in_host_memory_is_gone_on_with)
{
	const struct r3ring_record schema = schema_record();

	say_hello();
	cr_expect(continues(&schema));
}

Test(daemon_remains, a_ring_that_a_device_may_still_write_is_never_gone_on_with)
{
	const struct r3ring_record schema = schema_record();

	say_hello();
	hello.buffer_kind = R3RING_BUFFER_CUDA_IPC;
	cr_expect_not(continues(&schema));
	hello.buffer_kind = R3RING_BUFFER_CUDA_VMM;
	cr_expect_not(continues(&schema));
}

Test(daemon_remains, only_the_producer_of_that_generation_goes_on)
{
	const struct r3ring_record schema = schema_record();

	say_hello();
	hello.last_generation = GENERATION - 1;
	cr_expect_not(continues(&schema));
	say_hello();
	hello.reconnect = 0;
	cr_expect_not(continues(&schema));
}

Test(daemon_remains, a_producer_with_another_schema_does_not_go_on)
{
	struct r3ring_record schema = schema_record();
	struct r3ring_layer_entry other[LAYERS];

	say_hello();
	memcpy(other, layers, sizeof(other));
	other[2].layer_id = 9;
	schema.u.schema.layers = other;
	cr_expect_not(continues(&schema));
	schema = schema_record();
	schema.u.schema.head.rows_per_record = 4;
	cr_expect_not(continues(&schema));
}

Test(daemon_remains, a_ring_without_the_beginning_of_its_step_is_not_gone_on_with)
{
	const struct r3ring_record schema = schema_record();

	say_hello();
	orphan.drain.said.unknown = true;
	cr_expect_not(continues(&schema));
}
