/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that is killed between telling its readers of a step and giving the
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
	struct r3ring_error err;

	test_daemon_restart(&daemon_a, NULL);
	close(raw_a.socket);
	raw_a.socket = socket_connect(daemon_a.dir, &err);
	cr_assert_geq(raw_a.socket, 0, "%s", err.text);
	raw_a.hello.reconnect = 1;
	raw_a.hello.last_generation = raw_a.welcome.generation;
	cr_assert_eq(raw_producer_hello(&raw_a), 0, "%s", raw_a.err.text);
}

/* Goes on with step 2: it comes, and step 1 came once. */
static void expect_each_step_once(void)
{
	come_back();
	whole_step(2, 1);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.newest_generation, 2);
	cr_expect_eq(listener_a.records[R3RING_STEP], 2);
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

TestSuite(faults_resume, .init = start, .fini = finish, .timeout = 30);

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
