/* SPDX-License-Identifier: Apache-2.0 */
/* What an archive's segments say again to live, behind keyframes that leave requests out. */
#include <criterion/criterion.h>

#include <string.h>

#include <r3ring/record.h>

#include "archive/channel_state.h"

static struct channel_states states;
static uint64_t seq;

static void start(void)
{
	const struct archive_generation generation = {.generation = 1};

	seq = 0;
	cr_assert_eq(channel_states_add(&states, "small/0", 7), 0);
	channel_state_generation(states.channels, &generation);
}

static void finish(void)
{
	channel_states_release(&states);
}

TestSuite(archive_live, .init = start, .fini = finish);

static void say(const struct r3ring_record *record, uint16_t flags)
{
	_Alignas(8) uint8_t payload[4096];
	long len = r3ring_record_encode(record, payload, sizeof(payload), NULL);
	const struct r3ring_view view = {.seq = ++seq,
					 .type = record->type,
					 .flags = flags,
					 .len = (uint32_t)len,
					 .data = payload};

	cr_assert_gt(len, 0);
	cr_assert_eq(channel_state_record(states.channels, &view), 0);
}

static void say_schema(uint16_t flags)
{
	const struct r3ring_layer_entry layer = {.layer_id = 0};
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	record.u.schema.head = (struct r3ring_schema_record){.layers = 1,
							     .experts = 8,
							     .top_k = 2,
							     .max_rows = 4,
							     .rows_per_record = 4,
							     .clock = 1,
							     .model = "unit"};
	record.u.schema.layers = &layer;
	say(&record, flags);
}

static void say_begin(uint64_t handle, uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle, .event = R3RING_REQUEST_BEGIN, .id_len = 1};
	record.u.request.id = "r";
	say(&record, flags);
}

/* One that names the second request only. */
static void say_keyframe(uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.records = 2;
	record.u.keyframe.live_requests = 1;
	say(&record, R3RING_DESC_KEYFRAME | flags);
	say_schema(R3RING_DESC_REPEATED);
	say_begin(2, R3RING_DESC_REPEATED);
}

static void say_two_live(void)
{
	say_schema(0);
	say_begin(1, 0);
	say_begin(2, 0);
}

static void lose_records(void)
{
	const struct archive_gap gap = {.from_seq = seq + 1, .to_seq = seq + 9, .lost = 9};

	channel_state_gap(states.channels, &gap);
	seq += 9;
}

static void expect_live(unsigned int requests, bool lacks)
{
	cr_expect_eq(HASH_COUNT(states.channels[0].live.requests), requests);
	cr_expect_eq(states.channels[0].live.lacks, lacks);
	cr_expect(states.channels[0].whole);
}

Test(archive_live, where_all_was_seen_an_abridged_keyframe_takes_nothing_away)
{
	say_two_live();
	say_keyframe(R3RING_DESC_ABRIDGED);
	expect_live(2, false);
}

Test(archive_live, behind_a_gap_what_was_left_out_is_said_again_as_not_all_that_lives)
{
	say_two_live();
	lose_records();
	say_keyframe(R3RING_DESC_ABRIDGED);
	expect_live(2, true);
	say_keyframe(0);
	expect_live(1, false);
}

Test(archive_live, of_a_channel_that_was_come_to_late_more_may_live_than_is_said)
{
	seq = 500;
	say_keyframe(R3RING_DESC_ABRIDGED);
	expect_live(1, true);
}

Test(archive_live, behind_a_gap_a_keyframe_that_was_cut_says_not_what_lives)
{
	struct r3ring_record lost = {.type = R3RING_LOST,
				     .u.lost.cause = R3RING_CAUSE_DAEMON_RESTART};
	struct r3ring_record keyframe = {.type = R3RING_KEYFRAME, .u.keyframe.records = 9};

	say_two_live();
	lose_records();
	say(&keyframe, R3RING_DESC_KEYFRAME);
	say(&lost, 0);
	cr_expect_not(states.channels[0].whole);
	say_keyframe(0);
	expect_live(1, false);
}
