/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: killed at any time, out of disk, out of file size. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/process_size.h"
#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define IDLE "--until-idle", "0.4"
#define KILLS 25
#define STEPS_TOO_MANY 1000 /* for the room that a disk has */

static struct record_stage stage;

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "8M"));
	ranks_open(&stage.ranks, 0);
}

static void teardown(void)
{
	record_stage_stop(&stage);
}

TestSuite(record_crash, .init = setup, .fini = teardown, .timeout = 120);

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Runs steps for so long; returns how many. */
static uint64_t run_for(long long ms)
{
	long long end = now_ms() + ms;
	uint64_t steps = 0;

	do {
		ranks_run(&stage.ranks, 0, 2);
		steps += 2;
		poll(NULL, 0, 1);
	} while (now_ms() < end);
	return steps;
}

/* Runs steps until the recorder has written something; returns how many. What the one before it
 * left may be all that there was until then. */
static uint64_t run_until_written(void)
{
	uint64_t wanted = record_stage_bytes(&stage) + 1, steps = 0;
	long long end = now_ms() + 20000;

	do {
		steps += run_for(5);
	} while (record_stage_bytes(&stage) < wanted && now_ms() < end);
	cr_assert_geq(record_stage_bytes(&stage), wanted);
	return steps;
}

/* ---- killed ------------------------------------------------------------------ */

static void kill_in_a_loop(const char *const *args)
{
	unsigned int seed = 7;
	uint64_t steps = 0;

	for (unsigned int i = 0; i < KILLS; i++) {
		record_stage_record(&stage, args);
		/* Now and then while it begins, else while it writes. */
		if (i % 4)
			steps += run_until_written();
		steps += run_for(rand_r(&seed) % 60);
		kill(stage.tool.pid, SIGKILL);
		command_wait(&stage.tool);
	}
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
	cr_expect_eq(record_stage_steps(&stage, 0), steps);
	cr_expect_gt(archive_walk_kind(&stage.walk, ARCHIVE_RESUMED), 5);
}

Test(record_crash, killed_at_any_time_it_goes_on_without_gap_or_double)
{
	kill_in_a_loop(ARGS("--sync", "0.01"));
}

Test(record_crash, killed_while_it_writes_without_io_uring_likewise)
{
	kill_in_a_loop(ARGS("--sync", "0.003", "--no-uring", "--segment-size", "64K"));
}

/* ---- full -------------------------------------------------------------------- */

/* Path of a file on the small file system that only the recorder sees. */
static const char *inside(const struct container *container, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/dev/shm/%s", container->root_fd, name);
	return path;
}

static void fill(const char *path, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
	close(fd);
}

static void fill_disk(const char *const *more)
{
	struct container small = {.shm_size = "3m"};
	char why[128], filler[128], archive[128];
	uint64_t steps = 0;

	if (container_make(&small, why, sizeof(why)))
		cr_skip_test("%s", why);
	snprintf(filler, sizeof(filler), "%s", inside(&small, "filler"));
	snprintf(archive, sizeof(archive), "%s", inside(&small, "archive"));
	fill(filler, 2900u << 10);
	record_stage_record_in(&stage, &small, "/dev/shm/archive", more);
	while (!command_ended(&stage.tool))
		steps += run_for(5);
	cr_expect_eq(command_wait(&stage.tool), 1);
	cr_expect_not_null(strstr(stage.tool.err, "the disk is full"), "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "make room and record into it again"));
	record_stage_check_at(&stage, archive);
	cr_expect_lt(record_stage_steps(&stage, 0), steps);
	cr_assert_eq(unlink(filler), 0);
	record_stage_record_in(&stage, &small, "/dev/shm/archive", ARGS(IDLE));
	cr_assert_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_check_at(&stage, archive);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
	cr_expect_eq(record_stage_steps(&stage, 0), steps);
}

Test(record_crash, on_a_full_disk_it_stops_whole_and_resumes_once_there_is_room)
{
	fill_disk(ARGS("--sync", "0.02"));
}

Test(record_crash, on_a_full_disk_without_io_uring_likewise)
{
	fill_disk(ARGS("--sync", "0.02", "--no-uring"));
}

/* What a full disk is said to lack. */
struct lack {
	unsigned long long bytes, records, wanted_kib;
};

static struct lack told_lack(void)
{
	const char *told = strstr(stage.tool.err, "KiB are free; ");
	struct lack lack;

	cr_assert_not_null(told, "%s", stage.tool.err);
	cr_assert_eq(sscanf(told,
			    "KiB are free; %llu bytes could not be written (%llu records). At "
			    "least %llu KiB must be free",
			    &lack.bytes, &lack.records, &lack.wanted_kib),
		     3, "%s", told);
	return lack;
}

static void leave_free(const char *filler, unsigned long long kib)
{
	struct statvfs fs;
	struct stat status;
	long long more;

	cr_assert_eq(statvfs(filler, &fs), 0);
	cr_assert_eq(stat(filler, &status), 0);
	more = (long long)(kib << 10) - (long long)(fs.f_bavail * fs.f_frsize);
	cr_assert_eq(truncate(filler, status.st_size - more), 0);
	cr_assert_eq(statvfs(filler, &fs), 0);
	cr_assert_eq(fs.f_bavail * fs.f_frsize, kib << 10);
}

/* All that it reads is one block, which does not fit, and nothing comes behind it. */
Test(record_crash, on_a_full_disk_the_room_that_it_asks_for_is_as_much_as_it_needs)
{
	struct container small = {.shm_size = "4m"};
	char why[128], filler[128], archive[128];
	struct lack lack;

	if (container_make(&small, why, sizeof(why)))
		cr_skip_test("%s", why);
	snprintf(filler, sizeof(filler), "%s", inside(&small, "filler"));
	snprintf(archive, sizeof(archive), "%s", inside(&small, "archive"));
	fill(filler, 3900u << 10);
	record_stage_record_in(&stage, &small, "/dev/shm/archive",
			       ARGS("--level", "0", "--sync", "60"));
	ranks_run(&stage.ranks, 0, STEPS_TOO_MANY);
	cr_assert(record_stage_reads(&stage, 0, STEPS_TOO_MANY));
	cr_assert_eq(command_interrupt(&stage.tool), 1);
	lack = told_lack();
	cr_expect_gt(lack.records, STEPS_TOO_MANY);
	cr_expect_gt(lack.bytes, 196u << 10);
	cr_expect_leq(lack.wanted_kib, (lack.bytes >> 10) + 16);
	leave_free(filler, lack.wanted_kib);
	record_stage_record_in(&stage, &small, "/dev/shm/archive",
			       ARGS(IDLE, "--level", "0", "--sync", "60"));
	cr_expect_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_check_at(&stage, archive);
	cr_expect_eq(record_stage_steps(&stage, 0), STEPS_TOO_MANY);
}

Test(record_crash, at_a_limit_of_file_sizes_it_stops_whole_and_says_so)
{
	const struct rlimit small = {.rlim_cur = 32 << 10, .rlim_max = RLIM_INFINITY};
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	uint64_t steps = 0;

	setrlimit(RLIMIT_FSIZE, &small);
	signal(SIGXFSZ, SIG_IGN);
	record_stage_record(&stage, ARGS("--sync", "0.02"));
	setrlimit(RLIMIT_FSIZE, &none);
	while (!command_ended(&stage.tool))
		steps += run_for(5);
	cr_expect_eq(command_wait(&stage.tool), 1);
	cr_expect_not_null(strstr(stage.tool.err, "ulimit -f"), "%s", stage.tool.err);
	record_stage_check(&stage);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE)), 0);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
	cr_expect_eq(record_stage_steps(&stage, 0), steps);
}

/* ---- memory ------------------------------------------------------------------ */

Test(record_crash, its_memory_does_not_grow_with_what_it_records)
{
	long early, late;

	if (!process_size_tells())
		cr_skip_test("a sanitizer keeps what is freed");
	record_stage_record(&stage, ARGS("--sync", "0.02", "--segment-size", "64K"));
	cr_assert(record_stage_has_bytes(&stage, 1));
	/* Each of its buffers was in use by then. */
	run_for(1000);
	early = process_own_kib(stage.tool.pid);
	run_for(3000);
	late = process_own_kib(stage.tool.pid);
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	cr_expect_leq(late, early + 1024, "%ld KiB, then %ld", early, late);
	cr_expect_leq(late, 64 << 10, "%ld KiB", late);
}
