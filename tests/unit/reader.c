/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of one generation: attaching, reading, waiting, accounts. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/reader.h>

#include "tests/support/fake_daemon.h"

static struct fake_daemon *served;
static struct fake_channel channel;

static void setup(void)
{
	fake_channel_open(&channel, 1, 64, 65536);
	served = fake_daemon_start(NULL);
	fake_daemon_serve(served, &channel);
}

static void teardown(void)
{
	char dir[64];

	strcpy(dir, fake_daemon_dir(served));
	fake_daemon_stop(served);
	fake_daemon_remove_dir(dir);
	fake_channel_close(&channel);
}

TestSuite(reader, .init = setup, .fini = teardown, .timeout = 60);

static struct r3ring_reader_options options_of(enum r3ring_cursor_start from)
{
	return (struct r3ring_reader_options){
		.size = sizeof(struct r3ring_reader_options),
		.runtime_dir = fake_daemon_dir(served),
		.channel = "fake/0",
		.from = from,
	};
}

static struct r3ring_reader *open_reader(enum r3ring_cursor_start from)
{
	struct r3ring_reader_options options = options_of(from);
	struct r3ring_error err = {0};
	struct r3ring_reader *reader = NULL;

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

static int refused(const struct r3ring_reader_options *options, struct r3ring_error *err)
{
	struct r3ring_reader *reader = NULL;
	int rc = r3ring_reader_open(&reader, options, err);

	cr_assert_null(reader);
	cr_assert_eq(err->code, rc);
	return rc;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void read_step(struct r3ring_reader *reader, uint64_t step)
{
	struct r3ring_record record;
	struct r3ring_view view;

	cr_assert_eq(r3ring_reader_next(reader, &view), 1);
	cr_assert_eq(r3ring_record_decode(&record, view.type, view.data, view.len, NULL), 0);
	cr_assert_eq(r3ring_reader_check(reader), 0);
	cr_assert_eq(view.generation, 1);
	cr_assert_eq(record.type, R3RING_STEP_END);
	cr_assert_eq(record.u.step_end.head.step, step);
}

/* ---- attaching --------------------------------------------------------- */

Test(reader, every_record_of_the_channel_comes_in_order)
{
	struct r3ring_reader *reader;
	struct r3ring_reader_stats stats;
	struct r3ring_view view;

	fake_channel_put_steps(&channel, 1, 20);
	reader = open_reader(R3RING_FROM_OLDEST);
	for (uint64_t step = 1; step <= 20; step++)
		read_step(reader, step);
	cr_assert_eq(r3ring_reader_next(reader, &view), 0);
	fake_channel_put_step(&channel, 21);
	read_step(reader, 21);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.now.got, 21);
	cr_assert_eq(stats.generations, 1);
	cr_assert_eq(r3ring_reader_check(reader), -EINVAL);
	r3ring_reader_close(reader);
}

Test(reader, failure_3_what_was_attached_to_is_verifiable)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel.segment);
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.generation, 1);
	cr_assert_arr_eq(stats.uuid, header->uuid, sizeof(stats.uuid));
	cr_assert_str_eq(r3ring_reader_segment(reader), channel.name);
	cr_assert_eq(r3ring_reader_max_record(reader), 65536 / 8);
	r3ring_reader_close(reader);
}

static void refuses_answer(enum fake_daemon_fault fault, int code, const char *says)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	fake_daemon_break(served, fault);
	cr_assert_eq(refused(&options, &err), code, "%s", err.text);
	cr_assert(strstr(err.text, says), "\"%s\" lacks \"%s\"", err.text, says);
}

Test(reader, failure_3_a_segment_of_another_uuid_is_refused)
{
	refuses_answer(FAKE_DAEMON_OTHER_UUID, -EBADMSG, "another uuid");
}

Test(reader, failure_3_a_segment_of_another_generation_is_refused)
{
	refuses_answer(FAKE_DAEMON_OTHER_GENERATION, -EBADMSG, "generation 2");
}

Test(reader, an_answer_without_a_descriptor_is_refused)
{
	refuses_answer(FAKE_DAEMON_NO_DESCRIPTOR, -EBADMSG, "0 descriptors");
}

Test(reader, an_answer_with_an_endless_name_is_refused)
{
	refuses_answer(FAKE_DAEMON_ENDLESS_NAME, -EBADMSG, "without an end");
}

Test(reader, a_daemon_that_hangs_up_is_told_of)
{
	refuses_answer(FAKE_DAEMON_HANGS_UP, -EPIPE, "hung up");
}

Test(reader, a_descriptor_that_is_no_segment_is_refused)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	fake_daemon_break(served, FAKE_DAEMON_OTHER_FILE);
	cr_assert_lt(refused(&options, &err), 0);
	cr_assert_str_neq(err.text, "");
}

Test(reader, an_unknown_channel_is_told_in_the_daemons_words)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	fake_daemon_serve(served, NULL);
	cr_assert_eq(refused(&options, &err), -ENOENT);
	cr_assert(strstr(err.text, "no such channel"), "%s", err.text);
}

Test(reader, without_a_daemon_the_places_tried_are_named)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	options.runtime_dir = "/nonexistent/r3ring-test";
	cr_assert_eq(refused(&options, &err), -ECONNREFUSED);
	cr_assert(strstr(err.text, "/nonexistent/r3ring-test"), "%s", err.text);
}

Test(reader, a_bad_channel_name_is_refused)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	options.channel = "no rank";
	cr_assert_eq(refused(&options, &err), -EINVAL);
	options.channel = NULL;
	cr_assert_eq(refused(&options, &err), -EINVAL);
	cr_assert(strstr(err.text, "INSTANCE/RANK"), "%s", err.text);
}

Test(reader, options_without_their_size_are_refused)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	options.size = 0;
	cr_assert_eq(refused(&options, &err), -EINVAL);
	cr_assert(strstr(err.text, "sizeof"), "%s", err.text);
}

Test(reader, who_waits_is_told_of_a_damaged_slot_in_front_of_the_newest_record)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;

	fake_channel_put_schema(&channel);
	fake_channel_put_schema(&channel);
	fake_channel_empty(&channel, 1);
	cr_assert_eq(r3ring_reader_wait(reader, 0), 1);
	cr_assert_eq(r3ring_reader_next(reader, &view), -EBADMSG);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.now.lost, 1);
	cr_expect_eq(r3ring_reader_next(reader, &view), 1);
	r3ring_reader_close(reader);
}

Test(reader, a_newest_sequence_that_cannot_be_is_a_damaged_segment_and_no_loss)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;
	int rc = 0;

	fake_channel_spoil_tail(&channel, 1ull << 61);
	for (int looks = 0; looks < 1000 && rc == 0; looks++)
		rc = r3ring_reader_next(reader, &view);
	cr_assert_eq(rc, -EBADMSG);
	cr_expect(strstr(r3ring_reader_error(reader), "is damaged"), "%s",
		  r3ring_reader_error(reader));
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.now.lost, 0);
	cr_expect_eq(stats.corrupt, 0);
	fake_channel_put_schema(&channel);
	cr_expect_eq(r3ring_reader_next(reader, &view), 1);
	r3ring_reader_close(reader);
}

Test(reader, a_mode_that_does_not_exist_is_refused)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	options.mode = (enum r3ring_cursor_mode)7;
	cr_assert_eq(refused(&options, &err), -EINVAL);
	cr_assert(strstr(err.text, "mode"), "%s", err.text);
}

Test(reader, a_sequence_not_yet_published_is_out_of_range)
{
	struct r3ring_reader_options options = options_of(R3RING_FROM_SEQ);
	struct r3ring_error err = {0};

	fake_channel_put_steps(&channel, 1, 5);
	options.seq = 7;
	cr_assert_eq(refused(&options, &err), -ERANGE);
	cr_assert(strstr(err.text, "the newest of"), "%s", err.text);
}

/* ---- reading ----------------------------------------------------------- */

Test(reader, read_copies_and_a_small_buffer_moves_nothing)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;
	uint64_t buffer[6];

	fake_channel_put_step(&channel, 5);
	cr_assert_eq(r3ring_reader_read(reader, &view, buffer, 47), -EMSGSIZE);
	cr_assert_eq(view.len, 48);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.now.got, 0);
	cr_assert_eq(r3ring_reader_wait(reader, 0), 1);
	cr_assert_eq(r3ring_reader_read(reader, &view, buffer, sizeof(buffer)), 1);
	cr_assert_eq(view.data, buffer);
	cr_assert_eq(buffer[0], 5);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.now.got, 1);
	r3ring_reader_close(reader);
}

Test(reader, an_overrun_is_told_and_counted_exactly)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;
	uint64_t got = 0;
	int rc;

	fake_channel_put_steps(&channel, 1, 1000);
	cr_assert_eq(r3ring_reader_next(reader, &view), -EOVERFLOW);
	while ((rc = r3ring_reader_next(reader, &view)) == 1) {
		cr_assert_eq(r3ring_reader_check(reader), 0);
		got++;
	}
	cr_assert_eq(rc, 0);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_gt(got, 0);
	cr_assert_eq(stats.now.got, got);
	cr_assert_eq(stats.now.got + stats.now.lost, 1000);
	cr_assert_eq(stats.now.gap_from, 1);
	cr_assert_eq(stats.now.gap_to, 1000 - got);
	r3ring_reader_close(reader);
}

Test(reader, a_view_overwritten_while_in_use_is_not_got)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;

	fake_channel_put_step(&channel, 1);
	cr_assert_eq(r3ring_reader_next(reader, &view), 1);
	fake_channel_put_steps(&channel, 2, 5000);
	cr_assert_eq(r3ring_reader_check(reader), -EOVERFLOW);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.now.got, 0);
	cr_assert_eq(stats.now.lost, 1);
	r3ring_reader_close(reader);
}

Test(reader, a_corrupt_record_is_counted_and_told_in_words)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;
	struct r3ring_view view;

	fake_channel_put_steps(&channel, 1, 3);
	fake_channel_corrupt(&channel, 2);
	cr_assert_str_eq(r3ring_reader_error(reader), "");
	read_step(reader, 1);
	cr_assert_eq(r3ring_reader_next(reader, &view), -EBADMSG);
	cr_assert(strstr(r3ring_reader_error(reader), "record 2 of"), "%s",
		  r3ring_reader_error(reader));
	read_step(reader, 3);
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.corrupt, 1);
	cr_assert_eq(stats.now.lost, 1);
	cr_assert_eq(stats.now.got, 2);
	r3ring_reader_close(reader);
}

/* ---- waiting ----------------------------------------------------------- */

Test(reader, a_wait_without_records_ends_at_its_timeout)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	uint64_t begin = now_ms(), waited;

	cr_assert_eq(r3ring_reader_wait(reader, 200), 0);
	waited = now_ms() - begin;
	cr_assert_geq(waited, 199);
	cr_assert_lt(waited, 5000);
	begin = now_ms();
	cr_assert_eq(r3ring_reader_wait(reader, 0), 0);
	cr_assert_lt(now_ms() - begin, 1000);
	r3ring_reader_close(reader);
}

Test(reader, what_a_wait_has_found_is_what_next_gives)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_reader_stats stats;

	fake_channel_put_steps(&channel, 1, 2);
	for (uint64_t step = 1; step <= 2; step++) {
		cr_assert_eq(r3ring_reader_wait(reader, -1), 1);
		cr_assert_eq(r3ring_reader_wait(reader, -1), 1);
		read_step(reader, step);
	}
	r3ring_reader_get_stats(reader, &stats);
	cr_assert_eq(stats.now.got, 2);
	cr_assert_eq(stats.now.lost, 0);
	r3ring_reader_close(reader);
}

Test(reader, a_view_that_a_wait_found_may_be_overwritten_before_next)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_view view;

	fake_channel_put_step(&channel, 1);
	cr_assert_eq(r3ring_reader_wait(reader, -1), 1);
	fake_channel_put_steps(&channel, 2, 5000);
	cr_assert_eq(r3ring_reader_next(reader, &view), 1);
	cr_assert_eq(r3ring_reader_check(reader), -EOVERFLOW);
	r3ring_reader_close(reader);
}

Test(reader, a_wait_tells_of_an_overrun_too)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct r3ring_view view;

	fake_channel_put_steps(&channel, 1, 100);
	cr_assert_eq(r3ring_reader_wait(reader, -1), 1);
	cr_assert_eq(r3ring_reader_next(reader, &view), -EOVERFLOW);
	r3ring_reader_close(reader);
}

/* Puts steps one by one, each when the one before was read. */
static void *put_on_demand(void *ctx)
{
	struct {
		pthread_barrier_t barrier;
	} *shared = ctx;

	for (uint64_t step = 1; step <= 50; step++) {
		pthread_barrier_wait(&shared->barrier);
		fake_channel_put_step(&channel, step);
	}
	return NULL;
}

Test(reader, a_wait_without_end_ends_with_a_record)
{
	struct r3ring_reader *reader = open_reader(R3RING_FROM_OLDEST);
	struct {
		pthread_barrier_t barrier;
	} shared;
	pthread_t thread;

	pthread_barrier_init(&shared.barrier, NULL, 2);
	cr_assert_eq(pthread_create(&thread, NULL, put_on_demand, &shared), 0);
	for (uint64_t step = 1; step <= 50; step++) {
		pthread_barrier_wait(&shared.barrier);
		cr_assert_eq(r3ring_reader_wait(reader, -1), 1);
		read_step(reader, step);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&shared.barrier);
	r3ring_reader_close(reader);
}

Test(reader, no_options_and_no_place_for_the_handle_are_refused)
{
	const struct r3ring_reader_options options = options_of(R3RING_FROM_OLDEST);
	struct r3ring_error err = {0};

	cr_expect_eq(refused(NULL, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "options is NULL"), "%s", err.text);
	cr_expect_eq(r3ring_reader_open(NULL, &options, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "reader is NULL"), "%s", err.text);
}
