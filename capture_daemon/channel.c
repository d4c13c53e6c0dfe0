/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's later life: its producer goes, it is drained, it makes room. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include <test_point.h>

#include "capture_daemon/carried.h"
#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/orphans.h"
#include "capture_daemon/patterns.h"
#include "capture_daemon/registration.h"

struct channel *channel_find(struct daemon *daemon, const struct r3ring_channel_name *name)
{
	struct channel *channel;

	DL_FOREACH(daemon->channels, channel)
	{
		if (!channel->retiring && channel_names_equal(&channel->name, name))
			return channel;
	}
	return NULL;
}

struct channel *channel_find_generation(struct daemon *daemon,
					const struct r3ring_channel_name *name, uint64_t generation)
{
	struct channel *channel;

	DL_FOREACH(daemon->channels, channel)
	{
		if (channel_names_equal(&channel->name, name) &&
		    r3ring_segment_get_header(channel->segment)->generation == generation)
			return channel;
	}
	return NULL;
}

bool channel_draining(const struct channel *channel)
{
	return channel->drain.running;
}

bool channel_older_drain(const struct channel *channel)
{
	const struct channel *other;

	DL_FOREACH(channel->daemon->channels, other)
	{
		if (other != channel && channel_names_equal(&other->name, &channel->name) &&
		    channel_draining(other))
			return true;
	}
	return false;
}

struct stall_policy channel_policy(const struct channel *channel)
{
	const struct options *options = &channel->daemon->options;

	return (struct stall_policy){
		.limit_bytes = options->lossless_limit,
		.limit_ns = options->stall_limit * NS_PER_MS,
		.drop = options->lossless_policy == LOSSLESS_DROP ||
			patterns_fit(options->lossless_drop, channel->text),
	};
}

static void unwatch(struct channel *channel)
{
	loop_remove(channel->daemon->loop, &channel->pidfd);
	loop_remove(channel->daemon->loop, &channel->done);
	if (channel->pidfd.fd >= 0)
		close(channel->pidfd.fd);
	channel->pidfd.fd = -1;
}

/* It may free what an IPC handle names once nobody has that open any more. */
static bool waits_for_buffer(const struct channel *channel)
{
	return channel->buffer_kind == R3RING_BUFFER_CUDA_IPC &&
	       (channel_draining(channel) || channel->drain.gpu_lost);
}

void channel_producer_gone(struct channel *channel, enum drain_producer how)
{
	struct session *session = channel->producer;

	if (how == DRAIN_PRODUCER_CLOSED && waits_for_buffer(channel)) {
		drain_producer_gone(&channel->drain, how);
		return;
	}
	channel->producer = NULL;
	loop_remove(channel->daemon->loop, &channel->pidfd);
	drain_producer_gone(&channel->drain, how);
	if (session) {
		session->channel = NULL;
		session_close(session);
	}
}

bool channel_producer_is_gone(const struct channel *channel)
{
	struct pollfd polled = {.fd = channel->pidfd.fd, .events = POLLIN};

	return poll(&polled, 1, 0) == 1 || session_has_hung_up(channel->producer);
}

void channel_producer_lost(struct channel *channel)
{
	bool closed = drain_closing(&channel->drain) && !waits_for_buffer(channel);
	enum drain_producer how = closed ? DRAIN_PRODUCER_CLOSED : DRAIN_PRODUCER_DIED;

	if (how == DRAIN_PRODUCER_DIED)
		log_warn("channel %s: producer %d died or hung up", channel->text,
			 channel->producer_pid);
	channel_producer_gone(channel, how);
}

/* The hang-up tells the producer that its buffer is its own again. */
static void let_producer_go(struct channel *channel)
{
	struct session *session = channel->producer;

	channel->producer = NULL;
	if (!session)
		return;
	session->channel = NULL;
	session_close(session);
}

/* The producer learns why it was cut off. */
static void refuse_producer(struct channel *channel, const struct drain_report *report)
{
	struct session *session = channel->producer;
	struct r3ring_error why;

	channel->producer = NULL;
	if (!session)
		return;
	session->channel = NULL;
	r3ring_error_set(&why, -EBADMSG, "channel %s: %.400s", channel->text, report->failure);
	session_refuse(session, &why);
}

void channel_note_end(const struct channel *channel, enum leftover_end end)
{
	const char *name = r3ring_segment_name(channel->segment);
	int r = leftover_note_end(channel->daemon->dir.segments_fd, name, end);

	if (r < 0)
		log_warn("segment %s cannot be noted as ended: %s", name, strerror(-r));
}

void channel_drained(struct channel *channel)
{
	struct drain_report report;

	unwatch(channel);
	drain_join(&channel->drain);
	if (channel->drain.gpu_lost) {
		channel->daemon->gpu_lost = true;
		return;
	}
	drain_nudge(&channel->drain);
	drain_get_report(&channel->drain, &report);
	if (report.failed)
		refuse_producer(channel, &report);
	else if (drain_producer_state(&channel->drain) != DRAIN_PRODUCER_ALIVE)
		let_producer_go(channel);
	channel->state = CHANNEL_ENDED;
	/* With a producer that lives its ring may be gone on with. */
	if (!channel->producer)
		channel_note_end(channel, LEFTOVER_ENDED);
	channel->memory -= channel->drain.imported_bytes;
	log_info("channel %s: drained, %" PRIu64 " of %" PRIu64 " steps complete, %" PRIu64
		 " partial",
		 channel->text, report.totals.steps_complete, report.totals.steps,
		 report.totals.steps_partial);
	if (channel->retiring)
		channel_retire(channel, R3RING_CLOSED_NEXT);
}

/* Frees what the channel holds; the segment's name goes too. */
static void channel_free(struct channel *channel)
{
	unwatch(channel);
	registrations_forget(channel);
	drain_close(&channel->drain);
	if (channel->segment) {
		const char *name = r3ring_segment_name(channel->segment);
		int r = r3ring_segment_unlink(channel->segment);

		R3RING_TEST_POINT("channel unlinked");
		if (r < 0)
			log_warn("segment %s cannot be removed: %s", name, strerror(-r));
		leftover_unlist(channel->daemon->dir.segments_fd, name);
		r3ring_segment_close(channel->segment);
	}
	free(channel);
}

void channel_leave(const struct channel *channel)
{
	const struct drain *drain = &channel->drain;
	const struct r3ring_schema_record *schema = &drain->publisher.schema;
	struct carried_told told = {.step = drain->told_step,
				    .gap_records = drain->said.gap_records};
	int r;

	if (channel->state == CHANNEL_ORPHAN)
		told = orphan_told(channel);
	if (schema->continues < schema->generation && schema->continues)
		told.former = schema->generation - schema->continues;
	r = carried_store(&channel->daemon->dir, &channel->name,
			  r3ring_segment_get_header(channel->segment)->generation,
			  &drain->publisher.live, &told);

	if (r < 0)
		log_warn("channel %s: its live requests are not left to the next generation, rows "
			 "of theirs will have no request: %s",
			 channel->text, strerror(-r));
}

void channel_abandon(struct channel *channel)
{
	drain_stop(&channel->drain, 0);
	channel_free(channel);
}

/* Once no older generation is drained any more, readers come to the newest. */
static void tell_newest(const struct channel *channel)
{
	struct channel *newest = channel_find(channel->daemon, &channel->name);

	if (newest && !channel_older_drain(newest))
		drain_hold_on(&newest->drain);
}

/* Whether its engine may run on, whose later steps this generation will not tell: it lived
 * when the drain thread looked last, was cut off, or never came back to this daemon. */
static bool engine_lives(struct channel *channel)
{
	struct drain_report report;

	drain_get_report(&channel->drain, &report);
	return channel->crashed || channel->drain.left_alive || report.failed;
}

static void say_closed(struct channel *channel, enum r3ring_closed_reason reason)
{
	struct r3ring_closed_record closed = {
		.reason = channel->crashed ? R3RING_CLOSED_CRASHED : reason,
		.engine_lives = engine_lives(channel),
		.next_generation = channel->next_generation,
	};

	memcpy(closed.next_name, channel->next_name, sizeof(channel->next_name));
	drain_check(&channel->drain, publish_closed(&channel->drain.publisher, &closed), "CLOSED");
}

void channel_retire(struct channel *channel, enum r3ring_closed_reason reason)
{
	if (channel->state == CHANNEL_ORPHAN)
		orphan_say_lost(channel);
	say_closed(channel, reason);
	log_debug("channel %s: generation %" PRIu64 " closed", channel->text,
		  r3ring_segment_get_header(channel->segment)->generation);
	if (channel->producer)
		channel->producer->channel = NULL;
	DL_DELETE(channel->daemon->channels, channel);
	tell_newest(channel);
	channel_free(channel);
}

void channel_supersede(struct channel *channel, uint64_t generation, const char *segment_name)
{
	channel->retiring = true;
	channel->next_generation = generation;
	strncpy(channel->next_name, segment_name, sizeof(channel->next_name) - 1);
	if (!channel_draining(channel))
		channel_retire(channel, R3RING_CLOSED_NEXT);
}
