/* SPDX-License-Identifier: Apache-2.0 */
/* Registered readers: woken, polled, counted; and what the daemon refuses of them. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/reader_page.h>

#include "channel/socket.h"
#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"

#define BASE "registered"
#define ROWS 4u

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct reader_worker worker_a;
static char channel[80];

static void start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, NULL);
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, BASE));
	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
}

static void finish(void)
{
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
}

TestSuite(registered, .init = start, .fini = finish, .timeout = 120);

static struct r3ring_reader_options options(void)
{
	return (struct r3ring_reader_options){.size = sizeof(struct r3ring_reader_options),
					      .runtime_dir = daemon_a.dir,
					      .channel = channel};
}

static struct r3ring_reader *open_reader(void)
{
	const struct r3ring_reader_options given = options();
	struct r3ring_reader *reader = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&reader, &given, &err), 0, "%s", err.text);
	return reader;
}

/* Reads all that is there; returns how many records. */
static unsigned int read_all(struct r3ring_reader *reader)
{
	struct r3ring_view view;
	unsigned int count = 0;

	while (r3ring_reader_next(reader, &view) == 1)
		count += r3ring_reader_check(reader) == 0;
	return count;
}

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
	struct r3ring_reader *first = open_reader(), *second = NULL;
	struct r3ring_reader_options lossless = options();
	struct r3ring_error err = {0};
	int64_t step = engine_begin(&engine_a, 0, ROWS);

	await_step(first, step);
	lossless.mode = R3RING_LOSSLESS;
	cr_assert_eq(r3ring_reader_open(&second, &lossless, &err), 0, "%s", err.text);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, step, layer, ROWS);
	engine_end(&engine_a);
	cr_expect_eq(r3ring_reader_wait(second, 20000), 1);
	r3ring_reader_close(first);
	r3ring_reader_close(second);
}

/* ---- waking ----------------------------------------------------------------- */

Test(registered, no_system_call_wakes_readers_that_keep_up)
{
	struct reader_job job = {.options = options(), .spins = 1};

	reader_worker_start(&worker_a, &job);
	for (int i = 0; i < 500; i++) {
		engine_step(&engine_a, 0, ROWS);
		worker_compute();
	}
	cr_expect_eq(channel_figure(daemon_a.dir, channel, "reader_wakes"), 0);
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 1);
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
	json_t *status = channel_status(daemon_a.dir, channel);
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
	struct reader_job job = {.options = options()};
	struct r3ring_segment *segment = open_segment();
	long daemon_before, reader_before;

	reader_worker_start(&worker_a, &job);
	engine_step(&engine_a, 0, ROWS);
	cr_assert(reader_worker_accounts(&worker_a, 1));
	await_heartbeats(segment, 1);
	daemon_before = sleeps_of(daemon_a.pid);
	reader_before = sleeps_of(worker_a.worker.pid);
	await_heartbeats(segment, 3);
	cr_expect_leq(sleeps_of(daemon_a.pid) - daemon_before, 60);
	cr_expect_leq(sleeps_of(worker_a.worker.pid) - reader_before, 60);
	reader_worker_finish(&worker_a);
	r3ring_segment_close(segment);
}

Test(registered, failure_37_a_sleeping_reader_is_woken_for_each_step)
{
	struct r3ring_reader *reader = open_reader();

	read_all(reader);
	for (int i = 0; i < 200; i++) {
		struct pollfd none = {.fd = -1};
		int64_t step = engine_step(&engine_a, 0, ROWS);
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

	while (read_all(reader) == 0) {
		if (r3ring_reader_arm(reader) == 0 && poll(&ready, 1, 5000) != 1)
			return false;
	}
	return true;
}

Test(registered, an_armed_descriptor_becomes_readable_when_records_come)
{
	struct r3ring_reader *reader = open_reader();

	cr_assert_geq(r3ring_reader_fd(reader), 0);
	for (int i = 0; i < 50; i++) {
		do {
			read_all(reader);
		} while (r3ring_reader_arm(reader) == 1);
		engine_step(&engine_a, 0, ROWS);
		cr_assert(polled_a_record(reader), "step %d", i);
	}
	r3ring_reader_close(reader);
}

Test(registered, a_descriptor_that_is_not_armed_is_told_nothing)
{
	struct r3ring_reader *reader = open_reader();
	struct pollfd ready = {.fd = r3ring_reader_fd(reader), .events = POLLIN};
	int64_t step = 0;

	cr_assert_geq(ready.fd, 0);
	for (int i = 0; i < 100; i++)
		step = engine_step(&engine_a, 0, ROWS);
	cr_expect_gt(step, 0);
	cr_assert_eq(r3ring_reader_wait(reader, 5000), 1);
	cr_expect_eq(poll(&ready, 1, 50), 0);
	r3ring_reader_close(reader);
}

Test(registered, the_descriptor_stays_the_same_through_generations)
{
	struct r3ring_reader *reader = open_reader();
	struct pollfd ready = {.fd = r3ring_reader_fd(reader), .events = POLLIN};
	struct r3ring_reader_stats stats = {0};
	struct r3ring_error err = {0};

	engine_close(&engine_a);
	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
	for (int i = 0; i < 200 && stats.generation < 2; i++) {
		r3ring_reader_wait(reader, 50);
		read_all(reader);
		r3ring_reader_get_stats(reader, &stats);
	}
	cr_assert_eq(stats.generation, 2);
	cr_expect_eq(r3ring_reader_fd(reader), ready.fd);
	read_all(reader);
	engine_step(&engine_a, 0, ROWS);
	cr_expect(polled_a_record(reader));
	r3ring_reader_close(reader);
}

/* ---- unregistered -------------------------------------------------------------- */

Test(registered, a_reader_may_stay_unregistered_and_reads_all_the_same)
{
	struct r3ring_reader_options given = options();
	struct r3ring_reader *reader;
	struct r3ring_reader_stats stats;

	given.unregistered = 1;
	cr_assert_eq(r3ring_reader_open(&reader, &given, NULL), 0);
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 0);
	read_all(reader);
	engine_step(&engine_a, 0, ROWS);
	cr_expect_eq(r3ring_reader_wait(reader, 5000), 1);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.registered, 0);
	cr_expect_eq(r3ring_reader_fd(reader), -EOPNOTSUPP);
	r3ring_reader_close(reader);
}

/* ---- messages ------------------------------------------------------------------ */

/* Sends a hello of @bytes; returns the type of the answer, its descriptors in @inbox. */
static uint16_t ask(struct r3ring_hello_reader_message *hello, size_t bytes, int fd_sent, int fds,
		    struct socket_inbox *inbox)
{
	int fd = socket_connect(daemon_a.dir, NULL);

	cr_assert_geq(fd, 0);
	hello->head.type = R3RING_MSG_HELLO_READER;
	cr_assert_eq(channel_name_parse(&hello->channel, channel, NULL), 0);
	cr_assert_eq(socket_send(fd, &hello->head, bytes, NULL, 0, &fd_sent, (unsigned int)fds), 0);
	cr_assert_eq(socket_receive(fd, inbox, 5000), 0);
	return inbox->u.head.type;
}

Test(registered, the_hello_of_minor_version_0_is_still_taken)
{
	struct r3ring_hello_reader_message hello = {0};
	struct socket_inbox inbox;

	cr_expect_eq(ask(&hello, R3RING_HELLO_READER_MINOR0, -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(inbox.fd_count, 1);
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 0);
}

Test(registered, the_page_is_sealed)
{
	struct r3ring_hello_reader_message hello = {0};
	struct socket_inbox inbox;
	struct stat st;

	cr_assert_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_assert_eq(inbox.fd_count, 2);
	cr_expect_eq(fcntl(inbox.fds[1], F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
		     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	cr_assert_eq(fstat(inbox.fds[1], &st), 0);
	cr_expect_eq(st.st_size, R3RING_READER_PAGE_BYTES);
	cr_expect_lt(ftruncate(inbox.fds[1], 0), 0);
}

Test(registered, a_descriptor_that_is_no_pidfd_is_refused)
{
	struct r3ring_hello_reader_message hello = {.has_pidfd = 1};
	struct socket_inbox inbox;

	cr_expect_eq(ask(&hello, sizeof(hello), STDIN_FILENO, 1, &inbox), R3RING_MSG_REFUSED);
	hello.has_pidfd = 0;
	cr_expect_eq(ask(&hello, sizeof(hello), STDIN_FILENO, 1, &inbox), R3RING_MSG_REFUSED);
	hello.has_pidfd = 1;
	cr_expect_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_REFUSED);
	cr_expect_eq(ask(&hello, sizeof(hello) - 8, -1, 0, &inbox), R3RING_MSG_REFUSED);
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 0);
}

Test(registered, the_65th_reader_is_not_registered_and_the_65th_lossless_one_refused)
{
	struct r3ring_hello_reader_message hello = {0};
	struct r3ring_refused_message refused;
	struct socket_inbox inbox;

	for (int i = 0; i < 64; i++)
		cr_assert_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(inbox.fd_count, 1);
	hello.lossless = 1;
	cr_expect_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_REFUSED);
	memcpy(&refused, inbox.u.bytes, sizeof(refused));
	cr_expect_eq(refused.code, -ENOSPC);
	cr_expect_eq(channel_readers(daemon_a.dir, channel), 64);
}

/* ---- ends ------------------------------------------------------------------------ */

static bool no_readers(const void *ctx)
{
	(void)ctx;
	return channel_readers(daemon_a.dir, channel) == 0;
}

static bool one_reader(const void *ctx)
{
	(void)ctx;
	return channel_readers(daemon_a.dir, channel) == 1;
}

Test(registered, failure_39_a_child_that_has_the_connection_keeps_nobody_registered)
{
	int held[2];
	pid_t pid;

	cr_assert_eq(pipe(held), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_reader();
		if (fork() == 0) {
			char byte;

			/* Until the test ends. */
			close(held[1]);
			_exit(read(held[0], &byte, 1) == 0 ? 0 : 1);
		}
		pause();
	}
	cr_assert(reader_worker_wait(one_reader, NULL, 5000));
	kill(pid, SIGKILL);
	cr_expect(reader_worker_wait(no_readers, NULL, 5000));
	close(held[0]);
	close(held[1]);
}

/* What status tells of the one reader there is: free it. */
static char *told_label(void)
{
	json_t *object = channel_status(daemon_a.dir, channel);
	const json_t *reader = json_array_get(json_object_get(object, "readers"), 0);
	const char *label = json_string_value(json_object_get(reader, "label"));
	char *copy = label ? strdup(label) : NULL;

	json_decref(object);
	return copy;
}

static void expect_label(const char *label)
{
	char *told = told_label();

	cr_expect_str_eq(told, label);
	free(told);
}

Test(registered, status_tells_what_a_reader_reads_for)
{
	struct r3ring_reader_options given = options();
	struct r3ring_reader *reader;
	struct r3ring_error err = {0};

	given.label = "collector:7";
	cr_assert_eq(r3ring_reader_open(&reader, &given, &err), 0, "%s", err.text);
	expect_label("collector:7");
	r3ring_reader_close(reader);
	cr_assert(reader_worker_wait(no_readers, NULL, 5000));
	given.label = "two words";
	cr_expect_eq(r3ring_reader_open(&reader, &given, &err), -EINVAL);
	cr_expect(strstr(err.text, "label"), "%s", err.text);
}

Test(registered, an_older_callers_reader_has_no_label)
{
	struct r3ring_reader_options given = options();
	struct r3ring_reader *reader;

	given.size = offsetof(struct r3ring_reader_options, label);
	given.label = (const char *)1; /* behind what it knows of */
	cr_assert_eq(r3ring_reader_open(&reader, &given, NULL), 0);
	expect_label("");
	r3ring_reader_close(reader);
}

Test(registered, a_page_with_a_label_that_is_none_has_none_in_status)
{
	static const char lie[R3RING_READER_LABEL_BYTES] = "\x1b]0;\xff\"<b>";
	struct r3ring_hello_reader_message hello = {0};
	struct r3ring_reader_page *page;
	struct socket_inbox inbox;

	cr_assert_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_assert_eq(inbox.fd_count, 2);
	expect_label("");
	page = mmap(NULL, R3RING_READER_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    inbox.fds[1], 0);
	cr_assert_neq(page, MAP_FAILED);
	memcpy(page->label, "older", 6);
	expect_label("older");
	memcpy(page->label, lie, sizeof(lie));
	expect_label("");
	memset(page->label, 'a', sizeof(lie));
	expect_label("");
	munmap(page, R3RING_READER_PAGE_BYTES);
}

Test(registered, status_tells_each_readers_place)
{
	struct r3ring_reader *reader = open_reader();
	json_t *object, *told;

	read_all(reader);
	for (int i = 0; i < 10; i++)
		engine_step(&engine_a, 0, ROWS);
	cr_assert_eq(r3ring_reader_wait(reader, 5000), 1);
	object = channel_status(daemon_a.dir, channel);
	told = json_array_get(json_object_get(object, "readers"), 0);
	cr_expect_eq(json_integer_value(json_object_get(told, "pid")), getpid());
	cr_expect_str_eq(json_string_value(json_object_get(told, "mode")), "lossy");
	cr_expect_gt(json_integer_value(json_object_get(told, "lag_records")), 0);
	cr_expect_gt(json_integer_value(json_object_get(told, "lag_bytes")), 0);
	cr_expect_gt(json_integer_value(json_object_get(told, "got")), 0);
	json_decref(object);
	r3ring_reader_close(reader);
	cr_expect(reader_worker_wait(no_readers, NULL, 5000));
}
