/* SPDX-License-Identifier: Apache-2.0 */
/* What `make bench-peers` stands on: messages that come whole are found to, and those
 * that do not are counted. Few messages, through what needs no package. */
#include <criterion/criterion.h>

#include "tests/bench/peers/measure.h"
#include "tests/bench/peers/message.h"

TestSuite(peers, .timeout = 60);

static void must_come_whole(const struct peer *peer, size_t size, unsigned int readers)
{
	const struct peer_plan plan = {
		.size = size, .readers = readers, .latency_ns = 1, .throughput_ns = 1};
	struct peer_result result;
	int rc = peer_measure(peer, &plan, &result);

	cr_assert_eq(rc, 0, "%s of %zu bytes: %d", peer->name, size, rc);
	cr_assert_geq(result.counts.sent, 100);
	cr_assert_eq(result.counts.received, result.counts.sent * readers);
	cr_assert_eq(result.counts.lost, 0);
	cr_assert_eq(result.counts.wrong, 0);
}

Test(peers, the_ring_brings_every_reader_every_message)
{
	must_come_whole(&peer_r3ring, 64, 1);
	must_come_whole(&peer_r3ring, 1024, 3);
	must_come_whole(&peer_r3ring, 32768, 1);
}

Test(peers, a_pipe_brings_every_message)
{
	must_come_whole(&peer_pipe, 64, 1);
	must_come_whole(&peer_pipe, 32768, 1);
}

Test(peers, a_seqpacket_socket_brings_every_message)
{
	must_come_whole(&peer_seqpacket, 64, 1);
	must_come_whole(&peer_seqpacket, 32768, 1);
}

/* ---- what does not come whole ------------------------------------------------- */

#define SIZE 4096u
#define AFFECTED 20u /* number of the one message that suffers */

static bool suffers(const void *message)
{
	return message_number(message) == AFFECTED;
}

static int send_without_one(struct peer_channel *channel, const void *message, bool more)
{
	return suffers(message) ? 0 : peer_pipe.send(channel, message, more);
}

static int receive_with_stale_page(struct peer_channel *channel, void *message)
{
	static const uint64_t stale = AFFECTED - 1;
	int rc = peer_pipe.receive(channel, message);

	if (rc == 1 && suffers(message))
		memcpy((uint8_t *)message + SIZE - sizeof(stale), &stale, sizeof(stale));
	return rc;
}

static struct peer_counts counts_of(const struct peer *peer)
{
	const struct peer_plan plan = {.size = SIZE, .readers = 1, .throughput_ns = 1};
	struct peer_result result = {0};

	cr_assert_eq(peer_measure(peer, &plan, &result), 0);
	return result.counts;
}

Test(peers, a_message_that_did_not_come_is_counted)
{
	struct peer lossy = peer_pipe;
	struct peer_counts counts;

	lossy.send = send_without_one;
	counts = counts_of(&lossy);
	cr_assert_eq(counts.lost, 1);
	cr_assert_eq(counts.wrong, 0);
	cr_assert_eq(counts.received, counts.sent - 1);
}

Test(peers, a_message_that_came_torn_is_counted)
{
	struct peer torn = peer_pipe;
	struct peer_counts counts;

	torn.receive = receive_with_stale_page;
	counts = counts_of(&torn);
	cr_assert_eq(counts.wrong, 1);
	cr_assert_eq(counts.received, counts.sent - 1);
}
