/* SPDX-License-Identifier: Apache-2.0 */
/* Adopting the segments of a dead daemon. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include <test_point.h>

#include "capture_daemon/anew.h"
#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/opening.h"
#include "capture_daemon/orphans.h"
#include "capture_daemon/registration.h"
#include "capture_daemon/remains.h"
#include "ring/adopt.h"

#define PATIENCE_NS (10 * NS_PER_SECOND)
#define LET_GO_PAUSE_NS 1000000
#define LET_GO_TRIES 2000u
#define HELD_TRIES 100u /* of a stranger's lock, which may last for ever */

/* ---- adopting ----------------------------------------------------------- */

/* Whether the step at work was announced as one that is lost: no generation will have it,
 * and why is known. */
static bool at_a_drop(const struct drain *drain)
{
	return drain->said.step.step && drain->said.step.cause;
}

/* Published if the producer does not come back: the whole step, since layers of it that came do
 * not count without its end. */
static void note_lost(struct drain *drain)
{
	struct r3ring_lost_record *lost = &drain->cut_short;
	const struct r3ring_step_record *step = &drain->said.step;
	uint64_t rows = r3ring_step_valid_rows(step);

	lost->cause = R3RING_CAUSE_DAEMON_RESTART;
	if (!step->step || at_a_drop(drain))
		return;
	lost->from_step = step->step;
	lost->to_step = step->step;
	lost->steps = 1;
	lost->rows = rows;
	lost->layer_rows = rows * drain->publisher.schema.layers;
}

struct carried_told orphan_told(const struct channel *orphan)
{
	const struct drain *drain = &orphan->drain;

	if (at_a_drop(drain))
		return (struct carried_told){.step = drain->said.step.step};
	return (struct carried_told){.step = drain->told_step,
				     .gap_records = drain->said.gap_records};
}

static void say_dropped(struct drain *drain)
{
	const struct r3ring_step_record *step = &drain->said.step;
	uint64_t rows = r3ring_step_valid_rows(step);
	const struct r3ring_lost_record lost = {
		.from_step = step->step,
		.to_step = step->step,
		.steps = 1,
		.rows = rows,
		.layer_rows = rows * drain->publisher.schema.layers,
		.cause = step->cause,
		/* Of a longer map not all need have been published. */
		.spans_unknown = step->spans_unknown || step->flags & R3RING_STEP_MAP_CONTINUED,
	};

	drain_check(drain, publish_lost(&drain->publisher, &lost), "LOST");
	drain->told_step = step->step;
	drain->said.step = (struct r3ring_step_record){0};
}

void orphan_say_lost(struct channel *orphan)
{
	struct drain *drain = &orphan->drain;

	if (at_a_drop(drain))
		say_dropped(drain);
	drain_check(drain, publish_lost(&drain->publisher, &drain->cut_short), "LOST");
	drain->cut_short = (struct r3ring_lost_record){0};
}

void orphan_take(struct channel *orphan, struct remains *remains)
{
	struct drain *drain = &orphan->drain;

	drain->publisher.live = remains->live;
	remains->live = (struct live){0};
	drain->publisher.totals = remains->totals;
	drain->publisher.newest_step = remains->newest_step;
	drain->told_step = remains->told_step;
	drain->said = remains->said;
	remains->said.layer_parts = NULL;
	note_lost(drain);
	drain->report.last_step_ns = remains->newest_end_ns;
	drain_update_report(drain);
}

/* The step at work is not copied again: its copy may have been what failed. */
static void note_copy_failed(struct drain *drain)
{
	drain->cut_short.cause = R3RING_CAUSE_COPY_FAILED;
	if (drain->told_step < drain->said.step.step)
		drain->told_step = drain->said.step.step;
}

/* What a ring tells means nothing without its schema; an empty one tells nothing. */
static bool has_schema(const struct channel *channel, const struct remains *remains)
{
	return remains->layers || r3ring_segment_tail(channel->segment) == 0;
}

static int orphan_fill(struct channel *channel, struct remains *remains, struct r3ring_error *err)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	int r = channel_name_parse(&channel->name, header->label, err);

	if (r < 0)
		return r;
	channel_name_format(&channel->name, channel->text);
	r = remains_read(remains, channel->segment);
	if (r == 0 && !has_schema(channel, remains))
		return r3ring_error_set(err, -EBADMSG, "it has no SCHEMA record");
	if (r == 0)
		r = publisher_open(&channel->drain.publisher, channel->segment, &remains->schema);
	/* Killed between its last record and the word that nothing follows. */
	if (r == 0 && remains->closed) {
		r3ring_writer_finish(channel->drain.publisher.writer);
		r = -EPIPE;
	}
	if (r == 0)
		r = drain_serve_idle(&channel->drain, channel_policy(channel));
	if (r < 0)
		return r3ring_error_set(err, r, "%s", strerror(-r));
	orphan_take(channel, remains);
	if (anew_copy_failed(channel->text))
		note_copy_failed(&channel->drain);
	return 0;
}

/* Its engine may have run on, and ended what it ran: nobody knows. */
static void tell_forsaken(struct channel *channel)
{
	const struct r3ring_lost_record untold = {
		.cause = R3RING_CAUSE_DAEMON_RESTART,
		.spans_unknown = 1,
	};
	struct drain *drain = &channel->drain;

	orphan_say_lost(channel);
	drain_check(drain, publish_lost(&drain->publisher, &untold), "LOST");
	drain_end_requests(drain, R3RING_END_UNKNOWN);
	r3ring_writer_wake(drain->publisher.writer);
	drain_update_report(drain);
	channel->state = CHANNEL_ENDED;
}

/* Noted first: a daemon that follows a killed one then goes on with telling, and begins
 * the next generation should the producer come back all the same. */
static void forsake(struct channel *channel)
{
	channel_leave(channel);
	channel_note_end(channel, LEFTOVER_FORSAKEN);
	tell_forsaken(channel);
}

/* What the daemon that died knew of its end. */
static void take_end(struct channel *channel, enum leftover_end end)
{
	const struct drain *drain = &channel->drain;
	bool untold = drain->cut_short.steps || at_a_drop(drain);

	channel->crashed = untold || end != LEFTOVER_ENDED;
	if (end == LEFTOVER_FORSAKEN && (untold || drain->publisher.live.requests))
		tell_forsaken(channel);
	else if (end != LEFTOVER_GOES_ON && !untold)
		channel->state = CHANNEL_ENDED;
}

static uint64_t generation_of(const struct channel *channel)
{
	return r3ring_segment_get_header(channel->segment)->generation;
}

/* The producer may know nothing of the newer one. */
static void replace(struct channel *older, const struct channel *newer)
{
	if (older->state == CHANNEL_ORPHAN)
		channel_leave(older);
	channel_supersede(older, generation_of(newer), r3ring_segment_name(newer->segment));
}

static const char *what_of_producer(const struct channel *channel)
{
	if (channel->state == CHANNEL_ORPHAN)
		return "is waited for";
	return channel->crashed ? "did not come back before" : "had gone before";
}

static void insert(struct daemon *daemon, struct channel *channel)
{
	struct channel *other = channel_find(daemon, &channel->name);
	uint64_t generation = generation_of(channel);

	DL_APPEND(daemon->channels, channel);
	log_info("channel %s: generation %" PRIu64 " of a dead daemon in %s: kept readable, its "
		 "producer %s",
		 channel->text, generation, r3ring_segment_name(channel->segment),
		 what_of_producer(channel));
	if (!other)
		return;
	/* It died while one generation was replacing the other. */
	if (generation_of(other) < generation)
		replace(other, channel);
	else
		replace(channel, other);
}

static struct channel *orphan_new(struct daemon *daemon, uid_t user)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->daemon = daemon;
	channel->state = CHANNEL_ORPHAN;
	channel->user = user;
	channel->since = time(NULL);
	channel->deadline_ns = clock_now_ns() + PATIENCE_NS;
	channel->pidfd.fd = -1;
	channel->done.fd = -1;
	drain_init(&channel->drain, channel->text);
	return channel;
}

static void collect(struct daemon *daemon, const char *name, const char *why)
{
	log_warn("segment %s is removed: %s", name, why);
	if (shm_unlink(name) < 0 && errno != ENOENT)
		log_warn("segment %s cannot be removed: %s", name, strerror(errno));
	leftover_unlist(daemon->dir.segments_fd, name);
}

/*
 * Nobody owns it: it is gone on with, or of no use to anybody. Who holds its lock does not
 * write: a dying daemon loses the directory's lock only once none of its threads runs any
 * more, and this one, which has that now, is the only one to adopt.
 */
static void adopt(struct daemon *daemon, const char *name)
{
	const struct leftover_entry listed = leftover_read(daemon->dir.segments_fd, name);
	struct channel *channel = orphan_new(daemon, listed.user);
	struct remains remains;
	struct r3ring_error err = {0};
	int r;

	if (!channel) {
		log_warn("segment %s is not taken over: no memory", name);
		return;
	}
	r = segment_adopt_ownerless(&channel->segment, name, &err);
	if (r < 0) {
		collect(daemon, name, err.text);
		free(channel);
		return;
	}
	channel->memory = r3ring_segment_get_header(channel->segment)->segment_size;
	remains_init(&remains);
	r = orphan_fill(channel, &remains, &err);
	if (r == 0) {
		take_end(channel, listed.end);
		insert(daemon, channel);
		R3RING_TEST_POINT("orphan adopted");
	} else {
		log_warn("segment %s is removed, it cannot be continued: %s", name, err.text);
		channel_abandon(channel);
	}
	remains_free(&remains);
}

/* The kernel takes from a killed daemon the directory's lock first, then its life, then its
 * segments' locks: who was so quick to follow it waits until all is gone. */
static enum leftover_state look_when_let_go(struct daemon *daemon, const char *name)
{
	const struct timespec pause = {.tv_nsec = LET_GO_PAUSE_NS};
	enum leftover_state state = LEFTOVER_ALIVE;

	for (unsigned int tries = 0; tries < LET_GO_TRIES; tries++) {
		state = leftover_look(daemon->dir.segments_fd, name);
		if (state != LEFTOVER_ALIVE && (state != LEFTOVER_HELD || tries >= HELD_TRIES))
			break;
		nanosleep(&pause, NULL);
	}
	return state;
}

static void look_at(void *ctx, const char *name)
{
	struct daemon *daemon = ctx;

	switch (look_when_let_go(daemon, name)) {
	case LEFTOVER_HELD:
		log_info("segment %s: a process that is not its writer holds its lock", name);
		/* fall through */
	case LEFTOVER_UNOWNED:
		adopt(daemon, name);
		break;
	case LEFTOVER_ALIVE:
		log_warn("segment %s is not taken over: its writer lives", name);
		break;
	case LEFTOVER_FOREIGN:
		log_warn("segment %s is not taken over: it is of another user, or of the daemon "
			 "of another runtime directory",
			 name);
		/* fall through */
	case LEFTOVER_GONE:
		leftover_unlist(daemon->dir.segments_fd, name);
		break;
	}
}

void orphans_adopt(struct daemon *daemon)
{
	int r = leftover_each(daemon->dir.segments_fd, look_at, daemon);

	if (r < 0)
		log_warn("%s/segments cannot be listed: %s", daemon->dir.path, strerror(-r));
}

void orphans_expire(struct daemon *daemon)
{
	struct channel *channel;
	uint64_t now = clock_now_ns();

	DL_FOREACH(daemon->channels, channel)
	{
		if (channel->state != CHANNEL_ORPHAN || now < channel->deadline_ns ||
		    opening_has(daemon, &channel->name))
			continue;
		log_info("channel %s: its producer did not come back: it has ended, and stays "
			 "readable",
			 channel->text);
		forsake(channel);
	}
}

/* ---- going on ----------------------------------------------------------- */

static bool same_layers(const struct r3ring_layer_entry *a, const struct r3ring_layer_entry *b,
			uint32_t layers)
{
	for (uint32_t i = 0; i < layers; i++) {
		if (a[i].layer_id != b[i].layer_id || a[i].kind != b[i].kind)
			return false;
	}
	return true;
}

static bool same_schema(const struct publisher *publisher, const struct r3ring_record *other)
{
	const struct r3ring_schema_record *a = &publisher->schema;
	const struct r3ring_schema_record *b = &other->u.schema.head;

	return a->layers == b->layers && a->experts == b->experts && a->top_k == b->top_k &&
	       a->max_rows == b->max_rows && a->rows_per_record == b->rows_per_record &&
	       a->captures_rows == b->captures_rows &&
	       same_layers(publisher->layers, other->u.schema.layers, a->layers);
}

bool orphan_is_of(const struct channel *orphan, const struct r3ring_hello_producer_message *hello)
{
	const struct r3ring_schema_record *schema = &orphan->drain.publisher.schema;
	uint64_t former = schema->continues < schema->generation && schema->continues
				  ? schema->generation - schema->continues
				  : 0;

	return hello->reconnect == 1 && hello->last_generation &&
	       (hello->last_generation == generation_of(orphan) ||
		hello->last_generation == former);
}

bool orphan_continues(const struct channel *orphan,
		      const struct r3ring_hello_producer_message *hello,
		      const struct r3ring_record *schema)
{
	return orphan->state == CHANNEL_ORPHAN && hello->reconnect == 1 &&
	       hello->buffer_kind == R3RING_BUFFER_HOST &&
	       hello->last_generation == generation_of(orphan) && !orphan->drain.said.unknown &&
	       same_schema(&orphan->drain.publisher, schema);
}

/* All but how much of a gap is told: of that the one that has the producer's pages knows more. */
static void move_ring(struct channel *from, struct channel *to)
{
	struct drain_said *said = &to->drain.said;
	uint32_t gap_records = said->gap_records;

	to->segment = from->segment;
	to->drain.publisher = from->drain.publisher;
	*said = from->drain.said;
	said->gap_records = gap_records;
	from->segment = NULL;
	from->drain.publisher = (struct publisher){0};
	from->drain.said = (struct drain_said){.gap_records = from->drain.said.gap_records};
	registrations_move(from, to);
}

int orphan_resume(struct channel *orphan, struct channel *channel, struct r3ring_error *err)
{
	int r;

	move_ring(orphan, channel);
	channel->drain.publisher.totals.steps += channel->drain.gap_passed;
	r = drain_resume(&channel->drain, err);
	if (r == 0)
		r = drain_launch(&channel->drain, err);
	if (r < 0) {
		channel->drain.publisher.totals.steps -= channel->drain.gap_passed;
		move_ring(channel, orphan);
		stall_end(&orphan->drain.publisher.stall);
		return r;
	}
	DL_DELETE(orphan->daemon->channels, orphan);
	channel_abandon(orphan);
	return 0;
}
