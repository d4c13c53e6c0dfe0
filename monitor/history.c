/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/code8.h"
#include "monitor/history.h"

struct frame {
	struct history_entry entry;
	double unit;
	struct gpus *gpus; /* NULL: not known */
};

struct history {
	size_t max_bytes;
	pthread_mutex_t lock; /* of all that follows */
	uint32_t layers, experts;
	int32_t *layer;      /* [layers] */
	uint8_t *codes;      /* [capacity][layers][experts] */
	struct frame *frame; /* [capacity], by id */
	uint32_t capacity, used;
	uint64_t newest; /* id; 0: none */
};

int history_create(struct history **history, size_t max_bytes)
{
	struct history *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->max_bytes = max_bytes;
	pthread_mutex_init(&made->lock, NULL);
	*history = made;
	return 0;
}

static void free_frames(struct history *history)
{
	for (uint32_t i = 0; i < history->capacity; i++)
		free(history->frame[i].gpus);
	free(history->layer);
	free(history->codes);
	free(history->frame);
}

void history_destroy(struct history *history)
{
	if (!history)
		return;
	pthread_mutex_destroy(&history->lock);
	free_frames(history);
	free(history);
}

/* ---- adding ----------------------------------------------------------------- */

static size_t cells_of(const struct history *history)
{
	return (size_t)history->layers * history->experts;
}

static bool same_shape(const struct history *history, const struct r3ring_load_info *info)
{
	if (history->layers != info->layers || history->experts != info->experts)
		return false;
	for (uint32_t i = 0; i < info->layers; i++) {
		if (history->layer[i] != info->layer[i].layer_id)
			return false;
	}
	return true;
}

static uint32_t frames_in(size_t bytes, size_t cells)
{
	size_t frames = bytes / cells;

	if (frames > HISTORY_FRAMES_MAX)
		return HISTORY_FRAMES_MAX;
	return frames ? (uint32_t)frames : 1;
}

static int take_shape(struct history *history, const struct r3ring_load_info *info)
{
	size_t cells = (size_t)info->layers * info->experts;
	uint32_t capacity = frames_in(history->max_bytes, cells);
	int32_t *layer = calloc(info->layers, sizeof(*layer));
	uint8_t *codes = calloc(capacity, cells);
	struct frame *frame = calloc(capacity, sizeof(*frame));

	if (!layer || !codes || !frame) {
		free(layer);
		free(codes);
		free(frame);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < info->layers; i++)
		layer[i] = info->layer[i].layer_id;
	free_frames(history);
	history->layer = layer;
	history->codes = codes;
	history->frame = frame;
	history->layers = info->layers;
	history->experts = info->experts;
	history->capacity = capacity;
	history->used = 0;
	return 0;
}

static void measure(const struct r3ring_load_info *info, struct history_entry *entry)
{
	entry->counted = info->accounts.counted;
	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
		entry->lost += info->accounts.lost[cause];
	for (uint32_t i = 0; i < info->layers; i++) {
		struct r3ring_load_figures figures = {0};

		r3ring_load_measure(info->counts + (size_t)i * info->experts, info->experts, 1,
				    &figures);
		if (figures.max_to_mean > entry->balance) {
			entry->balance = figures.max_to_mean;
			entry->worst = info->layer[i].layer_id;
		}
		if (info->rows[i] > entry->rows)
			entry->rows = info->rows[i];
	}
}

static void put(struct history *history, const struct r3ring_load_info *info,
		const struct gpus *gpus, int64_t time_ms)
{
	uint64_t id = ++history->newest;
	struct frame *frame = &history->frame[id % history->capacity];
	uint8_t *codes = history->codes + id % history->capacity * cells_of(history);

	free(frame->gpus);
	*frame = (struct frame){.entry = {.id = id, .time_ms = time_ms}};
	if (gpus && gpus->count <= HISTORY_GPUS_MAX)
		frame->gpus = gpus_copy(gpus);
	measure(info, &frame->entry);
	frame->unit = code8_encode(info->counts, cells_of(history), codes);
	if (history->used < history->capacity)
		history->used++;
}

int history_add(struct history *history, const struct r3ring_load_info *info,
		const struct gpus *gpus, int64_t time_ms)
{
	int r = 0;

	pthread_mutex_lock(&history->lock);
	if (!same_shape(history, info))
		r = take_shape(history, info);
	if (r == 0)
		put(history, info, gpus, time_ms);
	pthread_mutex_unlock(&history->lock);
	return r;
}

/* ---- looking ---------------------------------------------------------------- */

uint32_t history_list(struct history *history, uint64_t after, struct history_entry *entries,
		      uint32_t most)
{
	uint32_t count = 0;
	uint64_t id;

	pthread_mutex_lock(&history->lock);
	id = history->newest - history->used;
	if (after > id)
		id = after;
	while (id < history->newest && count < most)
		entries[count++] = history->frame[++id % history->capacity].entry;
	pthread_mutex_unlock(&history->lock);
	return count;
}

static int copy_frame(const struct history *history, uint64_t id, struct history_picture *picture)
{
	size_t cells = cells_of(history);
	size_t place = id % history->capacity;

	picture->layer = calloc(history->layers, sizeof(*picture->layer));
	picture->codes = malloc(cells);
	if (!picture->layer || !picture->codes)
		return -ENOMEM;
	memcpy(picture->layer, history->layer, history->layers * sizeof(*picture->layer));
	memcpy(picture->codes, history->codes + place * cells, cells);
	picture->entry = history->frame[place].entry;
	picture->unit = history->frame[place].unit;
	picture->gpus = gpus_copy(history->frame[place].gpus);
	picture->layers = history->layers;
	picture->experts = history->experts;
	return 0;
}

int history_get(struct history *history, uint64_t id, struct history_picture *picture)
{
	int r = -ENOENT;

	*picture = (struct history_picture){0};
	pthread_mutex_lock(&history->lock);
	if (id <= history->newest && id > history->newest - history->used)
		r = copy_frame(history, id, picture);
	pthread_mutex_unlock(&history->lock);
	if (r)
		history_picture_free(picture);
	return r;
}

void history_picture_free(struct history_picture *picture)
{
	free(picture->layer);
	free(picture->codes);
	free(picture->gpus);
	*picture = (struct history_picture){0};
}
