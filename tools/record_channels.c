/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: from the instance's channels to the archive's. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/record.h>

#include "consumer/instance_internal.h"
#include "tools/record.h"

#define MISSED_EACH 64u /* generations that each have a gap of their own; of more, the newest */

void record_channels_release(struct record_channels *channels)
{
	free(channels->channels);
	archive_ranks_free(&channels->ranks);
	channels->channels = NULL;
	channels->count = 0;
}

static const struct archive_cursor *find_cursor(const struct record_channels *channels,
						const char *name)
{
	const struct archive_resumption *resumption = archive_writer_resumption(channels->writer);

	for (uint32_t i = 0; i < resumption->count; i++) {
		if (strcmp(resumption->cursors[i].name, name) == 0)
			return &resumption->cursors[i];
	}
	return NULL;
}

static bool is_present(const struct record_channel *channel, const uint8_t uuid[16])
{
	return channel->begun && memcmp(channel->uuid, uuid, sizeof(channel->uuid)) == 0;
}

/* Whether the reader is in the channel's ring. */
static bool is_read(const struct record_channels *channels, uint32_t index)
{
	struct r3ring_reader_stats stats;

	return r3ring_instance_get_stats(channels->instance, index, &stats) == 0 &&
	       is_present(&channels->channels[index], stats.uuid);
}

static int meet(struct record_channels *channels, uint32_t index)
{
	const char *name = r3ring_instance_channel(channels->instance, index);
	const struct archive_cursor *cursor = find_cursor(channels, name);
	struct record_channel *channel = &channels->channels[index];

	*channel = (struct record_channel){
		.index = archive_writer_channel(channels->writer, name),
	};
	if (channel->index < 0)
		return channel->index;
	if (!cursor)
		return 0;
	channel->begun = true;
	channel->resumed = true;
	channel->generation = cursor->generation;
	memcpy(channel->uuid, cursor->uuid, sizeof(channel->uuid));
	channel->seq = cursor->seq;
	channel->closed = cursor->closed;
	channel->followed = is_read(channels, index);
	channel_losses_generation(&channel->losses, cursor->generation, false);
	return 0;
}

int record_channels_meet(struct record_channels *channels)
{
	uint32_t count = r3ring_instance_channels(channels->instance);
	struct record_channel *more;
	int r = 0;

	if (count == channels->count)
		return 0;
	more = reallocarray(channels->channels, count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	channels->channels = more;
	for (; r == 0 && channels->count < count; channels->count++)
		r = meet(channels, channels->count);
	channels->report->channels = channels->count;
	return r;
}

void record_channels_find_absent(const struct record_channels *channels)
{
	for (uint32_t i = 0; i < channels->count; i++)
		if (!channels->channels[i].placed)
			return;
	archive_ranks_absent(&channels->ranks, &channels->report->absent);
}

static struct record_channel *current(const struct record_channels *channels)
{
	return &channels->channels[r3ring_instance_current(channels->instance)];
}

static const char *current_name(const struct record_channels *channels)
{
	return r3ring_instance_channel(channels->instance,
				       r3ring_instance_current(channels->instance));
}

/* ---- gaps --------------------------------------------------------------- */

static enum archive_gap_cause cause_of(const struct record_channels *channels,
				       const struct record_channel *channel, bool corrupt)
{
	const struct archive_resumption *resumption = archive_writer_resumption(channels->writer);

	if (corrupt)
		return ARCHIVE_GAP_CORRUPT;
	if (channel->read)
		return ARCHIVE_GAP_OVERRUN;
	if (!channel->resumed)
		return ARCHIVE_GAP_LATE;
	return resumption->record.cut_bytes ? ARCHIVE_GAP_UNSYNCED : ARCHIVE_GAP_STOPPED;
}

static int put_gap(struct record_channels *channels, struct record_channel *channel,
		   const struct archive_gap *gap)
{
	channels->report->gaps++;
	channels->report->lost += gap->lost;
	channels->report->unsized += !gap->lost;
	record_progress_clear(channels->progress);
	fprintf(stderr, "r3ring record: %s: ", current_name(channels));
	if (gap->lost)
		fprintf(stderr, "%" PRIu64 " records are lost (%" PRIu64 " to %" PRIu64 ")\n",
			gap->lost, gap->from_seq, gap->to_seq);
	else
		fprintf(stderr,
			"what followed record %" PRIu64 " of generation %" PRIu64
			" is gone with its ring\n",
			channel->seq, channel->generation);
	if (gap->to_seq)
		channel->seq = gap->to_seq;
	return archive_writer_gap(channels->writer, (uint16_t)channel->index, gap);
}

/* ---- generations -------------------------------------------------------- */

/* Whether what is missing now is missing since this recorder began: its predecessor's archive
 * may have ended long ago. */
static bool in_its_time(const struct record_channel *channel)
{
	return channel->read || !channel->resumed;
}

/* The generation that was to come. A number that is no higher is of a daemon that began anew. */
static uint64_t generation_due(const struct record_channels *channels,
			       const struct record_channel *channel, uint64_t next)
{
	uint64_t before;

	if (channel->begun)
		return next > channel->generation ? channel->generation + 1 : 1;
	return record_before_get(channels->before, current_name(channels), &before) ? before + 1
										    : next;
}

/* A generation of which there is nothing: nobody knows its ring, so it has no uuid. */
static int put_missed(struct record_channels *channels, const struct record_channel *channel,
		      uint64_t generation)
{
	const struct archive_gap all = {
		.from_seq = 1,
		.cause = cause_of(channels, channel, false),
	};
	const uint8_t unknown[16] = {0};
	int r = archive_writer_generation(channels->writer, (uint16_t)channel->index, generation,
					  unknown);

	channels->report->gaps++;
	channels->report->unsized++;
	return r ? r : archive_writer_gap(channels->writer, (uint16_t)channel->index, &all);
}

static int put_all_missed(struct record_channels *channels, struct record_channel *channel,
			  const struct r3ring_reader_stats *stats)
{
	uint64_t next = stats->generation;
	uint64_t due = generation_due(channels, channel, next);
	int r = 0;

	if (next <= due + stats->untaken)
		return 0;
	next -= stats->untaken;
	channels->report->missed += next - due;
	channel_losses_gap(&channel->losses, in_its_time(channel));
	record_progress_clear(channels->progress);
	fprintf(stderr,
		"r3ring record: %s: generations %" PRIu64 " to %" PRIu64
		" were gone before this recorder came to them: how many records they had is not "
		"known\n",
		current_name(channels), due, next - 1);
	if (next - due > MISSED_EACH)
		due = next - MISSED_EACH;
	for (; r == 0 && due < next; due++)
		r = put_missed(channels, channel, due);
	return r;
}

/* The rest of a ring that is gone, and of which nobody here knows how much there was. */
static int put_rest(struct record_channels *channels, struct record_channel *channel)
{
	const struct archive_gap rest = {
		.from_seq = channel->seq + 1,
		.cause = cause_of(channels, channel, false),
	};

	channel_losses_gap(&channel->losses, in_its_time(channel));
	return put_gap(channels, channel, &rest);
}

/* All of it is here: what its daemon, which died, was not told is no record. The next generation
 * says it where the engine is the same. */
static int put_left_open(struct record_channels *channels, struct record_channel *channel)
{
	record_progress_clear(channels->progress);
	fprintf(stderr,
		"r3ring record: %s: generation %" PRIu64 " ended untold behind record %" PRIu64
		": what its engine ran since is in the next one of that engine, or not known\n",
		current_name(channels), channel->generation, channel->seq);
	channel_losses_unfollowed(&channel->losses, true);
	return archive_writer_unfollowed(channels->writer, (uint16_t)channel->index, channel->step);
}

static bool has_left_alive(const struct record_channels *channels)
{
	return instance_left_alive(channels->instance, r3ring_instance_current(channels->instance));
}

static int end_generation(struct record_channels *channels, struct record_channel *channel)
{
	if (!channel->begun || channel->closed)
		return 0;
	return channel->followed && !has_left_alive(channels) ? put_left_open(channels, channel)
							      : put_rest(channels, channel);
}

static int begin_generation(struct record_channels *channels, struct record_channel *channel,
			    const struct r3ring_reader_stats *stats)
{
	int r = end_generation(channels, channel);

	if (r == 0)
		r = put_all_missed(channels, channel, stats);
	if (r == 0)
		r = archive_writer_generation(channels->writer, (uint16_t)channel->index,
					      stats->generation, stats->uuid);
	channel->begun = true;
	channel->followed = true;
	channel->closed = false;
	channel->demoted = false;
	channel->generation = stats->generation;
	memcpy(channel->uuid, stats->uuid, sizeof(channel->uuid));
	channel->seq = 0;
	channel->step = 0;
	channel->lost = 0;
	channel_losses_generation(&channel->losses, stats->generation, true);
	return r;
}

static int enter(struct record_channels *channels, struct record_channel *channel,
		 const struct r3ring_reader_stats *stats)
{
	if (!is_present(channel, stats->uuid))
		return begin_generation(channels, channel, stats);
	channel->followed = true;
	return 0;
}

static int stats_of_current(const struct record_channels *channels,
			    struct r3ring_reader_stats *stats)
{
	return r3ring_instance_get_stats(channels->instance,
					 r3ring_instance_current(channels->instance), stats);
}

static void tell_demotion(struct record_channels *channels, struct record_channel *channel,
			  const struct r3ring_reader_stats *stats)
{
	if (!stats->demoted || channel->demoted)
		return;
	channel->demoted = true;
	channels->report->demotions++;
	record_progress_clear(channels->progress);
	fprintf(stderr,
		"r3ring record: %s: too slow for too long: the channel no longer waits for this "
		"recorder (a faster disk, a lower --level, or a larger --lossless-limit of "
		"r3ringd)\n",
		current_name(channels));
}

/* ---- what comes --------------------------------------------------------- */

/* The first, and each of a generation's beginning. */
static int enter_with(struct record_channels *channels, struct record_channel *channel,
		      const struct r3ring_view *view)
{
	struct r3ring_reader_stats stats;
	int r;

	if (channel->read && view->generation == channel->generation && view->seq != 1)
		return 0;
	r = stats_of_current(channels, &stats);
	return r ? r : enter(channels, channel, &stats);
}

/* Once a channel: a rank of a pipeline may have none of the layers that another has. */
static void note_layers(struct record_channels *channels, struct record_channel *channel,
			const struct r3ring_view *view)
{
	if (!channels->archive->layer_end || channel->known || view->type != R3RING_SCHEMA)
		return;
	channel->known = true;
	record_progress_clear(channels->progress);
	record_content_schema(channels->report, current_name(channels), channels->archive, view);
}

/* The losses of all channels. */
void record_channels_sum_losses(struct record_channels *channels)
{
	struct lost_account *sum = &channels->report->channels_lost;

	*sum = (struct lost_account){0};
	for (uint32_t i = 0; i < channels->count; i++)
		lost_account_add(sum, &channels->channels[i].losses.account);
}

static int note_content(struct record_channels *channels, struct record_channel *channel,
			const struct r3ring_view *view)
{
	record_content_note(channels->report, &channel->losses, view);
	if (record_content_tells(view))
		record_channels_sum_losses(channels);
	note_layers(channels, channel, view);
	if (view->type != R3RING_SCHEMA)
		return 0;
	channel->placed = true;
	return record_content_rank(&channels->ranks, current_name(channels), view);
}

static int record(struct record_channels *channels, const struct r3ring_view *view)
{
	struct record_channel *channel;
	int r = record_channels_meet(channels);

	if (r)
		return r;
	channel = current(channels);
	r = enter_with(channels, channel, view);
	if (r)
		return r;
	/* Before its place in the archive is given away. */
	r = note_content(channels, channel, view);
	if (r == 0)
		r = archive_writer_record(channels->writer, (uint16_t)channel->index, view);
	if (r)
		return r;
	channel->read = true;
	channel->seq = view->seq;
	if (view->type == R3RING_STEP)
		channel->step = view->step;
	channel->closed = view->type == R3RING_CLOSED;
	channels->report->records++;
	return 0;
}

/* Whether other entries go in front of it: of channels that are new, or of its generation. */
static bool comes_first(const struct record_channels *channels, const struct r3ring_view *view)
{
	const struct record_channel *channel;

	if (r3ring_instance_channels(channels->instance) != channels->count)
		return true;
	channel = current(channels);
	return !channel->read || view->generation != channel->generation || view->seq == 1;
}

int record_channels_record(struct record_channels *channels, const struct r3ring_view *view)
{
	struct r3ring_view moved = *view;
	void *payload;
	int r;

	if (!comes_first(channels, view))
		return record(channels, view);
	/* It was read where those will be. */
	payload = malloc(view->len ? view->len : 1);
	if (!payload)
		return -ENOMEM;
	if (view->len)
		memcpy(payload, view->data, view->len);
	moved.data = payload;
	r = record(channels, &moved);
	free(payload);
	return r;
}

int record_channels_gap(struct record_channels *channels, bool corrupt)
{
	struct record_channel *channel;
	struct r3ring_reader_stats stats;
	struct archive_gap gap = {.cause = ARCHIVE_GAP_LATE};
	int r = record_channels_meet(channels);

	if (r == 0)
		r = stats_of_current(channels, &stats);
	if (r)
		return r;
	channel = current(channels);
	r = enter(channels, channel, &stats);
	if (r)
		return r;
	tell_demotion(channels, channel, &stats);
	gap.cause = cause_of(channels, channel, corrupt);
	gap.lost = stats.now.lost - channel->lost;
	gap.to_seq = stats.now.cursor - 1;
	gap.from_seq = gap.to_seq - gap.lost + 1;
	channel->lost = stats.now.lost;
	if (corrupt && !gap.lost) {
		record_progress_clear(channels->progress);
		fprintf(stderr, "r3ring record: %s: %s\n", current_name(channels),
			r3ring_instance_error(channels->instance));
		return 0;
	}
	channels->report->corrupt += corrupt;
	if (gap.lost && !corrupt && !channel->read)
		channel_losses_late(&channel->losses);
	else if (gap.lost)
		channel_losses_gap(&channel->losses, true);
	record_channels_sum_losses(channels);
	return gap.lost ? put_gap(channels, channel, &gap) : 0;
}
