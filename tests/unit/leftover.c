/* SPDX-License-Identifier: Apache-2.0 */
/* What the list of segments says of each. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "channel/leftover.h"

#define NAME "/r3ring.unit.0.1"
#define USER 4711u

static char dir[] = "/tmp/r3ring-leftover-XXXXXX";
static int list;

static void start(void)
{
	cr_assert_not_null(mkdtemp(dir));
	list = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(list, 0);
}

static void finish(void)
{
	leftover_unlist(list, NAME);
	close(list);
	cr_expect_eq(rmdir(dir), 0);
}

TestSuite(leftover, .init = start, .fini = finish);

static void expect_entry(uid_t user, enum leftover_end end)
{
	const struct leftover_entry entry = leftover_read(list, NAME);

	cr_expect_eq(entry.user, user);
	cr_expect_eq(entry.end, end);
}

Test(leftover, user_and_end_of_a_segment_are_read_back)
{
	const uint8_t uuid[16] = {1, 2, 3};

	for (enum leftover_end end = LEFTOVER_ENDED; end <= LEFTOVER_FORSAKEN; end++) {
		cr_assert_eq(leftover_list(list, NAME, uuid, USER), 0);
		expect_entry(USER, LEFTOVER_GOES_ON);
		cr_assert_eq(leftover_note_end(list, NAME, end), 0);
		expect_entry(USER, end);
	}
}

Test(leftover, the_producer_of_a_segment_is_read_back_whether_it_ended_or_not)
{
	const struct leftover_process producer = {
		.pid = 4, .start_time = UINT64_MAX, .pid_namespace = 4026531836};
	const uint8_t uuid[16] = {1, 2, 3};

	cr_assert_eq(leftover_list(list, NAME, uuid, USER), 0);
	cr_expect_eq(leftover_read(list, NAME).producer.pid, 0);
	cr_assert_eq(leftover_note_producer(list, NAME, &producer), 0);
	expect_entry(USER, LEFTOVER_GOES_ON);
	cr_assert_eq(leftover_note_end(list, NAME, LEFTOVER_FORSAKEN), 0);
	expect_entry(USER, LEFTOVER_FORSAKEN);
	cr_expect_eq(leftover_read(list, NAME).producer.pid, producer.pid);
	cr_expect_eq(leftover_read(list, NAME).producer.start_time, producer.start_time);
	cr_expect_eq(leftover_read(list, NAME).producer.pid_namespace, producer.pid_namespace);
}

static void write_entry(const char *text)
{
	int fd = openat(list, &NAME[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	cr_assert_geq(fd, 0);
	cr_assert_geq(dprintf(fd, "%s", text), 0);
	close(fd);
}

Test(leftover, what_a_crash_cut_short_is_of_this_user_and_goes_on)
{
	static const char *const cut[] = {"", "01020300", "01020300000000000000000000000000",
					  "01020300000000000000000000000000 ",
					  "01020300000000000000000000000000 x"};

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		write_entry(cut[i]);
		expect_entry(geteuid(), LEFTOVER_GOES_ON);
	}
	write_entry("01020300000000000000000000000000 4711 fors");
	expect_entry(USER, LEFTOVER_GOES_ON);
	write_entry("01020300000000000000000000000000 4711 by 4 5");
	expect_entry(USER, LEFTOVER_GOES_ON);
	cr_expect_eq(leftover_read(list, NAME).producer.pid, 0);
}

Test(leftover, what_is_not_listed_has_no_end_to_note)
{
	cr_expect_lt(leftover_note_end(list, NAME, LEFTOVER_ENDED), 0);
	expect_entry(geteuid(), LEFTOVER_GOES_ON);
}
