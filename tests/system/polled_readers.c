/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in poll loops without a timeout: generations, daemons that die, and how often
 * they are woken for nothing. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "consumer/internal.h"
#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"

#define BASE "polled"
#define ROWS 8u
#define GENERATIONS 4u
#define STEPS 300u /* twice as many records as the ring takes */

static const char *const args[] = {"--ring-size", "1M", "--stall-limit", "3000", NULL};
static struct test_daemon daemon_a;
static struct engine engine_a;
static char channel[80];

static void open_engine(void)
{
	struct r3ring_error err = {0};

	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
}

static void start(void)
{
	test_daemon_start(&daemon_a, args);
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	open_engine();
}

static void finish(void)
{
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
}

TestSuite(polled, .init = start, .fini = finish, .timeout = 120);

static void next_daemon(void)
{
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, args);
}

/* ---- generations ------------------------------------------------------------ */

static struct reader_worker worker_a;

static bool has_generation(const void *ctx)
{
	return worker_a.page->seen.stats.generation == *(const uint64_t *)ctx;
}

/* What a dead daemon has not handed out nobody can ask for. */
static void next_daemon_once_it_is_read(uint64_t generation)
{
	cr_assert(reader_worker_wait(has_generation, &generation, 20000));
	next_daemon();
}

static uint64_t newest_record(void)
{
	json_t *status = channel_status(daemon_a.dir, channel);
	json_t *ring = json_object_get(status, "ring");
	uint64_t seq = (uint64_t)json_integer_value(json_object_get(ring, "tail_seq"));

	json_decref(status);
	return seq;
}

static bool has_read_it_all(const void *ctx)
{
	const struct r3ring_reader_stats *stats = &worker_a.page->seen.stats;

	return stats->generation == GENERATIONS && stats->now.cursor > *(const uint64_t *)ctx;
}

/* @between: what happens when an engine of a generation has ended, before the next begins. */
static void read_generations(void (*between)(uint64_t generation))
{
	const struct reader_job lossless = {.options = {.size = sizeof(lossless.options),
							.runtime_dir = daemon_a.dir,
							.channel = channel,
							.mode = R3RING_LOSSLESS},
					    .polls = 1};
	const struct r3ring_reader_stats *stats;
	uint64_t newest;

	reader_worker_start(&worker_a, &lossless);
	for (unsigned int generation = 1; generation <= GENERATIONS; generation++) {
		for (unsigned int i = 0; i < STEPS; i++)
			engine_step(&engine_a, 0, ROWS);
		if (generation == GENERATIONS)
			break;
		engine_close(&engine_a);
		if (between)
			between(generation);
		open_engine();
	}
	newest = newest_record();
	cr_expect(reader_worker_wait(has_read_it_all, &newest, 20000));
	reader_worker_finish(&worker_a);
	stats = &worker_a.page->seen.stats;
	cr_expect_eq(stats->generations, GENERATIONS);
	cr_expect_eq(stats->lost_before + stats->now.lost, 0);
	cr_expect_eq(stats->demoted, 0);
	cr_expect_eq(worker_a.page->seen.wrong, 0);
	cr_expect_eq(worker_a.page->seq_breaks, 0);
}

Test(polled, a_lossless_reader_without_a_timeout_loses_nothing_between_generations)
{
	read_generations(NULL);
}

Test(polled, a_lossless_reader_without_a_timeout_loses_nothing_where_daemons_die_between_them)
{
	read_generations(next_daemon_once_it_is_read);
}

/* ---- one generation --------------------------------------------------------- */

static struct r3ring_reader *open_reader(void)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options), .runtime_dir = daemon_a.dir, .channel = channel};
	struct r3ring_reader *reader = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

/* The caller's loop. */
static int watch(struct r3ring_reader *reader)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(epoll_ctl(fd, EPOLL_CTL_ADD, r3ring_reader_fd(reader), &event), 0);
	return fd;
}

static void read_all(struct r3ring_reader *reader)
{
	struct r3ring_view view;

	while (r3ring_reader_next(reader, &view) == 1)
		r3ring_reader_check(reader);
}

static void sleep_until_readable(int fd)
{
	struct epoll_event event;

	cr_assert_eq(epoll_wait(fd, &event, 1, -1), 1);
}

Test(polled, whoever_sleeps_has_armed_the_page_that_the_next_daemon_gave)
{
	struct r3ring_reader *reader = open_reader();
	int fd = watch(reader);
	uint64_t epoch;

	read_all(reader);
	epoch = reader->follower.epoch;
	next_daemon();
	while (r3ring_segment_epoch(reader->now.segment) == epoch)
		engine_step(&engine_a, 0, ROWS);
	while (reader->follower.epoch == epoch) {
		if (r3ring_reader_arm(reader)) {
			read_all(reader);
			continue;
		}
		cr_assert_gt(reader->now.page->armed, 0);
		sleep_until_readable(fd);
	}
	close(fd);
	r3ring_reader_close(reader);
}

Test(polled, a_reader_without_a_timeout_comes_back_to_a_daemon_that_goes_on)
{
	struct r3ring_reader *reader = open_reader();
	int fd = watch(reader);
	uint64_t epoch;

	read_all(reader);
	epoch = reader->follower.epoch;
	next_daemon();
	engine_step(&engine_a, 0, ROWS);
	while (reader->follower.epoch == epoch) {
		if (r3ring_reader_arm(reader) == 0)
			sleep_until_readable(fd);
		read_all(reader);
	}
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 1);
	close(fd);
	r3ring_reader_close(reader);
}

/* ---- no busy loop ------------------------------------------------------------ */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* How often it is woken within @ms. */
static unsigned int wakes_within(struct r3ring_reader *reader, int fd, uint64_t ms)
{
	const uint64_t end = now_ms() + ms;
	struct epoll_event event;
	unsigned int wakes = 0;

	while (now_ms() < end) {
		read_all(reader);
		wakes++;
		if (r3ring_reader_arm(reader) == 0)
			epoll_wait(fd, &event, 1, (int)ms);
	}
	return wakes;
}

Test(polled, a_reader_of_an_idle_channel_is_woken_a_few_times_a_second)
{
	struct r3ring_reader *reader = open_reader();
	int fd = watch(reader);

	cr_expect_leq(wakes_within(reader, fd, 2000), 30);
	close(fd);
	r3ring_reader_close(reader);
}

/* For longer than the writer is believed to live. */
Test(polled, a_reader_whose_daemon_is_dead_makes_no_busy_loop)
{
	struct r3ring_reader *reader = open_reader();
	int fd = watch(reader);

	test_daemon_kill(&daemon_a);
	cr_expect_leq(wakes_within(reader, fd, 4000), 250);
	cr_expect(reader->follower.writer_dead);
	test_daemon_restart(&daemon_a, args);
	close(fd);
	r3ring_reader_close(reader);
}

Test(polled, a_reader_of_a_channel_that_has_ended_makes_no_busy_loop)
{
	struct r3ring_reader *reader = open_reader();
	int fd = watch(reader);

	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_leq(wakes_within(reader, fd, 2000), 80);
	cr_expect(reader->end_told);
	test_daemon_restart(&daemon_a, args);
	close(fd);
	r3ring_reader_close(reader);
}
