/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a channel's next generation: made by one thread, begun by the control loop. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <test_point.h>

#include "capture_daemon/carried.h"
#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/generation.h"
#include "capture_daemon/log.h"
#include "capture_daemon/orphans.h"
#include "capture_daemon/peers.h"
#include "channel/namespaces.h"
#include "ring/identity.h"

/* Numbers whose names may be in use: rings of a daemon of the same user that serves another
 * runtime directory are called alike. */
#define TRIES 1024

#define LARGE_SEGMENT (UINT64_C(512) << 20)

/* ---- made ------------------------------------------------------------------- */

/* For who tidies up behind a daemon that died: a ring whose engine lives is gone on with. */
static int list(const struct channel *channel, const struct r3ring_segment_options *options)
{
	const struct leftover_process producer = {
		.pid = (uint64_t)channel->producer_pid,
		.start_time = identity_start_time((uint32_t)channel->producer_pid),
		.pid_namespace = namespaces_of_this_process().pid,
	};
	int fd = channel->daemon->dir.segments_fd;
	int r = leftover_list(fd, options->name, options->uuid, channel->user);

	return r < 0 ? r : leftover_note_producer(fd, options->name, &producer);
}

/* Listed before it is made, so that a crash leaves nothing behind unlisted. */
static int make_segment(struct channel *channel, const struct r3ring_segment_options *options,
			struct r3ring_error *err)
{
	struct runtime_dir *dir = &channel->daemon->dir;
	int r = list(channel, options);

	if (r < 0) {
		leftover_unlist(dir->segments_fd, options->name);
		return r3ring_error_set(err, r, "%s/segments%s: %s%s", dir->path, options->name,
					strerror(-r), runtime_dir_remedy(r));
	}
	R3RING_TEST_POINT("channel listed");
	r = r3ring_segment_create(&channel->segment, options, err);
	R3RING_TEST_POINT("channel made");
	if (r < 0)
		leftover_unlist(dir->segments_fd, options->name);
	return r;
}

/* The first number after @last that nobody has taken. */
static int make_next(struct channel *channel, struct r3ring_segment_options *options,
		     char name[128], uint64_t last, struct r3ring_error *err)
{
	int r = -EEXIST;

	for (unsigned int i = 1; r == -EEXIST && i <= TRIES; i++) {
		options->generation = last + i;
		options->untaken = i - 1;
		channel_segment_name(&channel->name, geteuid(), options->generation, name);
		r = make_segment(channel, options, err);
	}
	return r;
}

static uint64_t last_generation(const struct channel *channel,
				const struct generation_options *options)
{
	uint64_t last = runtime_dir_last_generation(&channel->daemon->dir, &channel->name);

	return options->last > last && options->last < UINT32_MAX ? options->last : last;
}

static int store(const struct channel *channel, struct r3ring_error *err)
{
	struct runtime_dir *dir = &channel->daemon->dir;
	int r = runtime_dir_store_generation(
		dir, &channel->name, r3ring_segment_get_header(channel->segment)->generation);

	return r < 0 ? r3ring_error_set(err, r, "%s/generations: %s%s", dir->path, strerror(-r),
					runtime_dir_remedy(r))
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

int generation_make(struct channel *channel, const struct generation_options *options,
		    struct r3ring_error *err)
{
	char name[128];
	struct r3ring_segment_options segment = {
		.size = sizeof(segment),
		.name = name,
		.label = channel->text,
		.arena_bytes = options->sizes.arena_bytes,
		.depth = options->sizes.depth,
		.carry_on = options->carry_on,
		.ctx = options->ctx,
	};
	int r;

	if (getrandom(segment.uuid, sizeof(segment.uuid), 0) != sizeof(segment.uuid))
		return r3ring_error_set(err, -EIO, "getrandom: %s", strerror(errno));
	if (options->sizes.segment_bytes >= LARGE_SEGMENT)
		log_info("channel %s: allocating a ring of %" PRIu64 " MiB", channel->text,
			 options->sizes.segment_bytes >> 20);
	r = make_next(channel, &segment, name, last_generation(channel, options), err);
	if (r == 0)
		r = store(channel, err);
	if (r == 0)
		r = share_with_group(channel, err);
	return r;
}

/* ---- begun ------------------------------------------------------------------ */

/* How many generations ago the producer was welcomed last; 0: never, or nobody can tell. */
static uint16_t continues(uint64_t generation, const struct hello *hello)
{
	uint64_t last = hello->message->last_generation;

	if (!hello_comes_back(hello) || !last || last >= generation ||
	    generation - last > UINT16_MAX)
		return 0;
	return (uint16_t)(generation - last);
}

static void fill_schema(struct hello *hello, const struct channel *channel)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	struct r3ring_schema_record *schema = &hello->schema.u.schema.head;

	schema->generation = header->generation;
	schema->continues = continues(header->generation, hello);
	schema->clock = CLOCK_MONOTONIC;
	schema->realtime_offset_ns = (int64_t)(clock_read_ns(CLOCK_REALTIME) - clock_now_ns());
	memcpy(schema->uuid, header->uuid, sizeof(schema->uuid));
	memcpy(schema->boot_id, header->boot_id, sizeof(schema->boot_id));
}

/*
 * What lived when the former generation was closed, and up to which step it was told. A
 * daemon that was killed before a new generation had all of that left both: a ring that
 * its producer was not welcomed to, and the file.
 */
static void find_carried(const struct channel *channel, const struct hello *hello,
			 struct channel *orphan, struct live *carried, struct carried_told *told)
{
	struct carried_told left = {0};
	int r;

	*told = left;
	if (orphan) {
		*carried = orphan->drain.publisher.live;
		orphan->drain.publisher.live = (struct live){0};
		*told = orphan_told(orphan);
	}
	if (!hello_comes_back(hello))
		return;
	r = carried_read(&channel->daemon->dir, &channel->name, hello->message->last_generation,
			 carried, &left);
	if (left.step > told->step ||
	    (left.step == told->step && left.gap_records > told->gap_records))
		*told = left;
	if (r < 0)
		log_warn("channel %s: what the daemon before left of its live requests is not "
			 "usable, rows of theirs may have no request: %s",
			 channel->text, strerror(-r));
}

/* The producer will try again. */
static void give_back(struct channel *channel, struct channel *orphan, struct live *carried)
{
	struct live *live = carried->bytes ? carried : &channel->drain.publisher.live;

	if (orphan) {
		orphan->drain.publisher.live = *live;
		*live = (struct live){0};
	}
	live_clear(carried);
}

static int begin(struct channel *channel, struct hello *hello, struct live *carried,
		 struct r3ring_error *err)
{
	int r;

	fill_schema(hello, channel);
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

int generation_begin(struct channel *channel, struct hello *hello, struct channel *orphan,
		     struct r3ring_error *err)
{
	struct live carried = {0};
	struct carried_told told;
	int r;

	find_carried(channel, hello, orphan, &carried, &told);
	channel->drain.said.gap_records = (uint32_t)told.gap_records;
	r = drain_take_place(&channel->drain, told.step, channel_policy(channel), err);
	if (r == 0)
		r = begin(channel, hello, &carried, err);
	if (r < 0)
		give_back(channel, orphan, &carried);
	return r;
}
