/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a channel: checked, made, begun, answered. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utlist.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/carried.h"
#include "capture_daemon/channel_open.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/generation.h"
#include "capture_daemon/limits.h"
#include "capture_daemon/log.h"
#include "capture_daemon/orphans.h"

/* What a dead daemon left of the channel, for the producer that comes back. Handles and step
 * numbers of any other's mean nothing to it. */
static struct channel *find_orphan(const struct opening *opening)
{
	const struct r3ring_hello_producer_message *hello = opening->hello.message;
	struct channel *old = channel_find(opening->daemon, &hello->channel);

	if (!old || old->state != CHANNEL_ORPHAN || !orphan_is_of(old, hello))
		return NULL;
	return old;
}

/* ---- checked ------------------------------------------------------------ */

static int check_name(struct daemon *daemon, const struct r3ring_channel_name *name,
		      struct r3ring_error *err)
{
	struct channel *old = channel_find(daemon, name);

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

/* What the ring that is there has; a changed --ring-size is for new ones. */
static void keep_sizes(struct ring_sizes *sizes, const struct channel *orphan)
{
	const struct publisher *publisher = &orphan->drain.publisher;

	*sizes = (struct ring_sizes){
		.arena_bytes = publisher->arena_bytes,
		.segment_bytes = orphan->memory,
		.depth = publisher->depth,
		.rows_per_record = publisher->schema.rows_per_record,
	};
}

static int choose_sizes(struct opening *opening, struct r3ring_error *err)
{
	struct daemon *daemon = opening->daemon;
	const struct hello *hello = &opening->hello;
	struct limits_demand demand = {
		.user = opening->session->peer.uid,
		.former = channel_find(daemon, &hello->message->channel),
	};
	int r = sizing_choose(&opening->sizes, &hello->schema.u.schema.head,
			      daemon->options.ring_size, err);

	if (r < 0)
		return r;
	demand.bytes = opening->sizes.segment_bytes + hello_memory(hello);
	limits_make_room(daemon, &demand);
	return limits_check_channel(daemon, &demand, err);
}

static int check_sizes(struct opening *opening, struct r3ring_error *err)
{
	const struct hello *hello = &opening->hello;
	const struct channel *orphan = find_orphan(opening);
	uint64_t bytes = hello->message->buffer_bytes;
	uint64_t allowed = opening->daemon->options.buffer_size;

	if (bytes > allowed)
		return r3ring_error_set(err, -EDQUOT,
					"a capture buffer of %" PRIu64 " bytes is larger than the "
					"%" PRIu64
					" that r3ringd --buffer-size allows: raise it, or set a "
					"smaller buffer_bytes of the producer",
					bytes, allowed);
	opening->same_ring = orphan && orphan_continues(orphan, hello->message, &hello->schema);
	if (!opening->same_ring)
		return choose_sizes(opening, err);
	keep_sizes(&opening->sizes, orphan);
	return 0;
}

static struct channel *channel_new(const struct opening *opening)
{
	const struct r3ring_hello_producer_message *message = opening->hello.message;
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->daemon = opening->daemon;
	channel->name = message->channel;
	channel_name_format(&channel->name, channel->text);
	channel->user = opening->session->peer.uid;
	channel->producer_pid = opening->session->peer.pid;
	channel->memory = opening->sizes.segment_bytes + hello_memory(&opening->hello);
	channel->buffer_bytes = message->buffer_bytes;
	channel->buffer_kind = (enum r3ring_buffer_kind)message->buffer_kind;
	channel->export_reason = (enum r3ring_export_reason)message->export_reason;
	channel->order = (enum r3ring_order)message->order;
	memcpy(channel->gpu_uuid, message->gpu_uuid, sizeof(channel->gpu_uuid));
	channel->since = time(NULL);
	channel->pidfd.fd = -1;
	channel->done.fd = -1;
	drain_init(&channel->drain, channel->text);
	return channel;
}

int channel_open_check(struct opening *opening, struct r3ring_error *err)
{
	int r = check_name(opening->daemon, &opening->hello.message->channel, err);

	if (r == 0)
		r = check_sizes(opening, err);
	if (r < 0)
		return r;
	opening->hello.schema.u.schema.head.rows_per_record = opening->sizes.rows_per_record;
	opening->channel = channel_new(opening);
	return opening->channel ? 0 : r3ring_error_set(err, -ENOMEM, "no memory for a channel");
}

/* ---- made --------------------------------------------------------------- */

static void log_device(void *ctx, enum r3ring_log_level level, const char *line)
{
	const struct channel *channel = ctx;

	log_line(level, "channel %s: %s", channel->text, line);
}

static int attach(struct opening *opening, struct r3ring_error *err)
{
	struct channel *channel = opening->channel;
	struct hello *hello = &opening->hello;
	const struct options *daemon_options = &opening->daemon->options;
	const struct drain_options options = {
		.hello = hello->message,
		.pages_fd = hello->pages_fd,
		.buffer_fd = hello->buffer_fd,
		.imported_bytes = hello_memory(hello),
		.device = {.imports = true,
			   .releases_gpu = daemon_options->release_gpu,
			   .shares_faults = daemon_options->allow_mps,
			   .log = log_device,
			   .log_ctx = channel},
	};
	int r = drain_attach(&channel->drain, &options, &hello->schema.u.schema.head, err);

	if (channel->drain.pages.base)
		hello->pages_fd = -1;
	if (channel->drain.buffer.base)
		hello->buffer_fd = -1;
	return r;
}

static bool carry_on(void *ctx, uint64_t bytes)
{
	struct opening *opening = ctx;

	opening->allocates = true;
	r3ring_store_relaxed_u64(&opening->made_bytes, bytes);
	return !r3ring_load_relaxed_u32(&opening->canceled);
}

int channel_open_make(struct opening *opening, struct r3ring_error *err)
{
	const struct generation_options options = {
		.sizes = opening->sizes,
		.last = hello_comes_back(&opening->hello) ? opening->hello.message->last_generation
							  : 0,
		.carry_on = carry_on,
		.ctx = opening,
	};
	struct channel *channel = opening->channel;
	int r = opening->attached ? 0 : attach(opening, err);

	opening->attached = r == 0;
	opening->allocates = false;
	if (r == 0)
		r = generation_make(channel, &options, err);
	if (r == 0)
		r = drain_prepare(&channel->drain, channel->segment, err);
	return r;
}

bool channel_open_lacked_room(const struct opening *opening)
{
	return opening->result == -ENOSPC && opening->allocates && !opening->channel->segment;
}

static struct limits_demand demand_of(const struct opening *opening)
{
	return (struct limits_demand){
		.user = opening->channel->user,
		.bytes = opening->sizes.segment_bytes,
		.former = channel_find(opening->daemon, &opening->channel->name),
	};
}

bool channel_open_make_room(struct opening *opening)
{
	const struct limits_demand demand = demand_of(opening);

	return limits_make_shm_room(opening->daemon, &demand);
}

void channel_open_explain_room(struct opening *opening)
{
	const struct limits_demand demand = demand_of(opening);

	limits_explain_shm_room(opening->daemon, &demand, &opening->err);
}

/* ---- begun -------------------------------------------------------------- */

static int go_on(struct opening *opening, struct channel *orphan, struct r3ring_error *err)
{
	struct channel *channel = opening->channel;
	int r = attach(opening, err);

	if (r < 0)
		return r;
	channel->drain.said.gap_records = orphan->drain.said.gap_records;
	r = drain_take_place(&channel->drain, orphan->drain.told_step, channel_policy(channel),
			     err);
	if (r < 0)
		return r;
	/* Left by a daemon that was killed while it ended: the ring has all. */
	carried_remove(&channel->daemon->dir, &channel->name);
	return orphan_resume(orphan, channel, err);
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
	if (r == 0 && hello->pidfd >= 0) {
		channel->pidfd = (struct loop_source){.fd = hello->pidfd,
						      .events = POLLIN,
						      .ready = producer_died,
						      .owner = channel};
		hello->pidfd = -1;
		r = loop_add(loop, &channel->pidfd);
	}
	return r < 0 ? r3ring_error_set(err, r, "the control loop: %s", strerror(-r)) : 0;
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

static void log_opened(const struct opening *opening)
{
	const struct channel *channel = opening->channel;

	log_info("channel %s: generation %" PRIu64 " in %s, producer %d%s%s%s", channel->text,
		 r3ring_segment_get_header(channel->segment)->generation,
		 r3ring_segment_name(channel->segment), channel->producer_pid,
		 hello_comes_back(&opening->hello) ? " (came back)" : "", buffer_words(channel),
		 opening->same_ring ? ": goes on where the dead daemon stopped" : "");
}

/* Requests that a producer which comes back carries on are there no more; the others may have
 * come to any end since. Another producer's may come back behind this one. */
static void give_up_orphan(const struct opening *opening, struct channel *orphan)
{
	if (!orphan_is_of(orphan, opening->hello.message))
		channel_leave(orphan);
	drain_end_requests(&orphan->drain, R3RING_END_UNKNOWN);
}

static void hand_over(struct opening *opening)
{
	struct channel *channel = opening->channel, *old;

	strncpy(channel->device, channel->drain.ops->name, sizeof(channel->device) - 1);
	old = channel_find(opening->daemon, &channel->name);
	DL_APPEND(opening->daemon->channels, channel);
	channel->producer = opening->session;
	opening->session->channel = channel;
	opening->channel = NULL;
	if (old && old->state == CHANNEL_ORPHAN)
		give_up_orphan(opening, old);
	if (old)
		channel_supersede(old, r3ring_segment_get_header(channel->segment)->generation,
				  r3ring_segment_name(channel->segment));
	R3RING_TEST_POINT("channel opened");
}

int channel_open_finish(struct opening *opening, struct r3ring_error *err)
{
	struct channel *channel = opening->channel, *orphan = find_orphan(opening);
	int r = opening->same_ring ? go_on(opening, orphan, err)
				   : generation_begin(channel, &opening->hello, orphan, err);

	if (r == 0)
		r = watch(channel, &opening->hello, err);
	if (r < 0)
		return r;
	log_opened(opening);
	hand_over(opening);
	return 0;
}

/* ---- answered ----------------------------------------------------------- */

void channel_welcome(struct channel *channel)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	struct r3ring_welcome_producer_message message = {
		.head.type = R3RING_MSG_WELCOME_PRODUCER,
		.generation = header->generation,
		.rows_per_record = channel->drain.geometry.rows_per_record,
	};
	int r;

	memcpy(message.uuid, header->uuid, sizeof(message.uuid));
	strncpy(message.segment, r3ring_segment_name(channel->segment),
		sizeof(message.segment) - 1);
	r = session_send(channel->producer, &message.head, sizeof(message), NULL, 0, NULL, 0);
	if (r < 0)
		session_close(channel->producer);
	R3RING_TEST_POINT("channel welcomed");
}
