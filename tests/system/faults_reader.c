/* SPDX-License-Identifier: Apache-2.0 */
/* Readers that come and go, are killed, and stand still. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/stand_still.h"
#include "tests/support/worker.h"

#define BASE "faults-reader"
#define ROWS 64u
#define CYCLES 200
#define KILLS 20

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct listener sibling;
static char channel[R3RING_INSTANCE_MAX + 3];

/* A ring so small that who stands still is lapped. */
static void start(void)
{
	struct r3ring_error err = {0};
	const char *instance;

	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	instance = engine_instance(daemon_a.dir, BASE);
	snprintf(channel, sizeof(channel), "%s/0", instance);
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, ROWS, &err), 0, "%s", err.text);
	listener_open(&sibling, daemon_a.dir, channel);
}

/* The sibling has missed nothing. */
static void finish(void)
{
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(engine_a.producer, &stats);
	cr_expect_eq(sibling.complete, stats.steps);
	cr_expect_eq(sibling.overruns, 0);
	cr_expect_eq(sibling.wrong, 0);
	listener_close(&sibling);
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(engine_instance(daemon_a.dir, BASE)), 0);
}

TestSuite(faults_reader, .init = start, .fini = finish, .timeout = 120);

static void run_steps(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		int64_t step = engine_step(&engine_a, 0, ROWS);

		cr_assert(listener_read_until(&sibling, listener_has_step, (uint64_t)step));
	}
}

static unsigned int count_entries(const char *path)
{
	unsigned int count = 0;
	DIR *dir = opendir(path);

	cr_assert(dir, "%s", path);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static unsigned int daemon_descriptors(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", daemon_a.pid);
	return count_entries(path);
}

Test(faults_reader, two_hundred_that_come_and_go_leave_no_descriptor_and_no_name)
{
	static struct listener passing;
	unsigned int descriptors, entries;

	cr_assert(status_becomes(daemon_a.dir, channel, status_has_readers, 1));
	descriptors = daemon_descriptors();
	entries = count_entries(daemon_a.dir);
	for (int i = 0; i < CYCLES; i++) {
		listener_open(&passing, daemon_a.dir, channel);
		if (i % 20 == 0)
			run_steps(1);
		listener_close(&passing);
	}
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_readers, 1));
	/* The connection that asked may still be there. */
	cr_expect_leq(daemon_descriptors(), descriptors + 1);
	cr_expect_eq(count_entries(daemon_a.dir), entries);
	cr_expect_eq(test_shm_names(engine_instance(daemon_a.dir, BASE)), 1);
}

static void note_progress(struct worker_page *page)
{
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, page->progress + 1);
}

static bool never(const struct listener *listener, uint64_t unused)
{
	(void)listener;
	(void)unused;
	return false;
}

/* Reads until it is killed. */
static int read_on(struct worker_page *page, const void *ctx)
{
	static struct listener listener;

	(void)ctx;
	listener_open(&listener, daemon_a.dir, channel);
	note_progress(page);
	listener_read_until(&listener, never, 0);
	return 1;
}

Test(faults_reader, killed_ones_are_noticed_by_nobody_and_leave_the_count)
{
	static struct worker readers[KILLS];
	unsigned int descriptors;

	cr_assert(status_becomes(daemon_a.dir, channel, status_has_readers, 1));
	descriptors = daemon_descriptors();
	for (int i = 0; i < KILLS; i++)
		worker_start(&readers[i], read_on, NULL);
	for (int i = 0; i < KILLS; i++)
		cr_assert(worker_reaches(&readers[i], 1));
	cr_expect(status_becomes(daemon_a.dir, channel, status_has_readers, 1 + KILLS));
	for (int i = 0; i < KILLS; i++) {
		run_steps(3);
		worker_kill(&readers[i]);
	}
	cr_expect(status_becomes(daemon_a.dir, channel, status_has_readers, 1));
	cr_expect_leq(daemon_descriptors(), descriptors + 1);
	run_steps(10);
}

enum { GOT, LOST, SKIPPED, WRONG };

/* Reads to the end of the channel, and says what it got. */
static int read_to_the_end(struct worker_page *page, const void *ctx)
{
	static struct listener listener;
	struct r3ring_reader_stats stats;

	(void)ctx;
	listener_open(&listener, daemon_a.dir, channel);
	note_progress(page);
	if (!listener_read_until(&listener, listener_has_closed, R3RING_CLOSED_SHUTDOWN))
		return 1;
	r3ring_reader_get_stats(listener.reader, &stats);
	page->counts[GOT] = stats.now.got;
	page->counts[LOST] = stats.now.lost;
	page->counts[SKIPPED] = stats.now.skipped;
	page->counts[WRONG] = listener.wrong;
	return stats.now.got + stats.now.lost == stats.now.cursor - stats.now.start ? 0 : 2;
}

Test(faults_reader, one_that_stood_still_is_told_exactly_what_it_lost)
{
	struct r3ring_reader_stats whole;
	struct worker reader;

	worker_start(&reader, read_to_the_end, NULL);
	cr_assert(worker_reaches(&reader, 1));
	stand_still(reader.pid);
	run_steps(200);
	kill(reader.pid, SIGCONT);
	run_steps(20);
	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(listener_read_until(&sibling, listener_has_closed, R3RING_CLOSED_SHUTDOWN));
	cr_assert_eq(worker_wait(&reader), 0);
	r3ring_reader_get_stats(sibling.reader, &whole);
	cr_expect_eq(whole.now.lost, 0);
	cr_expect_gt(reader.page->counts[LOST], 0);
	cr_expect_eq(reader.page->counts[SKIPPED], 0);
	cr_expect_eq(reader.page->counts[GOT] + reader.page->counts[LOST], whole.now.got);
	cr_expect_eq(reader.page->counts[WRONG], 0);
	test_daemon_restart(&daemon_a, NULL);
}
