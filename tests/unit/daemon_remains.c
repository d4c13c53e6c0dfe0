/* SPDX-License-Identifier: Apache-2.0 */
/* What the next daemon finds out from a dead one's ring. */
#include <criterion/criterion.h>

#include <errno.h>

#include "ring/internal.h"
#include "tests/unit/dead_ring.h"

TestSuite(daemon_remains, .init = dead_open, .fini = dead_close);

Test(daemon_remains, a_step_at_work_is_known_with_every_part_that_was_told)
{
	dead_step(1, 0);
	dead_end(1);
	dead_step(2, 0);
	dead_layer_part(2, 1, 0);
	dead_layer_part(2, 1, 1);
	dead_layer_part(2, 0, 0);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 1);
	cr_expect_eq(dead.remains.said.step.step, 2);
	cr_expect_eq(dead.remains.said.map_records, 1);
	cr_expect_eq(dead.remains.said.layer_parts[0], 1);
	cr_expect_eq(dead.remains.said.layer_parts[1], 2);
	cr_expect_eq(dead.remains.said.layer_parts[2], 0);
	cr_expect_not(dead.remains.said.unknown);
}

Test(daemon_remains, a_ring_that_claims_what_it_cannot_hold_is_refused_and_not_read_for_ever)
{
	for (uint64_t slot = 0; slot < dead.segment->depth; slot++)
		dead.segment->descs[slot].seq = 1ull << 60;
	dead.segment->lines->tail_seq = ~0ull;
	cr_expect_eq(remains_read(&dead.remains, dead.segment), -EBADMSG);
	cr_expect_eq(remains_count_said(dead.segment, 1), 0);
}

Test(daemon_remains, a_step_that_was_told_as_lost_is_at_work_no_more)
{
	dead_step(1, 0);
	dead_lost(1, 1, R3RING_CAUSE_COPY_FAILED);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 1);
	cr_expect_eq(dead.remains.said.step.step, 0);
	cr_expect_not(dead.remains.said.unknown);
}

Test(daemon_remains, a_step_that_a_closing_daemon_left_to_the_next_generation_is_told_there)
{
	dead_step(1, 0);
	dead_end(1);
	dead_step(2, 0);
	dead_lost(2, 2, R3RING_CAUSE_DAEMON_RESTART);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 1);
	cr_expect_eq(dead.remains.said.step.step, 0);
	cr_expect(dead.remains.said.unknown);
}

Test(daemon_remains, a_dropped_step_whose_loss_was_not_told_is_still_at_work)
{
	dead_drop(1, R3RING_CAUSE_BUFFER_FULL);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 0);
	cr_expect_eq(dead.remains.said.step.step, 1);
	cr_expect_eq(dead.remains.said.step.cause, R3RING_CAUSE_BUFFER_FULL);
}

Test(daemon_remains, a_dropped_step_whose_loss_was_told_is_told_for_good)
{
	dead_drop(1, R3RING_CAUSE_DAEMON_RESTART);
	dead_lost(1, 1, R3RING_CAUSE_DAEMON_RESTART);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 1);
	cr_expect_not(dead.remains.said.unknown);
}

Test(daemon_remains, a_step_without_its_beginning_is_not_known_until_it_ends)
{
	dead_layer_part(5, 0, 0);
	dead_read();
	cr_expect(dead.remains.said.unknown);
	cr_expect_eq(dead.remains.said.layer_parts[0], 0);
	cr_expect_eq(dead.remains.totals.ids_missing, 0);
	remains_free(&dead.remains);
	dead_end(5);
	dead_read();
	cr_expect_not(dead.remains.said.unknown);
	cr_expect_eq(dead.remains.told_step, 5);
	cr_expect_eq(dead.remains.totals.rows, 0);
	cr_expect_eq(dead.remains.totals.layer_rows, 0);
}

Test(daemon_remains, what_is_not_known_stays_so_behind_a_record_that_was_too_big)
{
	dead_layer_part(5, 0, 1);
	cr_assert_eq(publish_too_big(&dead.publisher), 0);
	dead_read();
	cr_expect(dead.remains.said.unknown);
}

Test(daemon_remains, a_record_of_a_step_that_was_told_as_lost_makes_nothing_unknown)
{
	dead_step(1, 0);
	dead_end(1);
	dead_lost(2, 4, R3RING_CAUSE_QUEUE_FULL);
	dead_layer_part(4, 0, 0);
	dead_read();
	cr_expect_not(dead.remains.said.unknown);
}

Test(daemon_remains, the_next_step_begins_without_anything_of_the_one_before)
{
	dead_step(1, 0);
	dead_layer_part(1, 1, 0);
	dead_step(2, 0);
	dead_read();
	cr_expect_eq(dead.remains.said.step.step, 2);
	cr_expect_eq(dead.remains.said.layer_parts[1], 0);
}

Test(daemon_remains, spans_and_rows_of_the_step_at_work_count_and_of_no_other)
{
	const struct r3ring_span span = {.request = 1, .rows = 1, .accepted = R3RING_UNKNOWN_U32};
	const int32_t positions[2] = {0, 1};
	struct r3ring_record spans = {.type = R3RING_SPANS}, rows = {.type = R3RING_ROWS};

	spans.u.spans.head =
		(struct r3ring_spans_record){.step = 2, .spans = 1, .flags = R3RING_SPANS_MORE};
	spans.u.spans.spans = &span;
	rows.u.rows.head =
		(struct r3ring_rows_record){.step = 2, .rows = 2, .content = R3RING_ROWS_POSITIONS};
	rows.u.rows.positions = positions;
	dead_step(2, R3RING_STEP_MAP_CONTINUED);
	dead_put(&spans);
	dead_put(&rows);
	rows.u.rows.head.row = 2;
	dead_put(&rows);
	spans.u.spans.head.step = rows.u.rows.head.step = 1;
	dead_put(&spans);
	dead_put(&rows);
	dead_read();
	cr_expect_eq(dead.remains.said.map_records, 2);
	cr_expect_eq(dead.remains.said.rows, 4);
}

Test(daemon_remains, a_schema_that_is_said_again_takes_nothing_from_the_step_at_work)
{
	dead_step(1, 0);
	dead_layer_part(1, 1, 0);
	cr_assert_eq(publish_schema(&dead.publisher, 0), 0);
	dead_read();
	cr_expect_eq(dead.remains.said.step.step, 1);
	cr_expect_eq(dead.remains.said.layer_parts[1], 1);
	for (uint32_t i = 0; i < DEAD_LAYERS; i++) {
		cr_expect_eq(dead.remains.layers[i].layer_id, dead_layer[i].layer_id);
		cr_expect_eq(dead.remains.schema.u.schema.layers[i].layer_id,
			     dead_layer[i].layer_id);
	}
}

Test(daemon_remains, requests_and_maps_that_live_are_found)
{
	struct r3ring_record request = {.type = R3RING_REQUEST}, map = {.type = R3RING_EPLB};
	const uint16_t places[DEAD_LAYERS * 8] = {0};

	request.u.request.head = (struct r3ring_request_record){
		.handle = 1, .event = R3RING_REQUEST_BEGIN, .id_len = 1};
	request.u.request.id = "r";
	map.u.eplb.head = (struct r3ring_eplb_record){.epoch = 1,
						      .layers = DEAD_LAYERS,
						      .experts = 8,
						      .replicas = 1,
						      .physical = 8,
						      .gpus = 1};
	map.u.eplb.map = places;
	dead_put(&request);
	dead_put(&map);
	dead_read();
	cr_expect_eq(HASH_COUNT(dead.remains.live.requests), 1);
	cr_expect_eq(HASH_COUNT(dead.remains.live.maps), 1);
}

/* Laps the ring; keyframes are published when due. */
static void lap(void)
{
	struct r3ring_record end = {.type = R3RING_REQUEST};

	end.u.request.head = (struct r3ring_request_record){
		.handle = 9, .event = R3RING_REQUEST_END, .reason = R3RING_END_FINISHED};
	for (uint64_t i = 0; i < 2 * dead.segment->depth; i++) {
		dead_put(&end);
		if (keyframe_due(&dead.publisher))
			cr_assert_eq(publish_keyframe(&dead.publisher), 0);
	}
}

Test(daemon_remains, of_a_lapped_ring_all_that_live_are_known_by_a_whole_keyframe_only)
{
	lap();
	dead_read();
	cr_expect_not(dead.remains.live.lacks);
	remains_free(&dead.remains);
	remains_init(&dead.remains);
	dead.publisher.live.lacks = true;
	lap();
	dead_read();
	cr_expect(dead.remains.live.lacks);
}

Test(daemon_remains, totals_count_steps_that_were_never_announced_once)
{
	dead_step(1, 0);
	for (uint32_t layer = 0; layer < DEAD_LAYERS; layer++) {
		dead_layer_part(1, layer, 0);
		dead_layer_part(1, layer, 1);
	}
	dead_end(1);
	dead_lost(2, 4, R3RING_CAUSE_QUEUE_FULL);
	dead_step(5, R3RING_STEP_DROPPED);
	dead_lost(5, 5, R3RING_CAUSE_BUFFER_FULL);
	dead_read();
	cr_expect_eq(dead.remains.totals.steps, 5);
	cr_expect_eq(dead.remains.totals.steps_complete, 1);
	cr_expect_eq(dead.remains.totals.rows, DEAD_ROWS - 1);
	cr_expect_eq(dead.remains.totals.layer_rows, (DEAD_ROWS - 1) * DEAD_LAYERS);
	cr_expect_eq(dead.remains.totals.layer_records, 2 * DEAD_LAYERS);
	/* Of the parts of a layer the first one tells. */
	cr_expect_eq(dead.remains.totals.ids_missing, DEAD_LAYERS);
	cr_expect_eq(dead.remains.totals.ids_out_of_range, 5 * DEAD_LAYERS);
	cr_expect_eq(dead.remains.totals.lost_steps[R3RING_CAUSE_QUEUE_FULL], 3);
	cr_expect_eq(dead.remains.totals.lost_steps[R3RING_CAUSE_BUFFER_FULL], 1);
	cr_expect_eq(dead.remains.totals.lost_rows[R3RING_CAUSE_QUEUE_FULL], 30);
	cr_expect_eq(dead.remains.newest_end_ns, 1000);
}

Test(daemon_remains, of_steps_that_are_lost_those_that_were_counted_are_not_counted_again)
{
	dead_step(1, 0);
	dead_step(2, 0);
	dead_end(2);
	dead_lost(1, 5, R3RING_CAUSE_PRODUCER_DIED);
	dead_lost(6, 6, R3RING_CAUSE_QUEUE_FULL);
	dead_read();
	cr_expect_eq(dead.remains.totals.steps, 6);
}

Test(daemon_remains, a_loss_of_some_steps_that_were_announced_is_no_gap_to_be_told_on)
{
	struct r3ring_record lost = {.type = R3RING_LOST};

	dead_step(1, 0);
	dead_step(2, 0);
	dead_step(3, 0);
	lost.u.lost = (struct r3ring_lost_record){
		.from_step = 1, .to_step = 3, .steps = 2, .cause = R3RING_CAUSE_PRODUCER_DIED};
	dead_put(&lost);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 3);
	cr_expect_eq(dead.remains.said.gap_records, 0);
}

Test(daemon_remains, a_gap_of_several_causes_is_told_on_behind_what_was_told_of_it)
{
	struct r3ring_record lost = {.type = R3RING_LOST};

	dead_step(1, 0);
	dead_end(1);
	lost.u.lost = (struct r3ring_lost_record){
		.from_step = 2, .to_step = 9, .steps = 5, .cause = R3RING_CAUSE_DAEMON_RESTART};
	dead_put(&lost);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 1);
	cr_expect_eq(dead.remains.said.gap_records, 1);
	cr_expect_eq(dead.remains.totals.steps, 1);
	remains_free(&dead.remains);
	lost.u.lost.steps = 3;
	lost.u.lost.cause = R3RING_CAUSE_QUEUE_FULL;
	dead_put(&lost);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 9);
	cr_expect_eq(dead.remains.said.gap_records, 0);
	cr_expect_eq(dead.remains.totals.steps, 9);
}

static void put_cut_end(uint64_t step)
{
	const struct r3ring_missing_layer missing = {.layer_id = dead_layer[2].layer_id,
						     .cause = R3RING_CAUSE_PRODUCER_DIED};
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head = (struct r3ring_step_end_record){
		.step = step, .status = R3RING_STEP_PARTIAL, .missing = 1};
	record.u.step_end.missing = &missing;
	dead_put(&record);
}

Test(daemon_remains, a_step_that_a_producers_death_cut_has_its_end_and_is_not_lost)
{
	dead_step(1, 0);
	put_cut_end(1);
	dead_step(2, 0);
	put_cut_end(2);
	dead_read();
	cr_expect_eq(dead.remains.told_step, 2);
	cr_expect_eq(dead.remains.said.step.step, 0);
	cr_expect_eq(dead.remains.totals.steps, 2);
	cr_expect_eq(dead.remains.totals.steps_partial, 2);
	cr_expect_eq(dead.remains.totals.rows, 2 * (DEAD_ROWS - 1));
	cr_expect_eq(dead.remains.totals.layer_rows, 2 * (DEAD_ROWS - 1) * (DEAD_LAYERS - 1));
	cr_expect_eq(dead.remains.totals.lost_steps[R3RING_CAUSE_PRODUCER_DIED], 0);
}

Test(daemon_remains, totals_go_on_from_the_newest_keyframe)
{
	dead.publisher.totals.steps = 41;
	dead.publisher.newest_step = 41;
	cr_assert_eq(publish_keyframe(&dead.publisher), 0);
	dead_step(42, 0);
	dead_read();
	cr_expect_eq(dead.remains.totals.steps, 42);
	cr_expect_eq(dead.remains.told_step, 41);
	cr_expect_eq(dead.remains.newest_step, 42);
	remains_free(&dead.remains);
	dead_lost(40, 44, R3RING_CAUSE_PRODUCER_DIED);
	dead_read();
	cr_expect_eq(dead.remains.totals.steps, 44);
}

Test(daemon_remains, records_of_a_side_entry_are_counted_without_those_of_an_adoption)
{
	uint64_t begin = r3ring_writer_next_seq(dead.publisher.writer);
	struct r3ring_record request = {.type = R3RING_REQUEST};
	const struct r3ring_lost_record restart = {.cause = R3RING_CAUSE_DAEMON_RESTART};

	request.u.request.head = (struct r3ring_request_record){
		.handle = 1, .event = R3RING_REQUEST_BEGIN, .id_len = 1};
	request.u.request.id = "r";
	cr_expect_eq(remains_count_said(dead.segment, begin), 0);
	dead_put(&request);
	cr_assert_eq(publish_lost(&dead.publisher, &restart), 0);
	cr_assert_eq(publish_keyframe(&dead.publisher), 0);
	cr_expect_eq(remains_count_said(dead.segment, begin), 1);
	cr_expect_eq(remains_count_said(dead.segment, begin + 1), 0);
	cr_expect_eq(remains_count_said(dead.segment, UINT64_MAX), 0);
}

Test(daemon_remains, records_that_another_daemon_published_are_not_published_again)
{
	uint64_t before = r3ring_writer_next_seq(dead.publisher.writer);

	dead.publisher.said = 1;
	dead_step(1, 0);
	cr_expect_eq(r3ring_writer_next_seq(dead.publisher.writer), before);
	dead_end(1);
	cr_expect_eq(r3ring_writer_next_seq(dead.publisher.writer), before + 1);
}
