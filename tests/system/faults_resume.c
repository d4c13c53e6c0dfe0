/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that is killed within a step, or between telling its readers of a step and giving the
 * step's room back: at each store in between. The next one finds the shared pages
 * as they then are.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/raw_producer.h"

#define BASE "faults-resume"
#define ROWS 4u
#define OTHER_STEP 257u /* the next one in the same slot */

static struct test_daemon daemon_a;
static struct raw_producer raw_a;
static struct listener listener_a;
static char instance[R3RING_INSTANCE_MAX + 1];

static void whole_step(uint64_t step, uint32_t slot)
{
	raw_producer_submit_step(&raw_a, step, ROWS, 4096ull * slot, slot);
	for (uint32_t layer = 0; layer < RAW_LAYERS; layer++)
		raw_producer_ring(&raw_a, slot, layer, step, ROWS);
	raw_producer_ring_end(&raw_a, slot, step);
}

/* A step that was told and taken, and a daemon that is dead. */
static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, BASE));
	raw_producer_prepare(&raw_a, daemon_a.dir, instance);
	cr_assert_eq(raw_producer_hello(&raw_a), 0, "%s", raw_a.err.text);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	whole_step(1, 0);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	while (!r3ring_load_acquire_u64(&raw_a.pages.words->step_tail))
		;
	test_daemon_kill(&daemon_a);
}

static void come_back(void)
{
	test_daemon_restart(&daemon_a, NULL);
	cr_assert_eq(raw_producer_come_back(&raw_a, daemon_a.dir), 0, "%s", raw_a.err.text);
}

/* Goes on with step 2: it comes, and step 1 came once. */
static void expect_each_step_once(void)
{
	come_back();
	whole_step(2, 1);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.newest_generation, 1);
	cr_expect_eq(listener_a.records[R3RING_STEP], 2);
	cr_expect_eq(listener_a.records[R3RING_LAYER], 2 * RAW_LAYERS);
	cr_expect_eq(listener_a.complete, 2);
	while (r3ring_load_acquire_u64(&raw_a.pages.words->step_tail) != raw_a.steps.position)
		;
	cr_expect_eq(r3ring_load_acquire_u64(&raw_a.pages.words->extents_released), 2);
}

static void finish(void)
{
	listener_close(&listener_a);
	raw_producer_close(&raw_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance), 0);
}

TestSuite(faults_resume, .init = start, .fini = finish, .timeout = 120);

Test(faults_resume, killed_behind_the_end_of_a_step_it_is_not_told_again)
{
	struct pages_words *words = raw_a.pages.words;

	r3ring_store_relaxed_u64(&words->taken_step, 0);
	r3ring_store_relaxed_u64(&words->taken_rows, 0);
	r3ring_store_relaxed_u64(&words->extents_released, 0);
	r3ring_store_relaxed_u64(&words->step_tail, 0);
	expect_each_step_once();
}

Test(faults_resume, killed_behind_the_note_of_a_step_its_room_is_given_back_once)
{
	struct pages_words *words = raw_a.pages.words;

	r3ring_store_relaxed_u64(&words->extents_released, 0);
	r3ring_store_relaxed_u64(&words->step_tail, 0);
	expect_each_step_once();
}

Test(faults_resume, failure_43_killed_behind_the_release_a_slot_in_use_again_is_left_alone)
{
	r3ring_store_relaxed_u64(&raw_a.pages.words->step_tail, 0);
	raw_producer_ring_end(&raw_a, 0, OTHER_STEP);
	expect_each_step_once();
}

Test(faults_resume, killed_behind_the_last_store_nothing_is_done_again)
{
	expect_each_step_once();
}

/* ---- in the middle of a step -------------------------------------------- */

static bool has_layers(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_LAYER] >= count;
}

/* Step 2 with one layer told when the daemon died. */
static void die_in_step(void)
{
	come_back();
	raw_producer_submit_step(&raw_a, 2, ROWS, 4096, 1);
	raw_producer_ring(&raw_a, 1, 1, 2, ROWS);
	cr_assert(listener_read_until(&listener_a, has_layers, RAW_LAYERS + 1));
	test_daemon_kill(&daemon_a);
}

static void ring_rest(void)
{
	raw_producer_ring(&raw_a, 1, 0, 2, ROWS);
	raw_producer_ring(&raw_a, 1, 2, 2, ROWS);
	raw_producer_ring_end(&raw_a, 1, 2);
}

Test(faults_resume, killed_in_a_step_only_what_was_not_told_of_it_follows)
{
	die_in_step();
	come_back();
	ring_rest();
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.records[R3RING_STEP], 2);
	cr_expect_eq(listener_a.records[R3RING_LAYER], 2 * RAW_LAYERS);
	cr_expect_eq(listener_a.complete, 2);
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_DAEMON_RESTART], 0);
}

Test(faults_resume, killed_twice_in_a_step_it_still_comes_whole_and_once)
{
	die_in_step();
	come_back();
	raw_producer_ring(&raw_a, 1, 0, 2, ROWS);
	cr_assert(listener_read_until(&listener_a, has_layers, RAW_LAYERS + 2));
	test_daemon_kill(&daemon_a);
	come_back();
	ring_rest();
	whole_step(3, 2);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 3));
	cr_expect_eq(listener_a.records[R3RING_STEP], 3);
	cr_expect_eq(listener_a.records[R3RING_LAYER], 3 * RAW_LAYERS);
	cr_expect_eq(listener_a.complete, 3);
}

static bool has_losses(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_LOST] >= count;
}

Test(faults_resume, readers_see_one_loss_of_no_step_and_a_keyframe)
{
	expect_each_step_once();
	cr_assert(listener_read_until(&listener_a, has_losses, 1));
	cr_expect_eq(listener_a.records[R3RING_LOST], 1);
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_DAEMON_RESTART], 0);
	cr_expect_eq(listener_a.records[R3RING_KEYFRAME], 1);
	cr_expect_eq(listener_a.closed_reason, 0);
}

/* ---- where a device may still write ------------------------------------- */

/* As for a buffer that is not in host memory: the old ring is left alone. */
Test(faults_resume, a_ring_that_is_not_gone_on_in_tells_its_loss_and_the_next_has_the_step)
{
	struct r3ring_schema_record *schema = (void *)raw_a.schema;

	die_in_step();
	schema->max_rows = RAW_MAX_ROWS - 1;
	come_back();
	ring_rest();
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 2));
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.closed_reason, R3RING_CLOSED_CRASHED);
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_DAEMON_RESTART], 1);
	cr_expect_eq(listener_a.lost_rows[R3RING_CAUSE_DAEMON_RESTART], ROWS);
	cr_expect_eq(listener_a.records[R3RING_STEP], 3);
	cr_expect_eq(listener_a.complete, 2);
}

/* ---- beside the steps --------------------------------------------------- */

static bool has_requests(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_REQUEST] >= count;
}

/* A request's BEGIN or END that was told, and a daemon that died before it gave the entry
 * back. */
static void die_behind_request(enum r3ring_request_event event)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};
	_Alignas(8) uint8_t payload[128];
	const bool begins = event == R3RING_REQUEST_BEGIN;
	long bytes;

	record.u.request.head = (struct r3ring_request_record){
		.handle = 1,
		.event = (uint8_t)event,
		.reason = begins ? 0 : R3RING_END_FINISHED,
		.id_len = begins,
	};
	record.u.request.id = begins ? "r" : "";
	bytes = r3ring_record_encode(&record, payload, sizeof(payload), NULL);
	cr_assert_gt(bytes, 0);
	come_back();
	raw_producer_submit_record(&raw_a, R3RING_REQUEST, payload, (uint32_t)bytes);
	cr_assert(listener_read_until(&listener_a, has_requests, 1));
	while (!r3ring_load_acquire_u64(&raw_a.pages.words->side_tail))
		;
	test_daemon_kill(&daemon_a);
	r3ring_store_relaxed_u64(&raw_a.pages.words->side_tail, 0);
}

Test(faults_resume, killed_behind_a_request_it_is_not_told_again)
{
	die_behind_request(R3RING_REQUEST_BEGIN);
	come_back();
	whole_step(2, 1);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	/* Once, and repeated in the second keyframe. */
	cr_expect_eq(listener_a.records[R3RING_KEYFRAME], 2);
	cr_expect_eq(listener_a.records[R3RING_REQUEST], 2);
}

Test(faults_resume, killed_before_a_request_is_published_it_is_told)
{
	uint64_t published = 0;

	/* Not a beginning: whether that was published is known by what lives. */
	die_behind_request(R3RING_REQUEST_END);
	for (int type = 0; type < R3RING_RECORD_TYPES; type++)
		published += listener_a.records[type];
	r3ring_store_relaxed_u64(&raw_a.pages.words->said_seq, published + 1);
	come_back();
	whole_step(2, 1);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.records[R3RING_REQUEST], 2);
}
