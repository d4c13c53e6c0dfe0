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

#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/orphans.h"

#define PATIENCE_NS (10 * NS_PER_SECOND)

/* What the dead daemon had published, as far as the ring still holds it. */
struct remains {
	struct r3ring_record schema;
	struct r3ring_layer_entry *layers; /* owned */
	struct live live;
	struct r3ring_totals totals;
	uint64_t newest_step;
	uint64_t told_step;             /* newest of which the end, or the loss, was told */
	struct r3ring_step_record open; /* begun and not ended; step 0: none */
};

static void note_schema(struct remains *remains, const struct r3ring_record *record)
{
	size_t bytes = record->u.schema.head.layers * sizeof(*remains->layers);
	struct r3ring_layer_entry *layers = malloc(bytes);

	if (!layers)
		return;
	memcpy(layers, record->u.schema.layers, bytes);
	free(remains->layers);
	remains->layers = layers;
	remains->schema = *record;
	remains->schema.u.schema.layers = layers;
}

static void note_step(struct remains *remains, const struct r3ring_step_record *head)
{
	remains->newest_step = head->step;
	if (!(head->flags & R3RING_STEP_DROPPED))
		remains->open = *head;
}

static void note_told(struct remains *remains, uint64_t step)
{
	if (step > remains->told_step)
		remains->told_step = step;
}

static void note_record(struct remains *remains, const struct r3ring_record *record,
			const struct r3ring_view *view)
{
	switch (record->type) {
	case R3RING_SCHEMA:
		note_schema(remains, record);
		break;
	case R3RING_REQUEST:
		live_note_request(&remains->live, &record->u.request.head, view->data, view->len);
		break;
	case R3RING_EPLB:
		live_note_map(&remains->live, &record->u.eplb.head, view->data, view->len);
		break;
	case R3RING_STEP:
		note_step(remains, &record->u.step.head);
		break;
	case R3RING_STEP_END:
		if (record->u.step_end.head.step == remains->open.step)
			remains->open.step = 0;
		note_told(remains, record->u.step_end.head.step);
		break;
	case R3RING_LOST:
		note_told(remains, record->u.lost.to_step);
		break;
	case R3RING_KEYFRAME:
		remains->totals = record->u.keyframe.totals;
		break;
	default:
		break;
	}
}

/* Nobody writes this ring any more: what is read cannot be overwritten. */
static int remains_read(struct remains *remains, const struct r3ring_segment *segment)
{
	struct r3ring_cursor *cursor;
	struct r3ring_record record;
	struct r3ring_view view;
	int r = r3ring_cursor_open(&cursor, segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);

	if (r < 0)
		return r;
	while ((r = r3ring_cursor_next(cursor, &view)) == 1 || r == -EOVERFLOW || r == -EBADMSG) {
		if (r == 1 && view.type != R3RING_LAYER &&
		    r3ring_record_decode(&record, view.type, view.data, view.len, NULL) == 0)
			note_record(remains, &record, &view);
	}
	r3ring_cursor_close(cursor);
	return 0;
}

static void remains_free(struct remains *remains)
{
	free(remains->layers);
	live_clear(&remains->live);
}

/* ---- adopting ----------------------------------------------------------- */

/* Published before CLOSED: what the dead daemon had begun to publish. */
static void note_lost(struct drain *drain, const struct remains *remains)
{
	struct r3ring_lost_record *lost = &drain->cut_short;
	const struct r3ring_step_record *open = &remains->open;
	uint32_t end = open->valid_end < open->row_end ? open->valid_end : open->row_end;

	lost->cause = R3RING_CAUSE_DAEMON_RESTART;
	if (!open->step)
		return;
	lost->from_step = open->step;
	lost->to_step = open->step;
	lost->steps = 1;
	lost->rows = end > open->row_begin ? end - open->row_begin : 0;
	lost->layer_rows = lost->rows * remains->schema.u.schema.head.layers;
}

static int orphan_fill(struct channel *channel, struct remains *remains, struct r3ring_error *err)
{
	const struct r3ring_segment_header *header = r3ring_segment_header(channel->segment);
	int r = channel_name_parse(&channel->name, header->label, err);

	if (r < 0)
		return r;
	channel_name_format(&channel->name, channel->text);
	r = remains_read(remains, channel->segment);
	if (r == 0)
		r = publisher_open(&channel->drain.publisher, channel->segment, &remains->schema);
	if (r == 0)
		r = drain_serve_idle(&channel->drain, channel_policy(channel->daemon));
	if (r < 0)
		return r3ring_error_set(err, r, "%s", strerror(-r));
	channel->drain.publisher.live = remains->live;
	remains->live = (struct live){0};
	channel->drain.publisher.totals = remains->totals;
	channel->drain.publisher.newest_step = remains->newest_step;
	channel->drain.told_step = remains->told_step;
	note_lost(&channel->drain, remains);
	drain_update_report(&channel->drain);
	return 0;
}

static void insert(struct daemon *daemon, struct channel *channel)
{
	struct channel *other = channel_find(daemon, &channel->name);
	uint64_t generation = r3ring_segment_header(channel->segment)->generation;

	DL_APPEND(daemon->channels, channel);
	log_info("channel %s: generation %" PRIu64 " of a dead daemon in %s: kept readable until "
		 "its producer comes back",
		 channel->text, generation, r3ring_segment_name(channel->segment));
	if (!other)
		return;
	/* It died while one generation was replacing the other. */
	if (r3ring_segment_header(other->segment)->generation < generation)
		channel_supersede(other, generation, r3ring_segment_name(channel->segment));
	else
		channel_supersede(channel, r3ring_segment_header(other->segment)->generation,
				  r3ring_segment_name(other->segment));
}

static struct channel *orphan_new(struct daemon *daemon)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->daemon = daemon;
	channel->state = CHANNEL_ORPHAN;
	channel->user = geteuid();
	channel->since = time(NULL);
	channel->deadline_ns = clock_now_ns() + PATIENCE_NS;
	channel->pidfd.fd = -1;
	channel->done.fd = -1;
	drain_init(&channel->drain, channel->text);
	return channel;
}

/* One that was never finished, or is no ring any more, is of no use to anybody;
 * one of another user, or of another version, is left alone. */
static void cannot_adopt(struct daemon *daemon, const char *name, int code,
			 const struct r3ring_error *err)
{
	if (code != -ENOENT)
		log_warn("segment %s is not taken over: %s", name, err->text);
	if (code == -EBUSY)
		return;
	if ((code == -EAGAIN || code == -EBADMSG) && shm_unlink(name) < 0)
		log_warn("segment %s cannot be removed: %s", name, strerror(errno));
	runtime_dir_unlist_segment(&daemon->dir, name);
}

static void adopt(void *ctx, const char *name)
{
	struct daemon *daemon = ctx;
	struct remains remains = {.schema.type = R3RING_SCHEMA};
	struct channel *channel = orphan_new(daemon);
	struct r3ring_error err = {0};
	int r;

	if (!channel) {
		log_warn("segment %s is not taken over: no memory", name);
		return;
	}
	r = r3ring_segment_adopt(&channel->segment, name, &err);
	if (r < 0) {
		cannot_adopt(daemon, name, r, &err);
		free(channel);
		return;
	}
	channel->memory = r3ring_segment_header(channel->segment)->segment_size;
	r = orphan_fill(channel, &remains, &err);
	if (r == 0) {
		insert(daemon, channel);
	} else {
		log_warn("segment %s is removed, it cannot be continued: %s", name, err.text);
		channel_abandon(channel);
	}
	remains_free(&remains);
}

void orphans_adopt(struct daemon *daemon)
{
	int r = runtime_dir_each_segment(&daemon->dir, adopt, daemon);

	if (r < 0)
		log_warn("%s/segments cannot be listed: %s", daemon->dir.path, strerror(-r));
}

void orphans_expire(struct daemon *daemon)
{
	struct channel *channel, *next;
	uint64_t now = clock_now_ns();

	DL_FOREACH_SAFE(daemon->channels, channel, next)
	{
		if (channel->state != CHANNEL_ORPHAN || now < channel->deadline_ns)
			continue;
		log_info("channel %s: its producer did not come back; closed", channel->text);
		drain_abort_requests(&channel->drain);
		channel_retire(channel, R3RING_CLOSED_CRASHED);
	}
}
