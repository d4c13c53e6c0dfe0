/* SPDX-License-Identifier: Apache-2.0 */
/* A reader across generations, and when its writer or daemon is gone. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include <r3ring/reader.h>

#include "consumer/internal.h"
#include "ring/internal.h"
#include "tests/support/fake_daemon.h"

static struct fake_daemon *served;
static char dir[64];
static struct fake_channel first, second;

static void setup(void)
{
	fake_channel_open(&first, 1, 64, 65536);
	fake_channel_open(&second, 2, 64, 65536);
	served = fake_daemon_start(NULL);
	strcpy(dir, fake_daemon_dir(served));
	fake_daemon_serve(served, &first);
}

static void teardown(void)
{
	if (served)
		fake_daemon_stop(served);
	fake_daemon_remove_dir(dir);
	fake_channel_close(&first);
	fake_channel_close(&second);
}

TestSuite(reader_follow, .init = setup, .fini = teardown, .timeout = 60);

static struct r3ring_reader *open_reader(bool stay)
{
	struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.channel = "fake/0",
		.from = R3RING_FROM_OLDEST,
		.stay = stay,
	};
	struct r3ring_error err = {0};
	struct r3ring_reader *reader = NULL;

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The next record, waited for; everything else ends the test. */
static void expect(struct r3ring_reader *reader, uint16_t type, uint64_t generation, uint64_t seq)
{
	struct r3ring_view view;
	int rc;

	do {
		cr_assert_eq(r3ring_reader_wait(reader, 20000), 1);
		rc = r3ring_reader_next(reader, &view);
	} while (rc == 0);
	cr_assert_eq(rc, 1, "next says %d", rc);
	cr_assert_eq(r3ring_reader_check(reader), 0);
	cr_assert_eq(view.type, type, "%s", r3ring_record_type_name(view.type));
	cr_assert_eq(view.generation, generation);
	cr_assert_eq(view.seq, seq);
}

/* The end of the generation, told once. */
static void expect_end(struct r3ring_reader *reader)
{
	struct r3ring_view view;
	int rc;

	do {
		cr_assert_eq(r3ring_reader_wait(reader, 20000), 1);
		rc = r3ring_reader_next(reader, &view);
	} while (rc == 0);
	cr_assert_eq(rc, -EPIPE);
}

/* Told once, in front of the first record behind. */
static void expect_missed(struct r3ring_reader *reader, uint64_t count)
{
	struct r3ring_reader_stats stats;
	struct r3ring_view view;
	int rc;

	do {
		r3ring_reader_wait(reader, 1000);
		rc = r3ring_reader_next(reader, &view);
	} while (rc == 0 || rc == -EPIPE);
	cr_assert_eq(rc, -EOVERFLOW);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.missed, count, "%llu", (unsigned long long)stats.missed);
}

Test(reader_follow, failure_50_a_reader_follows_a_restarted_engine)
{
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_reader_stats stats;

	fake_channel_put_schema(&first);
	fake_channel_put_steps(&first, 1, 2);
	expect(reader, R3RING_SCHEMA, 1, 1);
	fake_channel_put_schema(&second);
	fake_channel_put_steps(&second, 1, 3);
	fake_daemon_serve(served, &second);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_STEP_END, 1, 2);
	expect(reader, R3RING_STEP_END, 1, 3);
	expect(reader, R3RING_CLOSED, 1, 4);
	expect(reader, R3RING_SCHEMA, 2, 1);
	expect(reader, R3RING_STEP_END, 2, 2);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.generation, 2);
	cr_assert_eq(stats.uuid[0], 0x12);
	cr_assert_eq(stats.generations, 2);
	cr_assert_eq(stats.got_before, 4);
	cr_assert_eq(stats.now.got, 2);
	cr_assert_str_eq(r3ring_reader_segment(reader), second.name);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_reader_that_stays_ends_with_its_generation)
{
	struct r3ring_reader *reader = open_reader(true);
	struct r3ring_view view;

	fake_channel_put_schema(&second);
	fake_daemon_serve(served, &second);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(r3ring_reader_wait(reader, 20000), 1);
		cr_assert_eq(r3ring_reader_next(reader, &view), -EPIPE);
	}
	r3ring_reader_close(reader);
}

Test(reader_follow, an_end_without_a_successor_is_told_once_and_then_waited_out)
{
	struct r3ring_reader *reader = open_reader(false);
	uint64_t begin;

	fake_channel_end(&first, R3RING_CLOSED_SHUTDOWN, 0);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_end(reader);
	begin = now_ms();
	cr_assert_eq(r3ring_reader_wait(reader, 100), 0);
	cr_assert_geq(now_ms() - begin, 99);
	fake_channel_put_schema(&second);
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_successor_that_is_gone_is_passed_over_for_the_newest)
{
	struct fake_channel third;
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_open(&third, 3, 64, 65536);
	fake_channel_put_schema(&third);
	fake_daemon_serve(served, &third);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_missed(reader, 1);
	expect(reader, R3RING_SCHEMA, 3, 1);
	r3ring_reader_close(reader);
	fake_channel_close(&third);
}

Test(reader_follow, a_successor_that_no_daemon_was_there_to_give_is_asked_for_again)
{
	struct fake_channel third;
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_open(&third, 3, 64, 65536);
	fake_channel_put_schema(&second);
	fake_channel_put_schema(&third);
	fake_channel_end(&second, R3RING_CLOSED_NEXT, 3);
	fake_daemon_stop(served);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_end(reader);
	served = fake_daemon_start(dir);
	fake_daemon_serve(served, &second);
	fake_daemon_serve(served, &third);
	expect(reader, R3RING_SCHEMA, 2, 1);
	expect(reader, R3RING_CLOSED, 2, 2);
	expect(reader, R3RING_SCHEMA, 3, 1);
	r3ring_reader_close(reader);
	fake_channel_close(&third);
}

/* For whom the heartbeat alone speaks the writer lives for an hour. */
Test(reader_follow, a_ring_that_is_gone_with_its_daemon_is_left_though_its_heartbeat_is_young)
{
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_put_schema(&first);
	fake_channel_put_schema(&second);
	expect(reader, R3RING_SCHEMA, 1, 1);
	r3ring_writer_heartbeat(first.writer, (now_ms() + 3600000) * 1000000);
	fake_daemon_stop(served);
	served = fake_daemon_start(dir);
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_ring_that_was_left_may_have_more_where_its_writer_lives_and_did_not_end_it)
{
	struct r3ring_reader *reader = open_reader(false);
	struct fake_channel third;

	fake_channel_open(&third, 3, 64, 65536);
	fake_channel_put_schema(&first);
	fake_channel_put_schema(&second);
	fake_channel_put_schema(&third);
	expect(reader, R3RING_SCHEMA, 1, 1);
	fake_daemon_stop(served);
	served = fake_daemon_start(dir);
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 2, 1);
	cr_expect(reader->left_alive);
	fake_daemon_serve(served, &third);
	fake_channel_end(&second, R3RING_CLOSED_NEXT, 3);
	expect(reader, R3RING_CLOSED, 2, 2);
	expect(reader, R3RING_SCHEMA, 3, 1);
	cr_expect_not(reader->left_alive);
	r3ring_reader_close(reader);
	fake_channel_close(&third);
}

/* Fewer than after which an empty slot is doubted anyhow. */
static int next_in_few_looks(struct r3ring_reader *reader, struct r3ring_view *view)
{
	struct pollfd answer = {.events = POLLIN};
	int rc = 0;

	for (unsigned int looks = 0; rc == 0 && looks < RING_EMPTY_LOOKS / 4; looks++) {
		reader->follower.hung_up_at_ns = 0;
		rc = r3ring_reader_next(reader, view);
		answer.fd = reader->follower.request.fd;
		if (rc == 0)
			poll(&answer, 1, 100);
	}
	return rc;
}

Test(reader_follow, what_an_emptied_slot_hides_is_told_and_read_before_the_ring_is_left)
{
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;
	int rc;

	fake_channel_put_schema(&first);
	fake_channel_put_steps(&first, 1, 2);
	fake_channel_put_schema(&second);
	fake_channel_empty(&first, 2);
	expect(reader, R3RING_SCHEMA, 1, 1);
	fake_daemon_stop(served);
	served = fake_daemon_start(dir);
	fake_daemon_serve(served, &second);
	rc = next_in_few_looks(reader, &view);
	cr_expect_eq(rc, -EBADMSG, "%d", rc);
	expect(reader, R3RING_STEP_END, 1, 3);
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.lost_before, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, generations_that_vanished_behind_a_crashed_one_are_told_as_missed)
{
	struct fake_channel fifth;
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_reader_stats stats;

	fake_channel_open(&fifth, 5, 64, 65536);
	fake_channel_put_schema(&fifth);
	fake_daemon_serve(served, &fifth);
	fake_channel_end(&first, R3RING_CLOSED_CRASHED, 0);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_missed(reader, 3);
	expect(reader, R3RING_SCHEMA, 5, 1);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.lost_before + stats.now.lost, 0);
	r3ring_reader_close(reader);
	fake_channel_close(&fifth);
}

/* What the reader meets behind the first generation's end. */
static void meet_next(struct fake_channel *next, uint64_t generation, uint32_t untaken)
{
	fake_channel_open_behind(next, generation, untaken);
	fake_channel_put_schema(next);
	fake_daemon_serve(served, next);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, generation);
}

Test(reader_follow, numbers_that_no_generation_of_the_channel_had_are_not_missed)
{
	struct fake_channel fourth;
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_reader_stats stats;

	meet_next(&fourth, 4, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect(reader, R3RING_SCHEMA, 4, 1);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.missed, 0);
	cr_expect_eq(stats.untaken, 2);
	r3ring_reader_close(reader);
	fake_channel_close(&fourth);
}

Test(reader_follow, only_the_numbers_that_no_generation_had_are_left_out_of_what_was_missed)
{
	struct fake_channel fifth;
	struct r3ring_reader *reader = open_reader(false);

	meet_next(&fifth, 5, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_missed(reader, 1);
	expect(reader, R3RING_SCHEMA, 5, 1);
	r3ring_reader_close(reader);
	fake_channel_close(&fifth);
}

Test(reader_follow, one_that_can_still_be_read_is_not_passed_over_though_nobody_names_it)
{
	struct fake_channel fourth;
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_open(&fourth, 4, 64, 65536);
	fake_channel_put_schema(&second);
	fake_channel_put_schema(&fourth);
	fake_channel_end(&second, R3RING_CLOSED_CRASHED, 0);
	fake_channel_end(&first, R3RING_CLOSED_CRASHED, 0);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_end(reader); /* nobody serves another yet */
	fake_daemon_serve(served, &second);
	fake_daemon_serve(served, &fourth);
	expect(reader, R3RING_SCHEMA, 2, 1);
	expect(reader, R3RING_CLOSED, 2, 2);
	expect_missed(reader, 1);
	expect(reader, R3RING_SCHEMA, 4, 1);
	r3ring_reader_close(reader);
	fake_channel_close(&fourth);
}

Test(reader_follow, a_successor_is_read_in_turn_though_a_newer_one_is_there)
{
	struct fake_channel third;
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_open(&third, 3, 64, 65536);
	fake_channel_put_schema(&third);
	fake_channel_put_schema(&second);
	fake_channel_end(&second, R3RING_CLOSED_NEXT, 3);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	fake_daemon_serve(served, &second);
	fake_daemon_serve(served, &third);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect(reader, R3RING_SCHEMA, 2, 1);
	expect(reader, R3RING_CLOSED, 2, 2);
	expect(reader, R3RING_SCHEMA, 3, 1);
	r3ring_reader_close(reader);
	fake_channel_close(&third);
}

Test(reader_follow, what_a_new_generation_has_overwritten_counts_as_lost)
{
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;
	uint64_t got = 0;
	int rc = 0;

	fake_channel_put_schema(&second);
	fake_channel_put_steps(&second, 1, 499);
	fake_daemon_serve(served, &second);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	while (rc == 0) {
		cr_assert_eq(r3ring_reader_wait(reader, 20000), 1);
		rc = r3ring_reader_next(reader, &view);
	}
	cr_assert_eq(rc, -EOVERFLOW);
	while (r3ring_reader_next(reader, &view) == 1) {
		cr_assert_eq(r3ring_reader_check(reader), 0);
		cr_assert_eq(view.generation, 2);
		got++;
	}
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_gt(got, 0);
	cr_assert_eq(stats.now.got, got);
	cr_assert_eq(stats.now.got + stats.now.lost, 500);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_crashed_writers_successor_is_found_without_a_word_of_the_dead)
{
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_put_schema(&first);
	fake_channel_put_schema(&second);
	fake_daemon_serve(served, NULL); /* its daemon knows nothing of it any more */
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 1, 1);
	/* No heartbeat any more; nothing published since. */
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_generation_that_is_still_drained_is_read_to_its_end_though_it_is_silent)
{
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_view view;

	fake_channel_put_schema(&first);
	fake_channel_put_schema(&second);
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 1, 1);
	/* Longer than a heartbeat may take. */
	cr_assert_eq(r3ring_reader_wait(reader, 4000), 0);
	cr_assert_eq(r3ring_reader_next(reader, &view), 0);
	fake_channel_put_step(&first, 1);
	expect(reader, R3RING_STEP_END, 1, 2);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_CLOSED, 1, 3);
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_dead_daemon_is_told_of_once_and_its_successor_found)
{
	struct r3ring_reader *reader = open_reader(false);
	uint64_t begin = now_ms();

	fake_channel_put_schema(&first);
	fake_daemon_stop(served);
	served = NULL;
	expect(reader, R3RING_SCHEMA, 1, 1);
	cr_assert_eq(r3ring_reader_wait(reader, 30000), -EOWNERDEAD);
	cr_assert_geq(now_ms() - begin, 2900);
	cr_assert_lt(now_ms() - begin, 20000);

	begin = now_ms();
	cr_assert_eq(r3ring_reader_wait(reader, 50), -EOWNERDEAD);
	cr_assert_geq(now_ms() - begin, 49);

	fake_channel_put_schema(&second);
	served = fake_daemon_start(dir);
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_daemon_that_does_not_know_the_channel_makes_its_writer_dead)
{
	struct r3ring_reader *reader = open_reader(false);

	fake_daemon_serve(served, NULL);
	cr_assert_eq(r3ring_reader_wait(reader, 30000), -EOWNERDEAD);
	cr_assert(strstr(r3ring_reader_error(reader), "no such channel"), "%s",
		  r3ring_reader_error(reader));
	r3ring_reader_close(reader);
}

Test(reader_follow, a_silent_writer_that_its_daemon_vouches_for_is_not_dead)
{
	struct r3ring_reader *reader = open_reader(false);

	cr_assert_eq(r3ring_reader_wait(reader, 3500), 0);
	fake_channel_put_schema(&first);
	expect(reader, R3RING_SCHEMA, 1, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, next_does_not_wait_for_a_daemon_that_does_not_answer)
{
	struct r3ring_reader *reader = open_reader(false);
	struct r3ring_view view;
	uint64_t begin;

	fake_daemon_break(served, FAKE_DAEMON_MUTE);
	fake_channel_end(&first, R3RING_CLOSED_SHUTDOWN, 0);
	expect(reader, R3RING_CLOSED, 1, 1);
	begin = now_ms();
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(r3ring_reader_next(reader, &view), -EPIPE);
	cr_assert_lt(now_ms() - begin, 900);
	fake_daemon_break(served, FAKE_DAEMON_SOUND);
	fake_channel_put_schema(&second);
	fake_daemon_serve(served, &second);
	expect(reader, R3RING_SCHEMA, 2, 1);
	r3ring_reader_close(reader);
}

Test(reader_follow, a_lying_daemon_changes_nothing)
{
	struct r3ring_reader *reader = open_reader(false);

	fake_channel_put_schema(&second);
	fake_daemon_break(served, FAKE_DAEMON_OTHER_UUID);
	fake_daemon_serve(served, &second);
	fake_channel_end(&first, R3RING_CLOSED_NEXT, 2);
	expect(reader, R3RING_CLOSED, 1, 1);
	expect_end(reader);
	cr_assert(strstr(r3ring_reader_error(reader), "another uuid"), "%s",
		  r3ring_reader_error(reader));
	r3ring_reader_close(reader);
}
