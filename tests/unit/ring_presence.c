/* SPDX-License-Identifier: Apache-2.0 */
/* What a ring's next writer sees of the lossless readers of the one before. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/presence.h"
#include "tests/unit/ring_fixture.h"

static struct ring_fixture ring;
static int reader_fd = -1;

static void setup(void)
{
	ring_fixture_open(&ring, 16, 4096);
	reader_fd = r3ring_segment_reader_fd(ring.segment);
	cr_assert_geq(reader_fd, 0);
}

static void teardown(void)
{
	if (reader_fd >= 0)
		close(reader_fd);
	ring_fixture_close(&ring);
}

TestSuite(ring_presence, .init = setup, .fini = teardown);

Test(ring_presence, nobody_shows_itself_in_a_new_ring)
{
	cr_expect_not(presence_before(ring.segment, 0));
	cr_expect_not(presence_before(ring.segment, 5));
}

Test(ring_presence, one_of_an_epoch_is_seen_by_every_later_one)
{
	cr_assert_eq(presence_show(reader_fd, 3), 0);
	cr_expect_not(presence_before(ring.segment, 3));
	cr_expect(presence_before(ring.segment, 4));
	cr_expect(presence_before(ring.segment, 1000));
}

Test(ring_presence, one_that_has_registered_anew_is_not_waited_for)
{
	cr_assert_eq(presence_show(reader_fd, 0), 0);
	cr_expect(presence_before(ring.segment, 1));
	cr_assert_eq(presence_show(reader_fd, 1), 0);
	cr_expect_not(presence_before(ring.segment, 1));
	cr_expect(presence_before(ring.segment, 2));
}

Test(ring_presence, another_that_is_absent_still_counts_when_one_has_gone)
{
	int other = r3ring_segment_reader_fd(ring.segment);

	cr_assert_eq(presence_show(reader_fd, 0), 0);
	cr_assert_eq(presence_show(other, 0), 0);
	close(reader_fd);
	reader_fd = -1;
	cr_expect(presence_before(ring.segment, 1));
	close(other);
	cr_expect_not(presence_before(ring.segment, 1));
}

Test(ring_presence, failure_39_a_killed_reader_shows_itself_no_more)
{
	pid_t child;
	int ready[2];
	char byte;

	close(reader_fd);
	reader_fd = -1;
	cr_assert_eq(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		int fd = r3ring_segment_reader_fd(ring.segment);

		presence_show(fd, 0);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_expect(presence_before(ring.segment, 1));
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_expect_not(presence_before(ring.segment, 1));
}

Test(ring_presence, an_epoch_that_cannot_be_is_waited_for)
{
	cr_expect_eq(presence_show(reader_fd, UINT64_MAX), -ERANGE);
	cr_expect(presence_before(ring.segment, UINT64_MAX));
}
