/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon tells producers whose rings are being made. */
#include <criterion/criterion.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/opening.h"
#include "channel/socket.h"

#define RING_BYTES (8ull << 30)

static int ends[2]; /* the producer's, the daemon's */
static struct r3ring_hello_producer_message hello;
static struct session session;
static struct opening opening;
static struct daemon made;
static struct socket_inbox inbox;

static void setup(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
		     0);
	hello.head.minor = R3RING_PROTO_MINOR;
	session.source.fd = ends[1];
	opening.prev = &opening;
	opening.session = &session;
	opening.hello.message = &hello;
	opening.sizes.segment_bytes = RING_BYTES;
	made.openings = &opening;
}

static void teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

TestSuite(daemon_opening, .init = setup, .fini = teardown, .timeout = 10);

/* The bytes that the producer is told to be there; 0: it is told nothing. */
static uint64_t told(void)
{
	const struct r3ring_opening_message *message = (const void *)inbox.u.bytes;

	openings_tell(&made);
	if (socket_receive(ends[0], &inbox, 0) == -ETIMEDOUT)
		return 0;
	cr_expect_eq(message->head.type, R3RING_MSG_OPENING);
	cr_expect_eq(message->head.len, sizeof(*message));
	cr_expect_eq(message->bytes, RING_BYTES);
	return message->done;
}

Test(daemon_opening, a_producer_is_told_how_far_its_ring_is_whenever_it_has_grown)
{
	cr_expect_eq(told(), 0);
	opening.made_bytes = 1u << 20;
	cr_expect_eq(told(), 1u << 20);
	cr_expect_eq(told(), 0);
	opening.made_bytes = RING_BYTES;
	cr_expect_eq(told(), RING_BYTES);
}

Test(daemon_opening, a_producer_of_an_older_library_is_told_nothing)
{
	hello.head.minor = 1;
	opening.made_bytes = 1u << 20;
	cr_expect_eq(told(), 0);
}

Test(daemon_opening, one_that_has_hung_up_is_told_nothing)
{
	opening.session = NULL;
	opening.made_bytes = 1u << 20;
	cr_expect_eq(told(), 0);
}

Test(daemon_opening, what_a_full_socket_does_not_take_is_told_later)
{
	unsigned int words = 0;

	while (opening.told_bytes == opening.made_bytes) {
		opening.made_bytes++;
		openings_tell(&made);
		words++;
	}
	while (--words)
		cr_assert_eq(socket_receive(ends[0], &inbox, 0), 0);
	cr_expect_eq(told(), opening.made_bytes);
}
