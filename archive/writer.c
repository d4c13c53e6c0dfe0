/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: opening, what it is given, closing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>
#include <unistd.h>

#include <r3ring/record.h>

#include "archive/resume.h"
#include "archive/writer_internal.h"
#include "channel/clock.h"
#include "consumer/layers.h"

#define LEVEL_MAX 19
#define SYNC_MS 1000u
#define SEGMENT_BYTES (256ull << 20)
#define SEGMENT_LEAST (64ull << 10)
#define SEGMENT_BLOCKS 4 /* at least, and more where they shrink */
#define ARCHIVE_BLOCKS 8
#define ROTATED_SEGMENTS 8 /* of a whole archive where nobody says how large one is */

/* ---- options ------------------------------------------------------------ */

int archive_writer_check(const struct archive_writer_options *options, struct r3ring_error *err)
{
	if (!options->dir)
		return r3ring_error_set(err, -EINVAL, "no directory named");
	if (options->level < 0 || options->level > LEVEL_MAX)
		return r3ring_error_set(err, -EINVAL, "level %d is not one of zstd's, 0 to %d",
					options->level, LEVEL_MAX);
	if (options->segment_bytes && options->segment_bytes < SEGMENT_LEAST)
		return r3ring_error_set(err, -EINVAL, "segments of %llu bytes: at least %llu",
					(unsigned long long)options->segment_bytes, SEGMENT_LEAST);
	if (options->rotate && options->max_bytes < 2 * options->segment_bytes)
		return r3ring_error_set(err, -EINVAL,
					"an archive that rotates needs room for two segments of "
					"%llu bytes",
					(unsigned long long)options->segment_bytes);
	if (options->max_bytes && options->max_bytes < SEGMENT_LEAST)
		return r3ring_error_set(err, -EINVAL, "an archive has a size of at least %llu",
					SEGMENT_LEAST);
	if (options->rotate && options->max_bytes < 2 * SEGMENT_LEAST)
		return r3ring_error_set(err, -EINVAL,
					"an archive that rotates has a size of at least %llu",
					2 * SEGMENT_LEAST);
	return 0;
}

static uint64_t usual_segment(const struct archive_writer_options *options)
{
	uint64_t bytes = options->rotate ? options->max_bytes / ROTATED_SEGMENTS : SEGMENT_BYTES;

	if (bytes > SEGMENT_BYTES)
		return SEGMENT_BYTES;
	return bytes < SEGMENT_LEAST ? SEGMENT_LEAST : bytes;
}

/* Several to a segment, so that this ends where it should, and more of them to an archive. */
static size_t block_bytes(const struct archive_writer_options *options)
{
	uint64_t bytes = options->segment_bytes / SEGMENT_BLOCKS;

	if (options->max_bytes && options->max_bytes / ARCHIVE_BLOCKS < bytes)
		bytes = options->max_bytes / ARCHIVE_BLOCKS;
	return bytes < ARCHIVE_BLOCK_BYTES ? bytes : ARCHIVE_BLOCK_BYTES;
}

static int fill_in(struct archive_writer *writer, const struct archive_writer_options *options)
{
	writer->options = *options;
	writer->options.dir = strdup(options->dir);
	if (!options->sync_ms)
		writer->options.sync_ms = SYNC_MS;
	if (!options->segment_bytes)
		writer->options.segment_bytes = usual_segment(options);
	return writer->options.dir ? 0 : -ENOMEM;
}

/* ---- opening ------------------------------------------------------------ */

static int note_cursors(struct archive_writer *writer)
{
	uint32_t count = writer->states.count;
	struct archive_cursor *cursors = calloc(count ? count : 1, sizeof(*cursors));

	if (!cursors)
		return -ENOMEM;
	writer->resumption.cursors = cursors;
	for (uint32_t i = 0; i < count; i++) {
		const struct channel_state *state = &writer->states.channels[i];
		struct archive_cursor *cursor = &cursors[writer->resumption.count];

		if (!state->begun)
			continue;
		cursor->name = state->name;
		cursor->generation = state->generation.generation;
		memcpy(cursor->uuid, state->generation.uuid, sizeof(cursor->uuid));
		cursor->seq = state->generation.seq;
		cursor->closed = state->generation.closed;
		writer->resumption.count++;
	}
	return 0;
}

/* A new archive gets a name of its own. */
static int find_start(struct archive_writer *writer, struct resume *resume,
		      struct r3ring_error *err)
{
	const struct archive_writer_options *options = &writer->options;
	const struct resume_options as = {
		.dir = options->dir,
		.dir_fd = writer->dir_fd,
		.layer_first = options->layer_first,
		.layer_end = options->layer_end,
	};
	int r = archive_resume(resume, &as, err);

	if (r < 0)
		return r;
	writer->states = resume->states;
	resume->states = (struct channel_states){0};
	writer->resuming = resume->found;
	writer->resumption.resumed = resume->found;
	writer->resumption.closed = resume->closed;
	writer->resumption.missing = resume->missing;
	writer->resumption.record = resume->resumed;
	writer->resumption.record.resumed_ns = clock_real_ns();
	if (!resume->found && getrandom(resume->start.uuid, sizeof(resume->start.uuid), 0) < 0)
		return -errno;
	if (options->max_bytes && !options->rotate &&
	    resume->start.files.bytes >= options->max_bytes)
		return r3ring_error_set(err, -EDQUOT,
					"%s: the archive has %llu bytes, as many as it may: give a "
					"larger --max-size or --rotate, or record into another "
					"directory",
					options->dir,
					(unsigned long long)resume->start.files.bytes);
	return note_cursors(writer);
}

static int start_threads(struct archive_writer *writer, const struct resume *resume)
{
	int r = blocks_init(&writer->blocks, block_bytes(&writer->options), writer->options.level);

	if (r < 0)
		return r;
	r = packers_start(&writer->packers, &writer->blocks, writer->options.workers);
	if (r == 0)
		r = store_start(&writer->store, &writer->blocks, writer->dir_fd, &writer->options,
				&resume->start);
	if (r == 0)
		return 0;
	blocks_close(&writer->blocks);
	packers_join(&writer->packers);
	blocks_release(&writer->blocks);
	return r;
}

static int open_all(struct archive_writer *writer, const struct archive_writer_options *options,
		    struct r3ring_error *err)
{
	struct resume resume = {0};
	int r = fill_in(writer, options);

	if (r == 0)
		r = archive_dir_open(options->dir, &writer->dir_fd, &writer->lock_fd, err);
	if (r == 0)
		r = find_start(writer, &resume, err);
	if (r == 0)
		r = start_threads(writer, &resume);
	/* From here on the files are the store's. */
	if (r == 0)
		resume.start.files = (struct segment_files){0};
	archive_resume_release(&resume);
	writer->segment_over = true;
	return r;
}

static void release(struct archive_writer *writer)
{
	channel_states_release(&writer->states);
	free((void *)(uintptr_t)writer->resumption.cursors);
	free((void *)(uintptr_t)writer->options.dir);
	if (writer->dir_fd >= 0)
		close(writer->dir_fd);
	if (writer->lock_fd >= 0)
		close(writer->lock_fd);
	free(writer);
}

int archive_writer_open(struct archive_writer **writer,
			const struct archive_writer_options *options, struct r3ring_error *err)
{
	struct r3ring_error why = {0};
	struct archive_writer *opened;
	int r = archive_writer_check(options, err);

	if (r < 0)
		return r;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "no memory for an archive's writer");
	opened->dir_fd = -1;
	opened->lock_fd = -1;
	r = open_all(opened, options, &why);
	if (r < 0) {
		r3ring_error_set(err, r, "%s", why.text[0] ? why.text : strerror(-r));
		release(opened);
		return r;
	}
	*writer = opened;
	return 0;
}

const struct archive_resumption *archive_writer_resumption(const struct archive_writer *writer)
{
	return &writer->resumption;
}

/* ---- closing ------------------------------------------------------------ */

static void end(struct archive_writer *writer)
{
	int code = 0;

	/* An archive without entries has a segment, too: it was recorded, and there was nothing. */
	if (!writer->block && writer->segment_over && !writer->records)
		writer_block(writer, 0, false, &code);
	if (writer->block && writer->block->head.entries)
		writer_hand_on(writer, true);
}

int archive_writer_finish(struct archive_writer *writer, struct r3ring_error *err)
{
	end(writer);
	blocks_close(&writer->blocks);
	packers_join(&writer->packers);
	writer->finished = true;
	return store_join(&writer->store, writer_repeat_bytes(writer), err);
}

int archive_writer_close(struct archive_writer *writer, struct r3ring_error *err)
{
	int r = 0;

	if (!writer)
		return 0;
	if (!writer->finished)
		r = archive_writer_finish(writer, err);
	store_release(&writer->store);
	blocks_release(&writer->blocks);
	release(writer);
	return r;
}

/* ---- entries ------------------------------------------------------------ */

int archive_writer_channel(struct archive_writer *writer, const char *name)
{
	uint32_t known = channel_states_find(&writer->states, name, strlen(name));
	struct entry_spec spec = {.head.kind = ARCHIVE_CHANNEL, .payload = name};
	int index, r;

	if (known != UINT32_MAX)
		return (int)known;
	/* A segment that begins here does not say it again. */
	if (!writer_block(writer, strlen(name), true, &r))
		return r;
	index = channel_states_add(&writer->states, name, strlen(name));
	if (index < 0)
		return index;
	spec.head.channel = (uint16_t)index;
	spec.head.bytes = (uint32_t)strlen(name);
	r = writer_append(writer, &spec);
	return r < 0 ? r : index;
}

int archive_writer_generation(struct archive_writer *writer, uint16_t channel, uint64_t generation,
			      const uint8_t uuid[16])
{
	struct archive_generation begun = {.generation = generation};
	int r;

	memcpy(begun.uuid, uuid, sizeof(begun.uuid));
	r = writer_append(writer, &(struct entry_spec){
					  .head = {.kind = ARCHIVE_GENERATION,
						   .channel = channel,
						   .bytes = sizeof(begun)},
					  .payload = &begun,
				  });
	if (r == 0)
		channel_state_generation(&writer->states.channels[channel], &begun);
	return r;
}

int archive_writer_gap(struct archive_writer *writer, uint16_t channel,
		       const struct archive_gap *gap)
{
	int r = writer_append(
		writer,
		&(struct entry_spec){
			.head = {.kind = ARCHIVE_GAP, .channel = channel, .bytes = sizeof(*gap)},
			.payload = gap,
		});

	if (r == 0)
		channel_state_gap(&writer->states.channels[channel], gap);
	return r;
}

int archive_writer_unfollowed(struct archive_writer *writer, uint16_t channel, uint64_t step)
{
	const struct entry_spec spec = {
		.head = {.kind = ARCHIVE_UNFOLLOWED,
			 .channel = channel,
			 .seq = writer->states.channels[channel].generation.seq + 1,
			 .step = step},
	};

	return writer_append(writer, &spec);
}

static bool left_out(const struct archive_writer_options *options, const struct r3ring_view *view)
{
	struct r3ring_layer_record head;
	struct r3ring_layer_entry layer;

	if (!options->layer_end || view->type != R3RING_LAYER || view->len < sizeof(head))
		return false;
	memcpy(&head, view->data, sizeof(head));
	layer = (struct r3ring_layer_entry){.layer_id = head.layer_id, .kind = (uint8_t)head.kind};
	return !layers_among(&layer, options->layer_first, options->layer_end);
}

int archive_writer_record(struct archive_writer *writer, uint16_t channel,
			  const struct r3ring_view *view)
{
	bool skipped = left_out(&writer->options, view);
	struct entry_spec spec = {
		.head = {.kind = skipped ? ARCHIVE_SKIPPED : ARCHIVE_RECORD,
			 .type = view->type,
			 .flags = view->flags & (uint16_t)~ARCHIVE_ENTRY_REPEATED,
			 .channel = channel,
			 .bytes = skipped ? 0 : view->len,
			 .seq = view->seq,
			 .step = view->step,
			 .units = view->units},
		.payload = view->data,
	};
	struct channel_state *state = &writer->states.channels[channel];
	int r = writer_append(writer, &spec);

	if (r < 0)
		return r;
	if (!skipped)
		return channel_state_record(state, view);
	channel_state_skipped(state, view->seq);
	writer->left_out++;
	return 0;
}

void *archive_writer_room(struct archive_writer *writer, uint32_t bytes, size_t *capacity)
{
	int code;
	const struct block *block = writer_block(writer, bytes, false, &code);
	size_t used;

	if (!block)
		return NULL;
	used = block->head.raw + sizeof(struct archive_entry);
	*capacity = block->capacity - used;
	return writer_place(block) + sizeof(struct archive_entry);
}

/* ---- accounts ----------------------------------------------------------- */

const char *archive_writer_error(const struct archive_writer *writer)
{
	return store_failed(&writer->store) ? writer->store.err.text : "";
}

void archive_writer_get_stats(const struct archive_writer *writer,
			      struct archive_writer_stats *stats)
{
	/* Its lock is no part of what a writer is. */
	store_get_stats((struct store *)(uintptr_t)&writer->store, stats);
	stats->records = writer->records;
	stats->left_out = writer->left_out;
	if (writer->finished)
		store_count_tell(&writer->store, stats);
}
