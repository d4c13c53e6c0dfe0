/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead daemon left is removed, and nothing else: by the tool and by the next daemon. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/atomic.h>
#include <r3ring/ring.h>

#include "channel/leftover.h"
#include "channel/namespaces.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/worker.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct command tool;
static char instance[R3RING_INSTANCE_MAX + 1], name[128];

/* A ring, and a daemon that is dead. */
static void start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, NULL);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "gc"));
	snprintf(name, sizeof(name), "/r3ring.%u.%s.0.1", geteuid(), instance);
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, 16, &err), 0, "%s", err.text);
	cr_assert_eq(test_shm_names(instance), 1);
	test_daemon_kill(&daemon_a);
}

static void finish(void)
{
	engine_close(&engine_a);
	command_free(&tool);
	shm_unlink(name);
	test_daemon_close(&daemon_a);
}

TestSuite(gc, .init = start, .fini = finish, .timeout = 120);

static int open_list(void)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/segments", daemon_a.dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static bool is_listed(void)
{
	int list = open_list();
	bool listed = faccessat(list, name + 1, F_OK, 0) == 0;

	close(list);
	return listed;
}

static void expect_gone(void)
{
	cr_expect_eq(test_shm_names(instance), 0);
	cr_expect_not(is_listed());
}

static void expect_kept(void)
{
	cr_expect_eq(test_shm_names(instance), 1);
	cr_expect(is_listed());
}

/* As if the process that opened the channel had been another, which is gone. */
static void forget_engine(void)
{
	struct r3ring_segment *segment;
	int list = open_list();

	cr_assert_eq(r3ring_segment_open(&segment, name, NULL), 0);
	cr_assert_eq(leftover_list(list, name, r3ring_segment_get_header(segment)->uuid, geteuid()),
		     0);
	r3ring_segment_close(segment);
	close(list);
}

/* ---- the tool ----------------------------------------------------------- */

Test(gc, a_ring_whose_engine_runs_is_kept_for_the_next_daemon)
{
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, ": kept: its engine runs\n"), "%s", tool.out);
	cr_expect(strstr(tool.out, "\n1 kept: "), "%s", tool.out);
	expect_kept();
	test_daemon_restart(&daemon_a, NULL);
	cr_expect(test_daemon_said(&daemon_a, "goes on where the dead daemon stopped"));
}

Test(gc, a_ring_whose_engine_runs_is_removed_by_force)
{
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc", "--force")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, ": removed\n"), "%s", tool.out);
	expect_gone();
}

Test(gc, a_process_with_the_number_of_the_engine_is_not_the_engine)
{
	const struct leftover_process later = {
		.pid = (uint64_t)getpid(),
		.start_time = 1,
		.pid_namespace = namespaces_of_this_process().pid,
	};
	int list = open_list();

	forget_engine();
	cr_assert_eq(leftover_note_producer(list, name, &later), 0);
	close(list);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0, "%s", tool.err);
	expect_gone();
}

Test(gc, a_dead_daemons_ring_is_removed)
{
	forget_engine();
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, ": removed"), "%s", tool.out);
	expect_gone();
}

Test(gc, what_the_removal_of_a_ring_that_had_not_ended_costs_is_said)
{
	forget_engine();
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc", "--dry-run")), 0);
	cr_expect(strstr(tool.out, "\n1 of these had not ended: "), "%s", tool.out);
	cr_expect(strstr(tool.out, " would be lost "), "%s", tool.out);
	expect_kept();
	command_free(&tool);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0);
	cr_expect(strstr(tool.out, " is lost "), "%s", tool.out);
}

Test(gc, nothing_is_said_to_be_lost_with_a_ring_that_had_ended)
{
	int list = open_list();

	cr_assert_eq(leftover_note_end(list, name, LEFTOVER_ENDED), 0);
	close(list);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0);
	cr_expect(strstr(tool.out, ": removed"), "%s", tool.out);
	cr_expect_null(strstr(tool.out, "had not ended"), "%s", tool.out);
}

Test(gc, a_dry_run_only_says_so)
{
	forget_engine();
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc", "--dry-run")), 0);
	cr_expect(strstr(tool.out, "would be removed"), "%s", tool.out);
	expect_kept();
}

Test(gc, a_ring_is_left_to_the_daemon_that_runs)
{
	char pid[64];

	test_daemon_restart(&daemon_a, NULL);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0);
	snprintf(pid, sizeof(pid), "r3ringd (pid %d) runs there", daemon_a.pid);
	cr_expect(strstr(tool.out, pid), "%s", tool.out);
	expect_kept();
}

Test(gc, its_json_names_every_segment_and_its_verdict)
{
	json_t *root, *segment;

	forget_engine();
	cr_expect_eq(command_run(&tool, "/nonexistent/r3ring",
				 ARGS("gc", "--json", "--runtime-dir", daemon_a.dir)),
		     0);
	root = json_loads(tool.out, 0, NULL);
	cr_assert_not_null(root, "%s", tool.out);
	segment = json_array_get(json_object_get(root, "segments"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(segment, "name")), name);
	cr_expect_str_eq(json_string_value(json_object_get(segment, "verdict")), "removed");
	cr_expect(json_is_false(json_object_get(segment, "ended")));
	cr_expect_eq(json_integer_value(json_object_get(root, "daemon_pid")), 0);
	json_decref(root);
}

Test(gc, there_is_nothing_to_do_without_a_runtime_directory)
{
	cr_expect_eq(command_run(&tool, "/nonexistent/r3ring", ARGS("gc")), 3);
	cr_expect(strstr(tool.err, "/nonexistent/r3ring"), "%s", tool.err);
}

Test(gc, a_ring_of_another_directory_with_that_name_is_kept)
{
	const uint8_t other[16] = {1};
	int list = open_list();

	cr_assert_eq(leftover_list(list, name, other, geteuid()), 0);
	close(list);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0);
	cr_expect(strstr(tool.out, "kept"), "%s", tool.out);
	expect_kept();
}

Test(gc, a_ring_whose_writer_lives_is_kept)
{
	const struct r3ring_segment_options options = {
		.size = sizeof(options),
		.name = name,
		.label = "unit/0",
		.arena_bytes = 65536,
		.depth = 64,
		.uuid = {7},
	};
	struct r3ring_segment *segment;
	int list = open_list();

	cr_assert_eq(shm_unlink(name), 0);
	cr_assert_eq(leftover_list(list, name, options.uuid, geteuid()), 0);
	close(list);
	cr_assert_eq(r3ring_segment_create(&segment, &options, NULL), 0);
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0);
	cr_expect(strstr(tool.out, "its writer lives"), "%s", tool.out);
	expect_kept();
	r3ring_segment_close(segment);
}

/* It is opened to look for its lock, and again, if that was taken, for whose it is. */
static void await_looks(int watch, unsigned int looks)
{
	struct inotify_event event;

	while (looks--)
		if (read(watch, &event, sizeof(event)) != sizeof(event))
			return;
}

/* As one that is killed: its segment's lock goes after the directory's. */
static int dying_daemon(struct worker_page *page, const void *ctx)
{
	const struct r3ring_segment_options options = {
		.size = sizeof(options),
		.name = name,
		.label = ctx,
		.arena_bytes = 65536,
		.depth = 64,
		.uuid = {7},
	};
	struct r3ring_segment *segment;
	char path[160];
	int list = open_list(), watch = inotify_init1(IN_CLOEXEC);

	if (shm_unlink(name) < 0 || leftover_list(list, name, options.uuid, geteuid()) < 0 ||
	    r3ring_segment_create(&segment, &options, NULL) < 0)
		return 1;
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	if (inotify_add_watch(watch, path, IN_OPEN) < 0)
		return 1;
	r3ring_store_release_u64(&page->progress, 1);
	await_looks(watch, 2);
	return 0;
}

Test(gc, the_next_daemon_waits_for_the_rings_that_a_dying_one_has_not_let_go_of)
{
	char label[R3RING_INSTANCE_MAX + 8];
	struct worker worker;

	snprintf(label, sizeof(label), "%s/0", instance);
	worker_start(&worker, dying_daemon, label);
	cr_assert(worker_reaches(&worker, 1));
	test_daemon_restart(&daemon_a, NULL);
	cr_expect_eq(worker_wait(&worker), 0);
	/* Taken over; what becomes of it then is the producer's, which may come back meanwhile. */
	cr_expect(strstr(daemon_a.log, "of a dead daemon"), "%s", daemon_a.log);
}

/* ---- a lock that proves nothing ----------------------------------------- */

/* As a reader may: it has the segment open for reading only. */
static int lock_as_reader(void)
{
	int fd = shm_open(name, O_RDONLY, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

Test(gc, a_ring_that_only_a_reader_has_locked_is_removed)
{
	int fd = lock_as_reader();

	forget_engine();
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0);
	expect_gone();
	close(fd);
}

Test(gc, a_reader_with_the_lock_cannot_keep_the_next_daemon_from_going_on_in_the_ring)
{
	int fd = lock_as_reader();

	test_daemon_restart(&daemon_a, NULL);
	cr_expect(strstr(daemon_a.log, "not its writer"), "%s", daemon_a.log);
	cr_expect(test_daemon_said(&daemon_a, "goes on where the dead daemon stopped"));
	close(fd);
	/* And the one behind that. */
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_expect(test_daemon_said(&daemon_a, "goes on where the dead daemon stopped"));
	engine_step(&engine_a, 0, 4);
	cr_expect_eq(test_shm_names(instance), 1);
}

Test(gc, nobody_but_its_owner_can_open_the_daemons_lock)
{
	char path[300];
	struct stat status;

	snprintf(path, sizeof(path), "%s/r3ringd.lock", daemon_a.dir);
	cr_assert_eq(chmod(path, 0644), 0);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_mode & 07777, 0600);
}

/* ---- two daemons of one user --------------------------------------------- */

static struct test_daemon daemon_b;

Test(gc, what_a_daemon_of_another_directory_serves_is_kept_whatever_its_channels_are_called)
{
	struct engine other = {0};
	struct r3ring_error err = {0};
	char theirs[128];

	test_daemon_start(&daemon_b, NULL);
	cr_assert_eq(engine_open(&other, daemon_b.dir, instance, 16, &err), 0, "%s", err.text);
	snprintf(theirs, sizeof(theirs), "/r3ring.%u.%s.0.2", geteuid(), instance);
	cr_assert_eq(test_shm_names(instance), 2, "it took the name of the first one's ring");
	cr_expect_eq(command_run(&tool, daemon_a.dir, ARGS("gc")), 0, "%s", tool.err);
	cr_expect(strstr(tool.out, name), "%s", tool.out);
	cr_expect_null(strstr(tool.out, theirs), "%s", tool.out);
	cr_expect_eq(test_shm_names(theirs + 1), 1);
	engine_step(&other, 0, 4);
	engine_close(&other);
	/* Nor does the first one's next daemon touch it. */
	test_daemon_restart(&daemon_a, NULL);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(theirs + 1), 1);
	cr_expect_eq(test_daemon_stop(&daemon_b), 0);
	test_daemon_close(&daemon_b);
}
