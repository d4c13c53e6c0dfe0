/* SPDX-License-Identifier: Apache-2.0 */
/* Which request a handle stands for: only what is certain. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <r3ring/reader.h>

static struct r3ring_requests *requests;
static uint64_t generation;
static uint64_t seq; /* of the record fed last */

static void setup(void)
{
	requests = r3ring_requests_create();
	cr_assert_not_null(requests);
	generation = 1;
}

static void teardown(void)
{
	r3ring_requests_destroy(requests);
}

TestSuite(requests, .init = setup, .fini = teardown);

static int feed(const struct r3ring_record *record, uint16_t flags)
{
	struct r3ring_view view = {
		.seq = ++seq,
		.generation = generation,
		.type = record->type,
		.flags = flags,
	};

	return r3ring_requests_feed(requests, &view, record);
}

static void schema(uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	cr_assert_eq(feed(&record, flags), 0);
}

static void beginning(void)
{
	seq = 0;
	schema(R3RING_DESC_BOUNDARY);
}

static int begin_flagged(uint64_t handle, const char *id, uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head.handle = handle;
	record.u.request.head.event = R3RING_REQUEST_BEGIN;
	record.u.request.head.id_len = (uint16_t)strlen(id);
	record.u.request.id = id;
	return feed(&record, flags);
}

static void begin(uint64_t handle, const char *id)
{
	cr_assert_eq(begin_flagged(handle, id, 0), 0);
}

static void repeat(uint64_t handle, const char *id)
{
	cr_assert_eq(begin_flagged(handle, id, R3RING_DESC_REPEATED), 0);
}

static void end(uint64_t handle)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head.handle = handle;
	record.u.request.head.event = R3RING_REQUEST_END;
	record.u.request.head.reason = R3RING_END_FINISHED;
	cr_assert_eq(feed(&record, 0), 0);
}

static void keyframe_flagged(uint32_t records, uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.records = records;
	cr_assert_eq(feed(&record, R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY | flags), 0);
}

static void keyframe(uint32_t records)
{
	keyframe_flagged(records, 0);
}

/* A keyframe that names one request of those that live. */
static void abridged_keyframe(uint64_t handle, const char *id)
{
	keyframe_flagged(2, R3RING_DESC_ABRIDGED);
	schema(R3RING_DESC_REPEATED);
	repeat(handle, id);
}

static void step(void)
{
	struct r3ring_record record = {.type = R3RING_STEP};

	cr_assert_eq(feed(&record, R3RING_DESC_BOUNDARY), 0);
}

static void is(uint64_t handle, const char *id)
{
	const char *found = r3ring_requests_id(requests, handle);

	cr_assert_not_null(found, "handle %llu is not attributed", (unsigned long long)handle);
	cr_assert_str_eq(found, id);
}

static void is_nobody(uint64_t handle)
{
	cr_assert_null(r3ring_requests_id(requests, handle));
}

Test(requests, failure_49_a_late_reader_attributes_nothing_before_a_whole_keyframe)
{
	seq = 5000;
	begin(7, "seven");
	is_nobody(7);
	cr_assert_not(r3ring_requests_ready(requests));
	keyframe(3);
	schema(R3RING_DESC_REPEATED);
	repeat(6, "six");
	is_nobody(6);
	is_nobody(7);
	repeat(7, "seven");
	cr_assert(r3ring_requests_ready(requests));
	is(6, "six");
	is(7, "seven");
	is_nobody(8);
}

Test(requests, failure_49_a_keyframe_with_a_gap_in_it_is_none)
{
	seq = 5000;
	keyframe(2);
	schema(R3RING_DESC_REPEATED);
	r3ring_requests_gap(requests);
	repeat(6, "six");
	cr_assert_not(r3ring_requests_ready(requests));
	is_nobody(6);
}

Test(requests, failure_49_a_keyframe_with_a_sequence_missing_is_none)
{
	seq = 5000;
	keyframe(2);
	seq++;
	repeat(5, "five");
	repeat(6, "six");
	cr_assert_not(r3ring_requests_ready(requests));
}

Test(requests, failure_49_a_keyframe_broken_off_by_another_record_is_none)
{
	seq = 5000;
	keyframe(2);
	schema(R3RING_DESC_REPEATED);
	step();
	repeat(6, "six");
	cr_assert_not(r3ring_requests_ready(requests));
}

Test(requests, a_keyframe_of_no_records_is_whole_at_once)
{
	seq = 5000;
	keyframe(0);
	cr_assert(r3ring_requests_ready(requests));
}

Test(requests, a_generations_beginning_is_enough)
{
	beginning();
	cr_assert(r3ring_requests_ready(requests));
	is_nobody(1);
	begin(1, "one");
	is(1, "one");
}

Test(requests, a_schema_in_mid_stream_is_no_beginning)
{
	seq = 41;
	schema(R3RING_DESC_BOUNDARY);
	cr_assert_not(r3ring_requests_ready(requests));
	seq = 0;
	schema(R3RING_DESC_REPEATED);
	cr_assert_not(r3ring_requests_ready(requests));
}

Test(requests, after_a_gap_known_handles_stay_and_unknown_ones_are_nobodys)
{
	beginning();
	begin(1, "one");
	r3ring_requests_gap(requests);
	seq += 100;
	is(1, "one");
	is_nobody(2);
	begin(3, "three");
	is(3, "three");
	keyframe(2);
	repeat(1, "one");
	repeat(2, "two");
	is(2, "two");
}

Test(requests, an_ended_request_keeps_its_name_until_the_next_keyframe)
{
	beginning();
	begin(1, "one");
	begin(2, "two");
	end(1);
	is(1, "one");
	keyframe(1);
	is(1, "one");
	repeat(2, "two");
	is_nobody(1);
	is(2, "two");
}

Test(requests, a_request_that_ended_in_a_gap_is_forgotten_by_the_next_keyframe)
{
	beginning();
	begin(1, "one");
	r3ring_requests_gap(requests);
	seq += 10;
	keyframe(1);
	schema(R3RING_DESC_REPEATED);
	is_nobody(1);
}

Test(requests, a_keyframe_that_was_not_whole_forgets_nobody)
{
	beginning();
	begin(1, "one");
	end(1);
	begin(2, "two");
	keyframe(2);
	schema(R3RING_DESC_REPEATED);
	step();
	is(1, "one");
	is(2, "two");
}

Test(requests, a_preempted_request_that_begins_again_lives)
{
	beginning();
	begin(1, "one");
	end(1);
	begin(1, "one");
	keyframe(1);
	repeat(1, "one");
	is(1, "one");
	end(1);
	keyframe(0);
	is_nobody(1);
}

Test(requests, failure_50_another_generation_forgets_all_handles)
{
	beginning();
	begin(1, "one of the old engine");
	generation = 2;
	beginning();
	is_nobody(1);
	begin(1, "one of the new engine");
	is(1, "one of the new engine");
}

Test(requests, failure_50_it_does_so_though_the_new_beginning_was_lost)
{
	beginning();
	begin(1, "one of the old engine");
	generation = 2;
	r3ring_requests_gap(requests);
	seq = 9000;
	step();
	is_nobody(1);
	cr_assert_not(r3ring_requests_ready(requests));
}

Test(requests, a_handle_with_two_names_is_nobodys)
{
	beginning();
	begin(1, "one");
	begin(1, "another");
	is_nobody(1);
	begin(1, "one");
	is_nobody(1);
}

Test(requests, an_end_of_an_unknown_request_changes_nothing)
{
	beginning();
	end(99);
	is_nobody(99);
	begin(1, "one");
	is(1, "one");
}

Test(requests, an_id_ends_where_its_length_says)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	beginning();
	record.u.request.head.handle = 4;
	record.u.request.head.event = R3RING_REQUEST_BEGIN;
	record.u.request.head.id_len = 4;
	record.u.request.id = "fourteen";
	cr_assert_eq(feed(&record, 0), 0);
	is(4, "four");
}

Test(requests, the_table_is_bounded_and_says_so)
{
	const uint64_t bound = 1u << 20;

	beginning();
	for (uint64_t handle = 1; handle <= bound; handle++)
		begin(handle, "r");
	/* One that has ended goes before all that live, though it is not the oldest. */
	end(5);
	cr_assert_eq(begin_flagged(bound + 1, "r", 0), -ENOBUFS);
	is_nobody(5);
	is(1, "r");
	cr_assert_eq(begin_flagged(bound + 2, "r", 0), -ENOBUFS);
	is_nobody(1);
	is(2, "r");
	is(bound + 2, "r");
}

Test(requests, destroying_nothing_is_fine)
{
	r3ring_requests_destroy(NULL);
}

Test(requests, an_id_runs_from_its_beginning_until_the_last_handle_of_it_ended)
{
	beginning();
	cr_expect_not(r3ring_requests_runs(requests, "a"));
	begin(1, "a");
	begin(2, "b");
	begin(3, "a");
	end(1);
	cr_expect(r3ring_requests_runs(requests, "a"));
	end(3);
	cr_expect_not(r3ring_requests_runs(requests, "a"));
	cr_expect(r3ring_requests_runs(requests, "b"));
}

/* ---- keyframes that leave requests out ----------------------------------- */

Test(requests, a_keyframe_that_leaves_requests_out_ends_none_of_them)
{
	beginning();
	begin(1, "one");
	begin(2, "two");
	abridged_keyframe(2, "two");
	is(1, "one");
	is(2, "two");
	cr_expect(r3ring_requests_runs(requests, "one"));
	end(1);
	cr_expect_not(r3ring_requests_runs(requests, "one"));
	is(1, "one");
	abridged_keyframe(2, "two");
	is_nobody(1);
}

Test(requests, behind_a_gap_a_request_that_was_left_out_keeps_its_handle_until_none_is)
{
	beginning();
	begin(1, "one");
	begin(2, "two");
	r3ring_requests_gap(requests);
	seq += 100;
	abridged_keyframe(2, "two");
	is(1, "one");
	keyframe(2);
	schema(R3RING_DESC_REPEATED);
	repeat(2, "two");
	is_nobody(1);
	is(2, "two");
}

Test(requests, failure_49_a_late_reader_knows_whom_an_abridged_keyframe_names_and_no_other)
{
	seq = 5000;
	abridged_keyframe(2, "two");
	cr_expect(r3ring_requests_ready(requests));
	is(2, "two");
	is_nobody(1);
	begin(3, "three");
	is(3, "three");
}

Test(requests, what_is_left_of_a_keyframe_that_its_daemon_s_death_cut_is_not_waited_for)
{
	struct r3ring_record lost = {.type = R3RING_LOST,
				     .u.lost.cause = R3RING_CAUSE_DAEMON_RESTART};

	beginning();
	begin(1, "one");
	begin(2, "two");
	keyframe(3);
	schema(R3RING_DESC_REPEATED);
	repeat(1, "one");
	cr_assert_eq(feed(&lost, 0), 0);
	is(2, "two");
	keyframe(2);
	schema(R3RING_DESC_REPEATED);
	repeat(2, "two");
	is_nobody(1);
	is(2, "two");
}
