/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a record of any channel. */
#include <errno.h>
#include <poll.h>

#include "consumer/instance_internal.h"
#include "consumer/internal.h"

#define REST_MS                                                                                    \
	500          /* at most: then it is time to ask for new channels, and to look
			* whether the writers live */
#define UNWOKEN_MS 1 /* where a channel can wake nobody */

/* What all channels have to tell. */
struct outlook {
	bool ready;     /* there is something */
	uint32_t alive; /* channels that may still have something */
};

/* One that has told its end has nothing more to tell where it is stayed with. */
static bool is_over(const struct r3ring_instance *instance, const struct instance_channel *channel)
{
	return !channel->reader || (instance->options.stay && channel->ended);
}

static struct outlook look(struct r3ring_instance *instance)
{
	struct outlook outlook = {0};
	uint32_t over = 0;

	if (!instance->refusal)
		instance->refusal = instance_look(instance);
	outlook.ready = instance->refusal != 0;
	for (uint32_t i = 0; !outlook.ready && i < instance->count; i++) {
		struct instance_channel *channel = instance->channels[i];
		int rc = -EOWNERDEAD;

		if (is_over(instance, channel))
			over++;
		else
			rc = r3ring_reader_wait(channel->reader, 0);
		outlook.ready = rc == 1;
		outlook.alive += rc == 0;
	}
	/* Then next() says that all have ended. */
	if (instance->options.stay && over == instance->count)
		outlook.ready = true;
	return outlook;
}

/* Asks a channel to wake this thread. Returns how long to sleep at most, 0 when there
 * is something to read. */
static int arm(const struct instance_channel *channel, struct pollfd *polled)
{
	int fd = r3ring_reader_fd(channel->reader);
	int rc = fd < 0 ? fd : r3ring_reader_arm(channel->reader);

	*polled = (struct pollfd){.fd = fd, .events = POLLIN};
	if (rc == 1)
		return 0;
	return rc < 0 ? UNWOKEN_MS : REST_MS;
}

/* Sleeps until a channel or the daemon's answer wakes it, or @left_ns are over. */
static void rest(struct r3ring_instance *instance, uint64_t left_ns)
{
	struct pollfd *polled = instance->polled;
	uint64_t left_ms = left_ns / 1000000u + 1;
	int timeout_ms = left_ms < REST_MS ? (int)left_ms : REST_MS;
	nfds_t count = 0;

	for (uint32_t i = 0; i < instance->count; i++) {
		const struct instance_channel *channel = instance->channels[i];
		int most = is_over(instance, channel) ? REST_MS : arm(channel, &polled[count++]);

		if (most < timeout_ms)
			timeout_ms = most;
	}
	polled[count++] = (struct pollfd){
		.fd = instance->listing.asked ? instance->listing.fd : -1,
		.events = POLLIN,
	};
	if (timeout_ms)
		poll(polled, count, timeout_ms);
}

int r3ring_instance_wait(struct r3ring_instance *instance, int timeout_ms)
{
	uint64_t start = clock_now_ns();
	uint64_t limit = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000u;

	for (;;) {
		struct outlook outlook = look(instance);
		uint64_t waited = clock_now_ns() - start;

		if (outlook.ready)
			return 1;
		if (waited >= limit)
			return outlook.alive ? 0 : -EOWNERDEAD;
		rest(instance, limit - waited);
	}
}
