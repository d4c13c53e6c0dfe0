/* SPDX-License-Identifier: Apache-2.0 */
/* What one daemon leaves to the next, and what a death in between makes of it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture_daemon/carried.h"

#define GENERATION 7u
#define FILE_NAME "carried.0.live"

static const struct r3ring_channel_name channel = {.instance = "carried"};
static char directory[] = "/tmp/r3ring-carried.XXXXXX";
static struct runtime_dir dir;
static struct live left, found;
static struct carried_told told;
static const struct carried_told nothing_told;

static void open_directory(void)
{
	cr_assert_not_null(mkdtemp(directory));
	dir.generations_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(dir.generations_fd, 0);
}

static void close_directory(void)
{
	live_clear(&left);
	live_clear(&found);
	unlinkat(dir.generations_fd, FILE_NAME, 0);
	unlinkat(dir.generations_fd, FILE_NAME "~", 0);
	close(dir.generations_fd);
	rmdir(directory);
}

TestSuite(carried, .init = open_directory, .fini = close_directory);

static void begin_request(struct live *live, uint64_t handle)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};
	uint8_t payload[256];
	long len;

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.event = R3RING_REQUEST_BEGIN,
		.id_len = 3,
	};
	record.u.request.id = "one";
	len = r3ring_record_encode(&record, payload, sizeof(payload), NULL);
	cr_assert_gt(len, 0);
	cr_assert_eq(live_note_request(live, &record.u.request.head, payload, (size_t)len), 0);
}

static unsigned int find(uint64_t generation)
{
	live_clear(&found);
	cr_assert_eq(carried_read(&dir, &channel, generation, &found, &told), 0);
	return HASH_COUNT(found.requests);
}

Test(carried, requests_are_found_again_by_who_is_of_their_generation)
{
	begin_request(&left, 1);
	begin_request(&left, 2);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_expect_eq(find(GENERATION), 2);
	cr_expect_eq(find(GENERATION + 1), 0);
}

Test(carried, what_was_told_is_found_again_though_nothing_lives)
{
	const struct carried_told before = {.step = 17, .gap_records = 2};

	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &before), 0);
	cr_expect_eq(find(GENERATION + 1), 0);
	cr_expect_eq(told.step, 0);
	cr_expect_eq(find(GENERATION), 0);
	cr_expect_eq(told.step, 17);
	cr_expect_eq(told.gap_records, 2);
}

Test(carried, what_is_of_a_generation_that_the_producer_never_heard_of_is_found_by_the_one_before)
{
	const struct carried_told before = {.step = 17, .gap_records = 2, .former = GENERATION - 2};

	begin_request(&left, 1);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &before), 0);
	cr_expect_eq(find(GENERATION - 1), 0);
	cr_expect_eq(find(0), 0);
	cr_expect_eq(find(GENERATION - 2), 1);
	cr_expect_eq(told.step, 17);
	cr_expect_eq(told.gap_records, 2);
	cr_expect_eq(find(GENERATION), 1);
}

Test(carried, they_stay_until_they_are_removed)
{
	begin_request(&left, 1);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_expect_eq(find(GENERATION), 1);
	cr_expect_eq(find(GENERATION), 1);
	carried_remove(&dir, &channel);
	cr_expect_eq(find(GENERATION), 0);
}

Test(carried, a_daemon_that_leaves_nothing_leaves_nothing_of_an_earlier_one)
{
	const struct live none = {0};

	begin_request(&left, 1);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &none, &nothing_told), 0);
	cr_expect_eq(find(GENERATION), 0);
}

Test(carried, that_live_requests_lack_is_found_again_though_none_is_known)
{
	left.lacks = true;
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_expect_eq(find(GENERATION + 1), 0);
	cr_expect_not(found.lacks);
	cr_expect_eq(find(GENERATION), 0);
	cr_expect(found.lacks);
}

Test(carried, nothing_lacks_where_the_one_before_knew_all)
{
	begin_request(&left, 1);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_expect_eq(find(GENERATION), 1);
	cr_expect_not(found.lacks);
}

Test(carried, they_are_added_to_what_a_ring_says_once)
{
	begin_request(&left, 1);
	begin_request(&left, 2);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	begin_request(&found, 2);
	cr_assert_eq(carried_read(&dir, &channel, GENERATION, &found, &told), 0);
	cr_expect_eq(HASH_COUNT(found.requests), 2);
}

Test(carried, a_death_while_it_was_written_leaves_what_was_there_before)
{
	struct stat status;
	int fd;

	begin_request(&left, 1);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_assert_eq(fstatat(dir.generations_fd, FILE_NAME, &status, 0), 0);
	/* What a dead one had of its file, wherever it stopped. */
	for (off_t bytes = 0; bytes < status.st_size; bytes++) {
		fd = openat(dir.generations_fd, FILE_NAME "~", O_WRONLY | O_CREAT | O_CLOEXEC,
			    0600);
		cr_assert_geq(fd, 0);
		cr_assert_eq(ftruncate(fd, bytes), 0);
		close(fd);
		cr_assert_eq(find(GENERATION), 1);
	}
	begin_request(&left, 2);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_expect_eq(find(GENERATION), 2);
}

Test(carried, a_file_that_is_not_whole_is_said_to_be_so)
{
	struct stat status;
	int fd;

	begin_request(&left, 1);
	cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
	cr_assert_eq(fstatat(dir.generations_fd, FILE_NAME, &status, 0), 0);
	fd = openat(dir.generations_fd, FILE_NAME, O_WRONLY | O_CLOEXEC);
	for (off_t bytes = status.st_size - 1; bytes >= 0; bytes--) {
		cr_assert_eq(ftruncate(fd, bytes), 0);
		cr_assert_eq(carried_read(&dir, &channel, GENERATION, &found, &told), -EBADMSG);
		cr_assert_null(found.requests);
	}
	close(fd);
}

/* Another format's, a number that cannot be, a record that is none that lives. */
Test(carried, a_file_that_says_what_cannot_be_is_not_believed)
{
	static const struct {
		off_t at;
		uint64_t value;
		size_t bytes;
	} wrong[] = {{0, 1, 8}, {24, R3RING_CAUSE_COUNT, 8}, {48, 2, 8}, {56, 999, 4}};
	int fd;

	begin_request(&left, 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_assert_eq(carried_store(&dir, &channel, GENERATION, &left, &nothing_told), 0);
		cr_assert_eq(find(GENERATION), 1);
		live_clear(&found);
		fd = openat(dir.generations_fd, FILE_NAME, O_WRONLY | O_CLOEXEC);
		cr_assert_eq(pwrite(fd, &wrong[i].value, wrong[i].bytes, wrong[i].at),
			     (ssize_t)wrong[i].bytes);
		close(fd);
		cr_expect_eq(carried_read(&dir, &channel, GENERATION, &found, &told), -EBADMSG,
			     "at %ld", (long)wrong[i].at);
		cr_expect_null(found.requests);
	}
}
