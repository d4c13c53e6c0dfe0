/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that waits for a daemon's welcome while its ring is made. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/socket.h"
#include "producer/producer.h"

#define RING_BYTES (1ull << 40)

static int ends[2]; /* the producer's, the daemon's */
static uint32_t stopping;
static struct socket_inbox inbox;
static struct r3ring_error err;

static void setup(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

TestSuite(producer_handshake, .init = setup, .fini = teardown, .timeout = 30);

static void say_opening(uint64_t done)
{
	struct r3ring_opening_message message = {
		.head.type = R3RING_MSG_OPENING, .done = done, .bytes = RING_BYTES};

	cr_assert_eq(socket_send(ends[1], &message.head, sizeof(message), NULL, 0, NULL, 0), 0);
}

static void say_welcome(void)
{
	struct r3ring_welcome_producer_message message = {.head.type = R3RING_MSG_WELCOME_PRODUCER,
							  .generation = 7};

	cr_assert_eq(socket_send(ends[1], &message.head, sizeof(message), NULL, 0, NULL, 0), 0);
}

static int hear(int timeout_ms)
{
	return producer_hear_welcome(ends[0], &inbox, timeout_ms, &stopping, &err);
}

static void expect_welcome(void)
{
	const struct r3ring_welcome_producer_message *welcome = (const void *)inbox.u.bytes;

	cr_expect_eq(welcome->head.type, R3RING_MSG_WELCOME_PRODUCER);
	cr_expect_eq(welcome->generation, 7);
}

Test(producer_handshake, each_word_that_the_ring_has_grown_begins_the_wait_anew)
{
	for (uint64_t done = 1; done <= 50; done++)
		say_opening(done);
	say_welcome();
	cr_assert_eq(hear(0), 0, "%s", err.text);
	expect_welcome();
}

Test(producer_handshake, a_daemon_that_says_nothing_is_not_waited_for_any_longer)
{
	say_opening(1);
	cr_expect_eq(hear(50), -ETIMEDOUT);
}

Test(producer_handshake, a_ring_that_does_not_grow_is_no_reason_to_wait)
{
	say_opening(5);
	say_opening(5);
	say_welcome();
	cr_expect_eq(hear(0), -EBADMSG);
	cr_expect(strstr(err.text, "message type 15"), "%s", err.text);
}

Test(producer_handshake, a_ring_larger_than_it_is_said_to_be_is_no_reason_to_wait)
{
	say_opening(RING_BYTES + 1);
	cr_expect_eq(hear(0), -EBADMSG);
}

Test(producer_handshake, a_producer_that_closes_waits_for_one_answer_only)
{
	stopping = 1;
	say_opening(1);
	say_welcome();
	cr_expect_eq(hear(0), -EBADMSG);
}

Test(producer_handshake, a_refusal_ends_the_wait_with_its_reason)
{
	struct r3ring_refused_message refused = {
		.head.type = R3RING_MSG_REFUSED, .code = -ENOSPC, .text = "no room"};

	say_opening(1);
	socket_send(ends[1], &refused.head, sizeof(refused), NULL, 0, NULL, 0);
	cr_expect_eq(hear(0), -ENOSPC);
	cr_expect_str_eq(err.text, "no room");
}
