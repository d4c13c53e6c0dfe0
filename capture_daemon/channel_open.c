/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's hello: checked, answered with a new generation of its channel. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include <test_point.h>

#include "capture_daemon/carried.h"
#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/limits.h"
#include "capture_daemon/log.h"
#include "capture_daemon/orphans.h"
#include "capture_daemon/peers.h"
#include "capture_daemon/sizing.h"

/* Numbers that another runtime directory of the same user may have taken. */
#define GENERATIONS_TRIED 1024

/* A hello, taken apart; descriptors are -1 once they have an owner. */
struct hello {
	const struct r3ring_hello_producer_message *message;
	struct r3ring_record schema;
	struct ring_sizes sizes;
	struct channel *orphan; /* what a dead daemon left of the channel; NULL: nothing */
	bool same_ring;         /* it is continued in the orphan's own ring */
	int *pages_fd;
	int *buffer_fd;
	int *pidfd;
};

static int no_fd = -1;

/* ---- checks ------------------------------------------------------------- */

static int take_fds(struct socket_inbox *inbox, struct hello *hello, struct r3ring_error *err)
{
	const struct r3ring_hello_producer_message *message = hello->message;
	bool has_buffer = message->buffer_kind != R3RING_BUFFER_CUDA_IPC;
	bool has_pidfd = message->has_pidfd == 1;
	unsigned int expected = 1u + has_buffer + has_pidfd;

	if (inbox->fd_count != expected)
		return r3ring_error_set(err, -EBADMSG,
					"hello with %u descriptors where %u belong to it",
					inbox->fd_count, expected);
	hello->pages_fd = &inbox->fds[0];
	hello->buffer_fd = has_buffer ? &inbox->fds[1] : &no_fd;
	hello->pidfd = has_pidfd ? &inbox->fds[expected - 1] : &no_fd;
	return *hello->pidfd >= 0 ? peers_check_pidfd(*hello->pidfd, err) : 0;
}

static int check_schema(const struct r3ring_schema_record *schema, struct r3ring_error *err)
{
	if (schema->layers == 0)
		return r3ring_error_set(err, -EINVAL,
					"the schema has no layer: a model without MoE layers has "
					"no routes to capture");
	if (schema->top_k > schema->experts)
		return r3ring_error_set(err, -EINVAL, "top-k %u of %u experts", schema->top_k,
					schema->experts);
	return 0;
}

static int parse_schema(struct socket_inbox *inbox, struct hello *hello, struct r3ring_error *err)
{
	size_t bytes = inbox->len - sizeof(*hello->message);
	int r;

	if (bytes != hello->message->schema_len)
		return r3ring_error_set(err, -EBADMSG, "hello with %zu bytes of schema, says %u",
					bytes, hello->message->schema_len);
	r = r3ring_record_decode(&hello->schema, R3RING_SCHEMA,
				 inbox->u.bytes + sizeof(*hello->message), bytes, err);
	if (r < 0)
		return r;
	/* One that comes back has laid out its buffer; for others it is chosen here. */
	if (hello->message->reconnect != 1)
		hello->schema.u.schema.head.rows_per_record = 0;
	return check_schema(&hello->schema.u.schema.head, err);
}

static int check_name(struct daemon *daemon, const struct r3ring_channel_name *name,
		      struct r3ring_error *err)
{
	struct channel *old;
	int r = channel_name_check(name, err);

	if (r < 0)
		return r;
	old = channel_find(daemon, name);
	if (!old || old->state != CHANNEL_LIVE || !old->producer)
		return 0;
	/* A process that follows a killed one may come before the news of the death. */
	if (channel_producer_is_gone(old)) {
		channel_producer_lost(old);
		return 0;
	}
	return r3ring_error_set(err, -EBUSY,
				"channel %s has a live producer (pid %d): close that one, or use "
				"another --instance or --rank",
				old->text, old->producer_pid);
}

/* Host memory that the producer brings along. */
static uint64_t imported_bytes(const struct r3ring_hello_producer_message *message)
{
	if (message->buffer_kind != R3RING_BUFFER_HOST)
		return message->pages_bytes;
	return message->pages_bytes + message->buffer_bytes;
}

/* What the ring that is there has; a changed --ring-size is for new ones. */
static void keep_sizes(struct hello *hello)
{
	const struct publisher *publisher = &hello->orphan->drain.publisher;

	hello->sizes = (struct ring_sizes){
		.arena_bytes = publisher->arena_bytes,
		.segment_bytes = hello->orphan->memory,
		.depth = publisher->depth,
		.rows_per_record = publisher->schema.rows_per_record,
	};
}

static int check_sizes(struct session *session, struct hello *hello, struct r3ring_error *err)
{
	struct daemon *daemon = session->daemon;
	struct limits_demand demand = {
		.user = session->peer.uid,
		.former = channel_find(daemon, &hello->message->channel),
	};
	int r;

	if (hello->message->buffer_bytes > daemon->options.buffer_size)
		return r3ring_error_set(err, -EDQUOT,
					"a capture buffer of %" PRIu64 " bytes is larger than the "
					"%" PRIu64 " that r3ringd --buffer-size allows",
					hello->message->buffer_bytes, daemon->options.buffer_size);
	if (hello->same_ring) {
		keep_sizes(hello);
		return 0;
	}
	r = sizing_choose(&hello->sizes, &hello->schema.u.schema.head, daemon->options.ring_size,
			  err);
	if (r < 0)
		return r;
	demand.bytes = hello->sizes.segment_bytes + imported_bytes(hello->message);
	limits_make_room(daemon, &demand);
	return limits_check_channel(daemon, &demand, err);
}

static void find_orphan(struct daemon *daemon, struct hello *hello)
{
	struct channel *old = channel_find(daemon, &hello->message->channel);

	if (hello->message->reconnect != 1 || !old || old->state != CHANNEL_ORPHAN)
		return;
	hello->orphan = old;
	hello->same_ring = orphan_continues(old, hello->message, &hello->schema);
}

static int check_order(const struct r3ring_hello_producer_message *message,
		       struct r3ring_error *err)
{
	if (message->order == R3RING_ORDER_BELL || message->order == R3RING_ORDER_EVENT)
		return 0;
	return r3ring_error_set(err, -EBADMSG, "hello with order %u, which is none",
				message->order);
}

static int hello_check(struct session *session, struct hello *hello, struct r3ring_error *err)
{
	struct socket_inbox *inbox = &session->daemon->inbox;
	int r;

	if (inbox->len < sizeof(*hello->message))
		return r3ring_error_set(err, -EBADMSG, "hello of %zu bytes, expected %zu",
					inbox->len, sizeof(*hello->message));
	hello->message = (const void *)inbox->u.bytes;
	if (session->channel)
		return r3ring_error_set(err, -EBADMSG, "this connection has a channel already");
	r = check_order(hello->message, err);
	if (r == 0)
		r = take_fds(inbox, hello, err);
	if (r == 0)
		r = check_name(session->daemon, &hello->message->channel, err);
	if (r == 0)
		r = parse_schema(inbox, hello, err);
	if (r == 0)
		find_orphan(session->daemon, hello);
	if (r == 0)
		r = check_sizes(session, hello, err);
	return r;
}

/* ---- the new generation ------------------------------------------------- */

static void name_segment(const struct channel *channel, uint64_t generation, char name[128])
{
	channel_segment_name(&channel->name, geteuid(), generation, name);
}

#define LARGE_ARENA (UINT64_C(512) << 20)

/* Listed before it is made, so that a crash leaves nothing behind unlisted. */
static int make_segment(struct channel *channel, struct r3ring_segment_options *options,
			struct r3ring_error *err)
{
	struct runtime_dir *dir = &channel->daemon->dir;
	int r = leftover_list(dir->segments_fd, options->name, options->uuid, channel->user);

	if (r < 0)
		return r3ring_error_set(err, r, "%s/segments%s: %s", dir->path, options->name,
					strerror(-r));
	R3RING_TEST_POINT("channel listed");
	/* The kernel clears all of it, at about a second a gigabyte, and nobody is heard
	 * meanwhile. */
	if (options->arena_bytes >= LARGE_ARENA)
		log_info("channel %s: allocating a ring of more than %" PRIu64 " MiB",
			 channel->text, options->arena_bytes >> 20);
	r = r3ring_segment_create(&channel->segment, options, err);
	R3RING_TEST_POINT("channel made");
	if (r < 0)
		leftover_unlist(dir->segments_fd, options->name);
	return r;
}

static int next_segment(struct channel *channel, const struct hello *hello,
			struct r3ring_error *err)
{
	uint64_t last = runtime_dir_last_generation(&channel->daemon->dir, &channel->name);
	struct r3ring_segment_options options = {
		.size = sizeof(options),
		.label = channel->text,
		.arena_bytes = hello->sizes.arena_bytes,
		.depth = hello->sizes.depth,
	};
	char name[128];
	int r;

	if (hello->message->reconnect == 1 && hello->message->last_generation > last &&
	    hello->message->last_generation < UINT32_MAX)
		last = hello->message->last_generation;
	options.name = name;
	if (getrandom(options.uuid, sizeof(options.uuid), 0) != sizeof(options.uuid))
		return r3ring_error_set(err, -EIO, "getrandom: %s", strerror(errno));
	for (unsigned int i = 1; i <= GENERATIONS_TRIED; i++) {
		options.generation = last + i;
		name_segment(channel, options.generation, name);
		r = make_segment(channel, &options, err);
		if (r != -EEXIST)
			break;
	}
	if (r < 0)
		return r;
	r = runtime_dir_store_generation(&channel->daemon->dir, &channel->name, options.generation);
	return r < 0 ? r3ring_error_set(err, r, "%s/generations: %s", channel->daemon->dir.path,
					strerror(-r))
		     : 0;
}

static int share_with_group(const struct channel *channel, struct r3ring_error *err)
{
	int fd, r = 0;

	if (channel->daemon->gid == PEERS_NO_GROUP)
		return 0;
	fd = r3ring_segment_reader_fd(channel->segment);
	if (fd < 0 || fchown(fd, (uid_t)-1, channel->daemon->gid) < 0)
		r = r3ring_error_set(
			err, fd < 0 ? fd : -errno, "segment %s cannot be given to --group %s",
			r3ring_segment_name(channel->segment), channel->daemon->options.group);
	if (fd >= 0)
		close(fd);
	return r;
}

static void fill_schema(struct r3ring_schema_record *schema, const struct channel *channel,
			const struct ring_sizes *sizes)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);

	schema->rows_per_record = sizes->rows_per_record;
	schema->generation = header->generation;
	schema->clock = CLOCK_MONOTONIC;
	schema->realtime_offset_ns = (int64_t)(clock_read_ns(CLOCK_REALTIME) - clock_now_ns());
	memcpy(schema->uuid, header->uuid, sizeof(schema->uuid));
	memcpy(schema->boot_id, header->boot_id, sizeof(schema->boot_id));
}

static void log_device(void *ctx, enum r3ring_log_level level, const char *line)
{
	const struct channel *channel = ctx;

	log_line(level, "channel %s: %s", channel->text, line);
}

static int attach(struct channel *channel, struct hello *hello, uint64_t told_step,
		  struct r3ring_error *err)
{
	const struct drain_options options = {
		.hello = hello->message,
		.pages_fd = *hello->pages_fd,
		.buffer_fd = *hello->buffer_fd,
		.imported_bytes = imported_bytes(hello->message),
		.told_step = told_step,
		.policy = channel_policy(channel),
		.device = {.imports = true,
			   .releases_gpu = channel->daemon->options.release_gpu,
			   .shares_faults = channel->daemon->options.allow_mps,
			   .log = log_device,
			   .log_ctx = channel},
	};
	struct r3ring_schema_record *schema = &hello->schema.u.schema.head;
	int r;

	schema->rows_per_record = hello->sizes.rows_per_record;
	r = drain_attach(&channel->drain, &options, schema, err);
	if (channel->drain.pages.base)
		*hello->pages_fd = -1;
	if (channel->drain.buffer.base)
		*hello->buffer_fd = -1;
	return r;
}

/*
 * What lived when the former generation was closed, and up to which step it was told. A
 * daemon that was killed before a new generation had all of that left both: a ring that
 * its producer was not welcomed to, and the file.
 */
static void find_carried(const struct channel *channel, const struct hello *hello,
			 struct live *carried, uint64_t *told_step)
{
	const struct r3ring_hello_producer_message *message = hello->message;
	uint64_t left = 0;
	int r;

	*told_step = 0;
	if (hello->orphan) {
		*carried = hello->orphan->drain.publisher.live;
		hello->orphan->drain.publisher.live = (struct live){0};
		*told_step = hello->orphan->drain.told_step;
	}
	if (message->reconnect != 1)
		return;
	r = carried_read(&channel->daemon->dir, &channel->name, message->last_generation, carried,
			 &left);
	if (left > *told_step)
		*told_step = left;
	if (r < 0)
		log_warn("channel %s: what the daemon before left of its live requests is not "
			 "usable, rows of theirs may have no request: %s",
			 channel->text, strerror(-r));
}

/* The producer will try again. */
static void give_back(struct channel *channel, const struct hello *hello, struct live *carried)
{
	struct live *live = carried->bytes ? carried : &channel->drain.publisher.live;

	if (hello->orphan) {
		hello->orphan->drain.publisher.live = *live;
		*live = (struct live){0};
	}
	live_clear(carried);
}

static int begin_generation(struct channel *channel, struct hello *hello, struct live *carried,
			    struct r3ring_error *err)
{
	int r = next_segment(channel, hello, err);

	if (r == 0)
		r = share_with_group(channel, err);
	if (r < 0)
		return r;
	fill_schema(&hello->schema.u.schema.head, channel, &hello->sizes);
	r = drain_begin(&channel->drain, channel->segment, &hello->schema, carried, err);
	if (r < 0)
		return r;
	R3RING_TEST_POINT("channel begun");
	if (channel_older_drain(channel))
		drain_hold_open_ended(&channel->drain);
	/* Before the thread takes ends of these requests. */
	carried_remove(&channel->daemon->dir, &channel->name);
	return drain_launch(&channel->drain, err);
}

static int begin_anew(struct channel *channel, struct hello *hello, struct r3ring_error *err)
{
	struct live carried = {0};
	uint64_t told_step;
	int r;

	find_carried(channel, hello, &carried, &told_step);
	r = attach(channel, hello, told_step, err);
	if (r == 0)
		r = begin_generation(channel, hello, &carried, err);
	if (r < 0)
		give_back(channel, hello, &carried);
	return r;
}

static int start_drain(struct channel *channel, struct hello *hello, struct r3ring_error *err)
{
	int r;

	if (!hello->same_ring)
		return begin_anew(channel, hello, err);
	r = attach(channel, hello, hello->orphan->drain.told_step, err);
	if (r < 0)
		return r;
	/* Left by a daemon that was killed while it ended: the ring has all. */
	carried_remove(&channel->daemon->dir, &channel->name);
	return orphan_resume(hello->orphan, channel, err);
}

/* ---- watching ----------------------------------------------------------- */

static void producer_died(struct loop_source *source, uint32_t events)
{
	(void)events;
	channel_producer_lost(source->owner);
}

static void drain_ended(struct loop_source *source, uint32_t events)
{
	(void)events;
	channel_drained(source->owner);
}

static int watch(struct channel *channel, struct hello *hello, struct r3ring_error *err)
{
	struct loop *loop = channel->daemon->loop;
	int r;

	channel->done = (struct loop_source){.fd = channel->drain.done_fd,
					     .events = POLLIN,
					     .ready = drain_ended,
					     .owner = channel};
	r = loop_add(loop, &channel->done);
	if (r == 0 && *hello->pidfd >= 0) {
		channel->pidfd = (struct loop_source){.fd = *hello->pidfd,
						      .events = POLLIN,
						      .ready = producer_died,
						      .owner = channel};
		*hello->pidfd = -1;
		r = loop_add(loop, &channel->pidfd);
	}
	return r < 0 ? r3ring_error_set(err, r, "the control loop: %s", strerror(-r)) : 0;
}

/* ---- answering ---------------------------------------------------------- */

static int welcome(struct channel *channel)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	struct r3ring_welcome_producer_message message = {
		.head.type = R3RING_MSG_WELCOME_PRODUCER,
		.generation = header->generation,
		.rows_per_record = channel->drain.geometry.rows_per_record,
	};

	memcpy(message.uuid, header->uuid, sizeof(message.uuid));
	strncpy(message.segment, r3ring_segment_name(channel->segment),
		sizeof(message.segment) - 1);
	return session_send(channel->producer, &message.head, sizeof(message), NULL, 0, NULL, 0);
}

static const char *buffer_words(const struct channel *channel)
{
	switch (channel->buffer_kind) {
	case R3RING_BUFFER_CUDA_IPC:
		return ", its buffer on the GPU by CUDA IPC";
	case R3RING_BUFFER_CUDA_VMM:
		return ", its buffer on the GPU by descriptor";
	default:
		return "";
	}
}

static struct channel *channel_new(struct session *session, const struct hello *hello)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->daemon = session->daemon;
	channel->name = hello->message->channel;
	channel_name_format(&channel->name, channel->text);
	channel->user = session->peer.uid;
	channel->producer_pid = session->peer.pid;
	channel->memory = hello->sizes.segment_bytes + imported_bytes(hello->message);
	channel->buffer_bytes = hello->message->buffer_bytes;
	channel->buffer_kind = (enum r3ring_buffer_kind)hello->message->buffer_kind;
	channel->export_reason = (enum r3ring_export_reason)hello->message->export_reason;
	channel->order = (enum r3ring_order)hello->message->order;
	memcpy(channel->gpu_uuid, hello->message->gpu_uuid, sizeof(channel->gpu_uuid));
	channel->since = time(NULL);
	channel->pidfd.fd = -1;
	channel->done.fd = -1;
	drain_init(&channel->drain, channel->text);
	return channel;
}

int channel_open(struct session *session, struct r3ring_error *err)
{
	struct daemon *daemon = session->daemon;
	struct hello hello = {0};
	struct channel *channel, *old;
	int r = hello_check(session, &hello, err);

	if (r < 0)
		return r;
	channel = channel_new(session, &hello);
	if (!channel)
		return r3ring_error_set(err, -ENOMEM, "no memory for a channel");
	r = start_drain(channel, &hello, err);
	if (r == 0)
		r = watch(channel, &hello, err);
	if (r < 0) {
		daemon->gpu_lost |= r == -ENOTRECOVERABLE;
		channel_abandon(channel);
		return r;
	}
	strncpy(channel->device, channel->drain.ops->name, sizeof(channel->device) - 1);
	old = channel_find(daemon, &channel->name);
	DL_APPEND(daemon->channels, channel);
	channel->producer = session;
	session->channel = channel;
	log_info("channel %s: generation %" PRIu64 " in %s, producer %d%s%s%s", channel->text,
		 r3ring_segment_get_header(channel->segment)->generation,
		 r3ring_segment_name(channel->segment), channel->producer_pid,
		 hello.message->reconnect == 1 ? " (came back)" : "", buffer_words(channel),
		 hello.same_ring ? ": goes on where the dead daemon stopped" : "");
	/* Requests that a producer which comes back carries on are there no more. */
	if (old && old->state == CHANNEL_ORPHAN)
		drain_abort_requests(&old->drain);
	if (old)
		channel_supersede(old, r3ring_segment_get_header(channel->segment)->generation,
				  r3ring_segment_name(channel->segment));
	R3RING_TEST_POINT("channel opened");
	if (welcome(channel) < 0)
		session_close(session);
	R3RING_TEST_POINT("channel welcomed");
	return 0;
}
