/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another user may do: nothing, or, in the shared group, read. The daemon and
 * the engine run as root here, the other user as nobody.
 */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/instance.h>

#include "channel/socket.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/worker.h"

#define NOBODY 65534u
#define GROUP "users"

static struct test_daemon daemon_a, daemon_b;
static struct engine engine_a;
static struct listener listener_a;
static struct worker other;
static char channel[64], segment[128], socket_path[96];
static gid_t shared;

static void setup(void)
{
	const struct group *group = getgrnam(GROUP);

	if (geteuid() != 0 || !group)
		cr_skip_test("needs root, to become another user, and a group " GROUP);
	shared = group->gr_gid;
}

static void teardown(void)
{
	if (other.pid)
		worker_kill(&other);
	if (engine_a.producer)
		engine_close(&engine_a);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
	if (daemon_b.dir[0])
		test_daemon_close(&daemon_b);
}

TestSuite(access, .init = setup, .fini = teardown, .timeout = 120);

static void open_engine(void)
{
	struct r3ring_error err = {0};

	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, "access"));
	snprintf(socket_path, sizeof(socket_path), "%s/%s", daemon_a.dir, R3RING_SOCKET_NAME);
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, "access"),
				 64, &err),
		     0, "%s", err.text);
	listener_open(&listener_a, daemon_a.dir, channel);
	snprintf(segment, sizeof(segment), "%s", r3ring_reader_segment(listener_a.reader));
}

static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
	open_engine();
}

static void start_with_group(void)
{
	test_daemon_start(&daemon_a, (const char *[]){"--group", GROUP, NULL});
	open_engine();
}

/* For good: this process is another user's from here on. @group: also of that group. */
static bool become_other(bool group)
{
	return setgroups(group ? 1 : 0, &shared) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0;
}

/* ---- outside the group -------------------------------------------------- */

static int look_for_socket(struct worker_page *page, const void *ctx)
{
	(void)page;
	(void)ctx;
	if (!become_other(false))
		return 100;
	return (access(socket_path, F_OK) == 0) | (opendir(daemon_a.dir) != NULL) << 1 |
	       (errno != EACCES) << 2;
}

/* The directory as the daemon makes it, whatever the umask. */
static void make_directory_anew(const char *const *args)
{
	static const char *const inside[] = {"segments", "generations"};

	test_daemon_start(&daemon_a, NULL);
	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(unlinkat(open(daemon_a.dir, O_PATH), inside[i], AT_REMOVEDIR), 0);
	cr_assert_eq(unlinkat(open(daemon_a.dir, O_PATH), R3RING_LOCK_NAME, 0), 0);
	cr_assert_eq(rmdir(daemon_a.dir), 0);
	umask(0);
	test_daemon_restart(&daemon_a, args);
}

Test(access, another_user_sees_no_socket)
{
	struct stat status;

	make_directory_anew(NULL);
	open_engine();
	cr_assert_eq(stat(daemon_a.dir, &status), 0);
	cr_expect_eq(status.st_mode & 07777, 0750);
	worker_start(&other, look_for_socket, NULL);
	cr_expect_eq(worker_wait(&other), 0);
}

static int attach_as_other(struct worker_page *page, const void *group)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
	};
	struct r3ring_reader *reader;

	if (!become_other(group != NULL))
		return 100;
	return -r3ring_reader_open(&reader, &options, &page->err);
}

/* Even where the files' modes would let it. */
Test(access, another_user_may_not_attach)
{
	start();
	cr_assert_eq(chmod(daemon_a.dir, 0755), 0);
	cr_assert_eq(chmod(socket_path, 0666), 0);
	worker_start(&other, attach_as_other, NULL);
	cr_expect_eq(worker_wait(&other), EACCES);
	cr_expect(strstr(other.page->err.text, "may not connect"), "%s", other.page->err.text);
}

Test(access, another_user_may_not_attach_to_a_groups_daemon_either)
{
	start_with_group();
	cr_assert_eq(chmod(daemon_a.dir, 0755), 0);
	cr_assert_eq(chmod(socket_path, 0666), 0);
	worker_start(&other, attach_as_other, NULL);
	cr_expect_eq(worker_wait(&other), EACCES, "%s", other.page->err.text);
}

static int open_by_name(struct worker_page *page, const void *group)
{
	struct r3ring_segment *opened;
	int writable, readable;

	if (!become_other(group != NULL))
		return 100;
	writable = shm_open(segment, O_RDWR, 0);
	if (writable >= 0 || errno != EACCES)
		return 101;
	readable = shm_open(segment, O_RDONLY, 0);
	if (readable >= 0 && !group)
		return 102;
	return -r3ring_segment_open(&opened, segment, &page->err);
}

Test(access, another_user_may_not_open_a_ring_by_name)
{
	start();
	worker_start(&other, open_by_name, NULL);
	cr_expect_eq(worker_wait(&other), EACCES);
}

/* ---- nothing is in another user's way ----------------------------------- */

static bool run_as_other(void *ctx)
{
	(void)ctx;
	return chown(daemon_b.dir, NOBODY, NOBODY) == 0 && become_other(false);
}

static int run_engine(struct worker_page *page, const void *instance)
{
	struct engine engine;
	int r;

	if (!become_other(false))
		return 100;
	r = engine_open(&engine, daemon_b.dir, instance, 64, &page->err);
	if (r < 0)
		return -r;
	for (uint64_t i = 1; i <= 10; i++)
		r |= engine_step(&engine, 0, 8) != (int64_t)i;
	engine_close(&engine);
	return r;
}

Test(access, failure_30_two_users_have_a_daemon_and_a_channel_of_one_name_each)
{
	char instance[64];

	start();
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "access"));
	daemon_b.prepare = run_as_other;
	test_daemon_start(&daemon_b, NULL);
	worker_start(&other, run_engine, instance);
	cr_expect_eq(worker_wait(&other), 0, "%s", other.page->err.text);
	cr_expect(test_daemon_said(&daemon_b, "10 of 10 steps complete"), "%s", daemon_b.log);
	for (int i = 0; i < 10; i++)
		engine_step(&engine_a, 0, 8);
	cr_expect(listener_read_until(&listener_a, listener_has_step, 10));
	cr_expect_eq(listener_a.wrong, 0);
}

static void expect_modes(const char *dir, const char *part)
{
	struct dirent *entry;
	struct stat status;
	DIR *listed = opendir(dir);

	cr_assert(listed);
	while ((entry = readdir(listed))) {
		if (!strcmp(entry->d_name, "..") || !strstr(entry->d_name, part))
			continue;
		cr_assert_eq(fstatat(dirfd(listed), entry->d_name, &status, AT_SYMLINK_NOFOLLOW),
			     0);
		cr_expect_eq(status.st_mode & 0007, 0, "%s/%s: %o", dir, entry->d_name,
			     status.st_mode);
		if (!S_ISSOCK(status.st_mode))
			cr_expect_eq(status.st_mode & 0020, 0, "%s/%s: %o", dir, entry->d_name,
				     status.st_mode);
	}
	closedir(listed);
}

Test(access, failure_30_nothing_that_the_daemon_makes_may_be_written_by_others)
{
	char path[128];
	struct stat status;

	make_directory_anew((const char *[]){"--group", GROUP, NULL});
	open_engine();
	expect_modes(daemon_a.dir, "");
	snprintf(path, sizeof(path), "%s/segments", daemon_a.dir);
	expect_modes(path, "");
	snprintf(path, sizeof(path), "%s/generations", daemon_a.dir);
	expect_modes(path, "");
	expect_modes("/dev/shm", segment + 1);
	snprintf(path, sizeof(path), "%s/%s", daemon_a.dir, R3RING_LOCK_NAME);
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_mode & 07777, 0600, "who may read the lock could lock it");
}

/* ---- in the group ------------------------------------------------------- */

Test(access, a_member_of_the_group_attaches_through_the_daemon)
{
	start_with_group();
	worker_start(&other, attach_as_other, "group");
	cr_expect_eq(worker_wait(&other), 0, "%s", other.page->err.text);
}

Test(access, a_member_of_the_group_reads_by_name_and_cannot_write)
{
	start_with_group();
	worker_start(&other, open_by_name, "group");
	cr_expect_eq(worker_wait(&other), 0, "%s", other.page->err.text);
}

/* The descriptor that the daemon gives to readers; -1 when it gives none. */
static int descriptor_from_daemon(void)
{
	static struct socket_inbox inbox;
	struct r3ring_hello_reader_message hello = {.head.type = R3RING_MSG_HELLO_READER};
	int fd = socket_connect(daemon_a.dir, NULL);

	if (fd < 0 || channel_name_parse(&hello.channel, channel, NULL) ||
	    socket_send(fd, &hello.head, R3RING_HELLO_READER_MINOR0, NULL, 0, NULL, 0) ||
	    socket_receive(fd, &inbox, 5000) || inbox.u.head.type != R3RING_MSG_SEGMENT)
		return -1;
	return inbox.fds[0];
}

/* Tries what would change the ring for others; returns a bit for each that worked. */
static int try_to_change(struct worker_page *page, const void *ctx)
{
	char again[64];
	void *mapped;
	int fd, worked = 0;

	(void)page;
	(void)ctx;
	if (!become_other(true))
		return 128;
	fd = descriptor_from_daemon();
	if (fd < 0)
		return 129;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	worked |= mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
	worked |= (mprotect(mapped, 4096, PROT_READ | PROT_WRITE) == 0) << 1;
	worked |= (ftruncate(fd, 0) == 0) << 2;
	worked |= (fchmod(fd, 0666) == 0) << 3;
	worked |= (open(again, O_RDWR | O_CLOEXEC) >= 0) << 4;
	worked |= (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0) << 5;
	worked |= (shm_unlink(segment) == 0) << 6;
	return worked;
}

Test(access, a_reader_of_another_user_cannot_change_what_others_see)
{
	start_with_group();
	worker_start(&other, try_to_change, NULL);
	cr_expect_eq(worker_wait(&other), 0);
	for (int i = 0; i < 10; i++)
		engine_step(&engine_a, 0, 8);
	cr_expect(listener_read_until(&listener_a, listener_has_step, 10));
	cr_expect_eq(listener_a.wrong, 0);
}

/* Holds a lock on its descriptor as soon as the daemon's is gone, for good. */
static int hold_lock(struct worker_page *page, const void *ctx)
{
	int fd;

	(void)ctx;
	if (!become_other(true))
		return 100;
	fd = descriptor_from_daemon();
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 101;
	r3ring_store_release_u64(&page->progress, 1);
	if (flock(fd, LOCK_EX))
		return 102;
	r3ring_store_release_u64(&page->progress, 2);
	for (;;)
		pause();
}

Test(access, a_lock_of_a_reader_keeps_no_daemon_from_serving_its_channel)
{
	int64_t step;

	start_with_group();
	engine_step(&engine_a, 0, 8);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	worker_start(&other, hold_lock, NULL);
	cr_assert(worker_reaches(&other, 1));
	test_daemon_kill(&daemon_a);
	cr_assert(worker_reaches(&other, 2));
	test_daemon_restart(&daemon_a, (const char *[]){"--group", GROUP, NULL});
	cr_assert(test_daemon_said(&daemon_a, "(came back)"), "%s", daemon_a.log);
	step = engine_step(&engine_a, 0, 8);
	cr_expect(listener_read_until(&listener_a, listener_has_step, (uint64_t)step));
	cr_expect_eq(listener_a.newest_generation, 1, "its ring is not gone on with");
	cr_expect_eq(listener_a.wrong, 0);
	cr_expect_eq(listener_a.overruns, 0);
}
