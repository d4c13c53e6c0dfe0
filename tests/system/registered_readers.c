/* SPDX-License-Identifier: Apache-2.0 */
/* Registered readers: taken in, woken, polled, and gone. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/support/reader_worker.h"
#include "tests/system/registered_stage.h"

static struct reader_worker worker_a;

TestSuite(registered, .init = registered_start, .fini = registered_stop, .timeout = 120);

static void await_step(struct r3ring_reader *reader, int64_t step)
{
	struct r3ring_view view = {.type = 0};

	while (view.type != R3RING_STEP || view.step != (uint64_t)step) {
		cr_assert_eq(r3ring_reader_wait(reader, 20000), 1);
		cr_assert_eq(r3ring_reader_next(reader, &view), 1);
		cr_assert_eq(r3ring_reader_check(reader), 0);
	}
}

Test(registered, a_lossless_reader_is_taken_in_while_the_engine_hangs_in_a_step)
{
	struct r3ring_reader *first = registered_open(), *second = NULL;
	struct r3ring_reader_options lossless = registered_options();
	struct r3ring_error err = {0};
	int64_t step = engine_begin(&registered.engine, 0, REGISTERED_ROWS);

	await_step(first, step);
	lossless.mode = R3RING_LOSSLESS;
	cr_assert_eq(r3ring_reader_open(&second, &lossless, &err), 0, "%s", err.text);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(&registered.engine, step, layer, REGISTERED_ROWS);
	engine_end(&registered.engine);
	cr_expect_eq(r3ring_reader_wait(second, 20000), 1);
	r3ring_reader_close(first);
	r3ring_reader_close(second);
}

/* ---- waking ----------------------------------------------------------------- */

Test(registered, no_system_call_wakes_readers_that_keep_up)
{
	struct reader_job job = {.options = registered_options(), .spins = 1};

	reader_worker_start(&worker_a, &job);
	for (int i = 0; i < 500; i++) {
		engine_step(&registered.engine, 0, REGISTERED_ROWS);
		worker_compute();
	}
	cr_expect_eq(channel_figure(registered.daemon.dir, registered.channel, "reader_wakes"), 0);
	cr_expect_eq(channel_readers(registered.daemon.dir, registered.channel), 1);
	reader_worker_finish(&worker_a);
	cr_expect_gt(worker_a.page->seen.stats.now.got, 500 * ENGINE_LAYERS);
}

/* How often its threads have gone to sleep. */
static long sleeps_of(pid_t pid)
{
	char path[300], line[128];
	struct dirent *task;
	long sum = 0, count;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	cr_assert_not_null(tasks, "%s: %s", path, strerror(errno));
	while ((task = readdir(tasks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, task->d_name);
		file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
				sum += count;
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return sum;
}

static struct r3ring_segment *open_segment(void)
{
	json_t *status = channel_status(registered.daemon.dir, registered.channel);
	const char *name = json_string_value(json_object_get(status, "segment"));
	struct r3ring_segment *segment = NULL;

	cr_assert_eq(r3ring_segment_open(&segment, name, NULL), 0);
	json_decref(status);
	return segment;
}

/* At most two a second. */
static void await_heartbeats(const struct r3ring_segment *segment, unsigned int count)
{
	uint64_t beat = r3ring_segment_heartbeat(segment);

	for (int i = 0; count && i < 4000; i++) {
		uint64_t now = r3ring_segment_heartbeat(segment);

		count -= now != beat;
		beat = now;
		poll(NULL, 0, 5);
	}
	cr_assert_eq(count, 0);
}

Test(registered, failure_37_an_idle_channel_and_a_sleeping_reader_wake_up_a_few_times_a_second)
{
	struct reader_job job = {.options = registered_options()};
	struct r3ring_segment *segment = open_segment();
	long daemon_before, reader_before;

	reader_worker_start(&worker_a, &job);
	engine_step(&registered.engine, 0, REGISTERED_ROWS);
	cr_assert(reader_worker_accounts(&worker_a, 1));
	await_heartbeats(segment, 1);
	daemon_before = sleeps_of(registered.daemon.pid);
	reader_before = sleeps_of(worker_a.worker.pid);
	await_heartbeats(segment, 3);
	cr_expect_leq(sleeps_of(registered.daemon.pid) - daemon_before, 60);
	cr_expect_leq(sleeps_of(worker_a.worker.pid) - reader_before, 60);
	reader_worker_finish(&worker_a);
	r3ring_segment_close(segment);
}

Test(registered, failure_37_a_sleeping_reader_is_woken_for_each_step)
{
	struct r3ring_reader *reader = registered_open();

	registered_read_all(reader);
	for (int i = 0; i < 200; i++) {
		struct pollfd none = {.fd = -1};
		int64_t step = engine_step(&registered.engine, 0, REGISTERED_ROWS);
		uint64_t ended = 0;

		while (ended < (uint64_t)step) {
			struct r3ring_view view;

			/* Were one lost, this would sleep for a second. */
			cr_assert_eq(r3ring_reader_wait(reader, 900), 1, "step %d", i);
			while (r3ring_reader_next(reader, &view) == 1) {
				if (view.type == R3RING_STEP_END)
					ended = view.step;
				r3ring_reader_check(reader);
			}
		}
		poll(&none, 1, i % 3);
	}
	r3ring_reader_close(reader);
}

/* ---- poll loops -------------------------------------------------------------- */

/* Polls until a record was read; false when the descriptor stays quiet. It may be
 * readable though what came was read before the poll. */
static bool polled_a_record(struct r3ring_reader *reader)
{
	struct pollfd ready = {.fd = r3ring_reader_fd(reader), .events = POLLIN};

	while (registered_read_all(reader) == 0) {
		if (r3ring_reader_arm(reader) == 0 && poll(&ready, 1, 5000) != 1)
			return false;
	}
	return true;
}

Test(registered, an_armed_descriptor_becomes_readable_when_records_come)
{
	struct r3ring_reader *reader = registered_open();

	cr_assert_geq(r3ring_reader_fd(reader), 0);
	for (int i = 0; i < 50; i++) {
		do {
			registered_read_all(reader);
		} while (r3ring_reader_arm(reader) == 1);
		engine_step(&registered.engine, 0, REGISTERED_ROWS);
		cr_assert(polled_a_record(reader), "step %d", i);
	}
	r3ring_reader_close(reader);
}

Test(registered, a_descriptor_that_is_not_armed_is_told_nothing)
{
	struct r3ring_reader *reader = registered_open();
	struct pollfd ready = {.fd = r3ring_reader_fd(reader), .events = POLLIN};
	int64_t step = 0;

	cr_assert_geq(ready.fd, 0);
	for (int i = 0; i < 100; i++)
		step = engine_step(&registered.engine, 0, REGISTERED_ROWS);
	cr_expect_gt(step, 0);
	cr_assert_eq(r3ring_reader_wait(reader, 5000), 1);
	cr_expect_eq(poll(&ready, 1, 50), 0);
	r3ring_reader_close(reader);
}

Test(registered, the_descriptor_stays_the_same_through_generations)
{
	struct r3ring_reader *reader = registered_open();
	struct pollfd ready = {.fd = r3ring_reader_fd(reader), .events = POLLIN};
	struct r3ring_reader_stats stats = {0};
	struct r3ring_error err = {0};

	engine_close(&registered.engine);
	cr_assert_eq(engine_open(&registered.engine, registered.daemon.dir,
				 engine_instance(registered.daemon.dir, REGISTERED), 16, &err),
		     0, "%s", err.text);
	for (int i = 0; i < 200 && stats.generation < 2; i++) {
		r3ring_reader_wait(reader, 50);
		registered_read_all(reader);
		r3ring_reader_get_stats(reader, &stats);
	}
	cr_assert_eq(stats.generation, 2);
	cr_expect_eq(r3ring_reader_fd(reader), ready.fd);
	registered_read_all(reader);
	engine_step(&registered.engine, 0, REGISTERED_ROWS);
	cr_expect(polled_a_record(reader));
	r3ring_reader_close(reader);
}

/* ---- unregistered -------------------------------------------------------------- */

Test(registered, a_reader_may_stay_unregistered_and_reads_all_the_same)
{
	struct r3ring_reader_options given = registered_options();
	struct r3ring_reader *reader;
	struct r3ring_reader_stats stats;

	given.unregistered = 1;
	cr_assert_eq(r3ring_reader_open(&reader, &given, NULL), 0);
	cr_expect_eq(channel_readers(registered.daemon.dir, registered.channel), 0);
	registered_read_all(reader);
	engine_step(&registered.engine, 0, REGISTERED_ROWS);
	cr_expect_eq(r3ring_reader_wait(reader, 5000), 1);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.registered, 0);
	cr_expect_eq(r3ring_reader_fd(reader), -EOPNOTSUPP);
	r3ring_reader_close(reader);
}

/* ---- ends ------------------------------------------------------------------------ */

Test(registered, failure_39_a_child_that_has_the_connection_keeps_nobody_registered)
{
	int held[2];
	pid_t pid;

	cr_assert_eq(pipe(held), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		registered_open();
		if (fork() == 0) {
			char byte;

			/* Until the test ends. */
			close(held[1]);
			_exit(read(held[0], &byte, 1) == 0 ? 0 : 1);
		}
		pause();
	}
	cr_assert(reader_worker_wait(registered_one, NULL, 5000));
	kill(pid, SIGKILL);
	cr_expect(reader_worker_wait(registered_nobody, NULL, 5000));
	close(held[0]);
	close(held[1]);
}
