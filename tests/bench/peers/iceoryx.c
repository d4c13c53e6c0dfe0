/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iceoryx: one publisher that waits for slow subscribers, subscribers that poll.
 * Chunks are loaned, filled and read in place; its daemon gets a pool of chunks of
 * just the messages' size.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <iceoryx_binding_c/chunk.h>
#include <iceoryx_binding_c/log.h>
#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>

#include "tests/bench/peers/broker.h"
#include "tests/bench/peers/peer.h"

#define QUEUE 256u        /* the most that a subscriber may have */
#define CHUNKS_BESIDE 16u /* loaned, and in the hands of subscribers */
#define CONNECT_MS 10000

struct roudi {
	pid_t pid;
	pid_t starter; /* in the names of the processes */
};

/* One of the two is NULL. */
struct iceoryx_end {
	iox_pub_storage_t publisher_storage;
	iox_sub_storage_t subscriber_storage;
	iox_pub_t publisher;
	iox_sub_t subscriber;
};

static const char *iceoryx_version(void)
{
	return ICEORYX_VERSION;
}

static int config_write(const struct peer_channel *channel, char *path, size_t path_size)
{
	FILE *config;

	snprintf(path, path_size, "%s/roudi.toml", channel->directory);
	config = fopen(path, "we");
	if (!config)
		return -errno;
	fprintf(config,
		"[general]\nversion = 1\n\n[[segment]]\n\n[[segment.mempool]]\n"
		"size = %zu\ncount = %u\n",
		channel->size, QUEUE + PEER_READERS_MAX + CHUNKS_BESIDE);
	return fclose(config) ? -errno : 0;
}

static int iceoryx_prepare(struct peer_channel *channel)
{
	char path[256];
	const char *const argv[] = {"iox-roudi", "-c", path, "-m", "off", "-l", "error", NULL};
	struct roudi *roudi = calloc(1, sizeof(*roudi));
	int rc = roudi ? config_write(channel, path, sizeof(path)) : -ENOMEM;

	channel->shared = roudi;
	if (rc)
		return rc;
	roudi->starter = getpid();
	roudi->pid = broker_start(channel, argv, "RouDi is ready for clients");
	return roudi->pid < 0 ? roudi->pid : 0;
}

static int publisher_open(struct iceoryx_end *end)
{
	iox_pub_options_t options;

	iox_pub_options_init(&options);
	options.historyCapacity = 0;
	options.subscriberTooSlowPolicy = ConsumerTooSlowPolicy_WAIT_FOR_CONSUMER;
	end->publisher =
		iox_pub_init(&end->publisher_storage, "r3ring", "peers", "message", &options);
	return end->publisher ? 0 : -ECONNREFUSED;
}

static int subscriber_open(struct iceoryx_end *end)
{
	iox_sub_options_t options;

	iox_sub_options_init(&options);
	options.queueCapacity = QUEUE;
	options.historyRequest = 0;
	options.queueFullPolicy = QueueFullPolicy_BLOCK_PRODUCER;
	end->subscriber =
		iox_sub_init(&end->subscriber_storage, "r3ring", "peers", "message", &options);
	if (!end->subscriber)
		return -ECONNREFUSED;
	for (int i = 0; i < CONNECT_MS; i++) {
		if (iox_sub_get_subscription_state(end->subscriber) == SubscribeState_SUBSCRIBED)
			return 0;
		poll(NULL, 0, 1);
	}
	return -ETIMEDOUT;
}

static int iceoryx_open(struct peer_channel *channel, int reader)
{
	const struct roudi *roudi = channel->shared;
	struct iceoryx_end *end = calloc(1, sizeof(*end));
	char name[64];

	if (!end)
		return -ENOMEM;
	channel->end = end;
	iox_set_loglevel(Iceoryx_LogLevel_Error);
	snprintf(name, sizeof(name), "r3ring-peers-%d-%d", roudi->starter, reader + 1);
	iox_runtime_init(name);
	return reader == PEER_WRITER ? publisher_open(end) : subscriber_open(end);
}

static int iceoryx_send(struct peer_channel *channel, const void *message, bool more)
{
	struct iceoryx_end *end = channel->end;
	enum iox_AllocationResult result;
	void *chunk;

	(void)more;
	result = iox_pub_loan_chunk(end->publisher, &chunk, (uint32_t)channel->size);
	if (result == AllocationResult_RUNNING_OUT_OF_CHUNKS)
		return -EAGAIN;
	if (result != AllocationResult_SUCCESS)
		return -EIO;
	memcpy(chunk, message, channel->size);
	iox_pub_publish_chunk(end->publisher, chunk);
	return 0;
}

static int iceoryx_receive(struct peer_channel *channel, void *message)
{
	struct iceoryx_end *end = channel->end;
	const void *chunk;
	enum iox_ChunkReceiveResult result = iox_sub_take_chunk(end->subscriber, &chunk);

	if (result == ChunkReceiveResult_NO_CHUNK_AVAILABLE)
		return 0;
	if (result != ChunkReceiveResult_SUCCESS)
		return -EIO;
	memcpy(message, chunk, channel->size);
	iox_sub_release_chunk(end->subscriber, chunk);
	return 1;
}

static void iceoryx_close(struct peer_channel *channel)
{
	struct iceoryx_end *end = channel->end;

	if (end && end->publisher)
		iox_pub_deinit(end->publisher);
	if (end && end->subscriber)
		iox_sub_deinit(end->subscriber);
	free(end);
}

static void iceoryx_dispose(struct peer_channel *channel)
{
	struct roudi *roudi = channel->shared;

	if (roudi)
		broker_stop(roudi->pid);
	free(roudi);
}

const struct peer peer_iceoryx = {
	.name = "iceoryx",
	.how = "publisher waits for polling subscribers, chunks filled in place",
	.sources = "iceoryx libiceoryx-binding-c-dev",
	.readers_max = PEER_READERS_MAX,
	.exits = true,
	.version = iceoryx_version,
	.prepare = iceoryx_prepare,
	.open = iceoryx_open,
	.send = iceoryx_send,
	.receive = iceoryx_receive,
	.close = iceoryx_close,
	.dispose = iceoryx_dispose,
};
