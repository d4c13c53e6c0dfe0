/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader takes from a daemon's answer. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/socket.h"
#include "consumer/attach.h"
#include "ring/internal.h"
#include "tests/unit/ring_fixture.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct ring_fixture ring;
static int ends[2];

static void setup(void)
{
	ring_fixture_open(&ring, 16, 4096);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
}

static void teardown(void)
{
	close(ends[1]);
	ring_fixture_close(&ring);
}

TestSuite(attach, .init = setup, .fini = teardown);

/* @known_to: as the page says it. */
static int make_page(uint64_t known_to)
{
	const struct r3ring_reader_page page = {.known_to = known_to};
	int fd = memfd_create("page", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, R3RING_READER_PAGE_BYTES), 0);
	cr_assert_eq(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	return fd;
}

static void answer(uint64_t known_to)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(ring.segment);
	struct r3ring_segment_message message = {.head.type = R3RING_MSG_SEGMENT,
						 .generation = header->generation,
						 .segment = "/unit"};
	int fds[2] = {r3ring_segment_reader_fd(ring.segment), make_page(known_to)};

	memcpy(message.uuid, header->uuid, sizeof(message.uuid));
	cr_assert_eq(socket_send(ends[1], &message.head, sizeof(message), NULL, 0, fds, 2), 0);
	close(fds[0]);
	close(fds[1]);
}

static uint64_t epoch_taken(void)
{
	const struct attach_target target = {.registers = true, .lossless = true};
	struct attach_request request = {.fd = ends[0]};
	struct attachment attachment = {0};
	struct r3ring_error err = {0};
	uint64_t epoch;

	cr_assert_eq(attach_finish(&request, &target, &attachment, 1000, &err), 0, "%s", err.text);
	epoch = attachment.epoch;
	attachment_release(&attachment);
	return epoch;
}

Test(attach, a_reader_is_known_to_the_writer_that_answered_and_not_to_one_that_came_since)
{
	ring.segment->lines->writer_epoch = 4;
	answer(4 + 1);
	ring.segment->lines->writer_epoch = 5;
	cr_expect_eq(epoch_taken(), 4);
}

Test(attach, a_daemon_that_does_not_tell_its_epoch_is_taken_for_the_present_writer)
{
	ring.segment->lines->writer_epoch = 4;
	answer(0);
	cr_expect_eq(epoch_taken(), 4);
}
