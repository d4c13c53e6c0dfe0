/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis streams over a unix socket, without persistence: pipelined XADD with a
 * trimmed length, blocking XREAD. A stream drops what was trimmed, so the writer is
 * kept from running ahead of its readers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/bench/peers/broker.h"
#include "tests/bench/peers/peer.h"

#define PIPELINE 16u
#define KEPT 4u /* times what may be unread, since trimming goes by whole nodes */

struct redis_server {
	pid_t pid;
	char path[256];
};

struct redis_end {
	redisContext *context;
	unsigned int unanswered; /* the writer's */
	redisReply *reply;       /* a reader's: messages not yet given out from here */
	size_t next;
	char last_id[64];
};

static const char *redis_version(void)
{
	static char line[256], version[64];
	FILE *output = popen("redis-server --version", "r");

	if (output && fgets(line, sizeof(line), output))
		sscanf(line, "%*[^=]=%63s", version);
	if (output)
		pclose(output);
	return version[0] ? version : "?";
}

static int redis_prepare(struct peer_channel *channel)
{
	struct redis_server *server = calloc(1, sizeof(*server));
	const char *const argv[] = {"redis-server", "--port", "0", "--unixsocket",
				    server->path,   "--save", "",  "--appendonly",
				    "no",           NULL};

	if (!server)
		return -ENOMEM;
	channel->shared = server;
	snprintf(server->path, sizeof(server->path), "%s/redis", channel->directory);
	server->pid = broker_start(channel, argv, "ready to accept connections");
	return server->pid < 0 ? server->pid : 0;
}

static int redis_open(struct peer_channel *channel, int reader)
{
	const struct redis_server *server = channel->shared;
	struct redis_end *end = calloc(1, sizeof(*end));

	(void)reader;
	if (!end)
		return -ENOMEM;
	channel->end = end;
	strcpy(end->last_id, "0");
	end->context = redisConnectUnix(server->path);
	return end->context && !end->context->err ? 0 : -ECONNREFUSED;
}

/* ---- writing ---------------------------------------------------------------- */

static int answers_take(struct redis_end *end)
{
	int rc = 0;

	for (; end->unanswered; end->unanswered--) {
		redisReply *reply;

		if (redisGetReply(end->context, (void **)&reply) != REDIS_OK)
			return -EPIPE;
		rc = reply->type == REDIS_REPLY_ERROR ? -EBADMSG : rc;
		freeReplyObject(reply);
	}
	return rc;
}

static int redis_send(struct peer_channel *channel, const void *message, bool more)
{
	struct redis_end *end = channel->end;

	if (redisAppendCommand(end->context, "XADD s MAXLEN ~ %u * m %b",
			       KEPT * (unsigned int)channel->slots, message,
			       channel->size) != REDIS_OK)
		return -ENOMEM;
	end->unanswered++;
	return more && end->unanswered < PIPELINE ? 0 : answers_take(end);
}

/* ---- reading ---------------------------------------------------------------- */

/* The stream's entries in a reply: one stream of [name, entries], entries of
 * [id, [field, value]]. */
static const redisReply *entries_of(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1)
		return NULL;
	return reply->element[0]->elements == 2 ? reply->element[0]->element[1] : NULL;
}

static int ask(struct redis_end *end)
{
	end->next = 0;
	end->reply = redisCommand(end->context, "XREAD COUNT %u BLOCK 100 STREAMS s %s", PIPELINE,
				  end->last_id);
	if (!end->reply)
		return -EPIPE;
	return end->reply->type == REDIS_REPLY_ERROR ? -EBADMSG : 0;
}

static int entry_take(struct redis_end *end, const redisReply *entry, void *message, size_t size)
{
	const redisReply *value;

	if (entry->elements != 2 || entry->element[1]->elements != 2)
		return -EBADMSG;
	value = entry->element[1]->element[1];
	if (value->len != size || entry->element[0]->len >= sizeof(end->last_id))
		return -EBADMSG;
	memcpy(message, value->str, size);
	strcpy(end->last_id, entry->element[0]->str);
	return 1;
}

static int redis_receive(struct peer_channel *channel, void *message)
{
	struct redis_end *end = channel->end;
	int rc = end->reply ? 0 : ask(end);
	const redisReply *entries = rc ? NULL : entries_of(end->reply);

	if (entries)
		rc = entry_take(end, entries->element[end->next++], message, channel->size);
	if (!entries || end->next == entries->elements) {
		freeReplyObject(end->reply);
		end->reply = NULL;
	}
	return rc;
}

/* ---- ending ----------------------------------------------------------------- */

static void redis_close(struct peer_channel *channel)
{
	struct redis_end *end = channel->end;

	if (!end)
		return;
	if (end->reply)
		freeReplyObject(end->reply);
	if (end->context)
		redisFree(end->context);
	free(end);
}

static void redis_dispose(struct peer_channel *channel)
{
	struct redis_server *server = channel->shared;

	if (server)
		broker_stop(server->pid);
	free(server);
}

const struct peer peer_redis = {
	.name = "Redis streams",
	.how = "pipelined XADD, blocking XREAD, unix socket, no persistence",
	.sources = "redis-server libhiredis-dev",
	.readers_max = PEER_READERS_MAX,
	.helped = true,
	.paced = true,
	.version = redis_version,
	.prepare = redis_prepare,
	.open = redis_open,
	.send = redis_send,
	.receive = redis_receive,
	.close = redis_close,
	.dispose = redis_dispose,
};
