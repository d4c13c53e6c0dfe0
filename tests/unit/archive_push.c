/* SPDX-License-Identifier: Apache-2.0 */
/* Between two syncs the device is kept at work: pushes, and what of them may fail. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "archive/disk.h"
#include "tests/unit/archive_fixture.h"

#define NEVER_MS (3600u * 1000u)
#define RECORDS 600u
#define RECORD_BYTES (64u << 10) /* at most, in all some 20 MB: several pushes are due */

static struct archive_fixture archive;
static struct archive_walk walk;

/* ---- in place of the C library's, for who writes without io_uring -------- */

static uint32_t pushes;
static uint32_t refused; /* the errno, 0: none */

int sync_file_range(int fd, off_t offset, off_t count, unsigned int flags)
{
	const int code = (int)r3ring_load_relaxed_u32(&refused);

	(void)fd;
	(void)offset;
	(void)count;
	(void)flags;
	r3ring_fetch_add_u32(&pushes, 1);
	errno = code;
	return code ? -1 : 0;
}

static void setup(void)
{
	archive_fixture_init(&archive);
	archive.options.no_uring = true;
	archive.options.level = 0;
	archive.options.sync = ARCHIVE_SYNC_PERIOD;
	archive.options.sync_ms = NEVER_MS;
	archive.length = RECORD_BYTES;
}

static void teardown(void)
{
	archive_walk_free(&walk);
	archive_fixture_free(&archive);
}

TestSuite(archive_push, .init = setup, .fini = teardown, .timeout = 60);

static void record_and_check(void)
{
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	archive_fixture_fill(&archive, RECORDS);
	cr_assert_eq(archive_fixture_close(&archive), 0);
	archive_fixture_check(&archive, &walk);
	cr_assert_eq(archive_walk_records(&walk, "unit/0"), RECORDS / 2);
}

Test(archive_push, between_two_syncs_what_is_written_is_pushed)
{
	record_and_check();
	cr_assert_geq(pushes, 1);
}

Test(archive_push, where_no_sync_is_wanted_nothing_is_pushed)
{
	archive.options.sync = ARCHIVE_SYNC_NEVER;
	record_and_check();
	cr_assert_eq(pushes, 0);
}

Test(archive_push, where_a_push_is_refused_all_is_recorded_without)
{
	refused = EPERM;
	record_and_check();
	cr_assert_geq(pushes, 1);
}

Test(archive_push, a_device_that_fails_in_a_push_fails_the_recorder)
{
	struct r3ring_error err = {0};

	refused = EIO;
	cr_assert_eq(archive_fixture_open(&archive, NULL), 0);
	for (unsigned int i = 0; i < RECORDS; i++)
		archive_fixture_put(&archive, 0);
	cr_assert_eq(archive_writer_close(archive.writer, &err), -EIO);
	archive.writer = NULL;
	cr_assert_not_null(strstr(err.text, "writing: Input/output error"), "%s", err.text);
}

/* ---- io_uring ------------------------------------------------------------ */

static int reaped(struct disk *disk)
{
	struct disk_done done;

	while (!disk_reap(disk, &done))
		disk_wait(disk, 1000);
	return done.result;
}

Test(archive_push, io_uring_takes_a_push)
{
	char path[] = "/tmp/r3ring-push-XXXXXX";
	int fd = mkstemp(path), wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct disk disk;

	cr_assert_geq(fd, 0);
	unlink(path);
	disk_open(&disk, wake_fd, false);
	if (!disk.uring)
		cr_skip_test("no io_uring here");
	disk_write(&disk, &(struct disk_write){.fd = fd, .bytes = path, .count = sizeof(path)});
	cr_assert_eq(reaped(&disk), sizeof(path));
	disk_push(&disk, fd, 1);
	cr_assert_eq(reaped(&disk), 0);
	cr_assert_eq(pushes, 0, "by io_uring itself");
	disk_close(&disk);
	close(wake_fd);
	close(fd);
}
