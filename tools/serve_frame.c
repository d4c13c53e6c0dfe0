/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "channel/base64.h"
#include "serve/past.h"
#include "tools/json_values.h"
#include "tools/load_json.h"
#include "tools/serve_frame.h"

#define NS_PER_MS 1000000.0

/* ---- counts --------------------------------------------------------------- */

size_t frame_code(const double *counts, size_t count, uint8_t *bytes, const char **code,
		  double *unit)
{
	double most = 0;
	bool whole = true;

	for (size_t i = 0; i < count; i++) {
		most = counts[i] > most ? counts[i] : most;
		whole = whole && counts[i] == floor(counts[i]);
	}
	*unit = whole && most <= UINT16_MAX ? 1 : most / UINT16_MAX;
	if (whole && most <= UINT8_MAX) {
		*code = "u8";
		for (size_t i = 0; i < count; i++)
			bytes[i] = (uint8_t)counts[i];
		return count;
	}
	*code = "u16";
	for (size_t i = 0; i < count; i++) {
		uint16_t value = (uint16_t)(counts[i] / *unit + 0.5);

		bytes[2 * i] = (uint8_t)value;
		bytes[2 * i + 1] = (uint8_t)(value >> 8);
	}
	return 2 * count;
}

static json_t *text_of(const uint8_t *bytes, size_t count)
{
	char *text = malloc(BASE64_LENGTH(count) + 1);
	json_t *json = NULL;

	if (text) {
		base64_encode(bytes, count, text);
		json = json_stringn_nocheck(text, BASE64_LENGTH(count));
	}
	free(text);
	return json;
}

/* ---- frames --------------------------------------------------------------- */

json_t *frame_of_load(const struct r3ring_load_info *info)
{
	size_t cells = (size_t)info->layers * info->experts, count;
	uint8_t *bytes = malloc(2 * cells);
	json_t *layers = json_array(), *text;
	const char *code;
	double unit, rows = 0;

	if (!bytes) {
		json_decref(layers);
		return NULL;
	}
	for (uint32_t i = 0; i < info->layers; i++) {
		json_array_append_new(layers, json_integer(info->layer[i].layer_id));
		rows = info->rows[i] > rows ? info->rows[i] : rows;
	}
	count = frame_code(info->counts, cells, bytes, &code, &unit);
	text = text_of(bytes, count);
	free(bytes);
	return json_pack(
		"{s:i, s:o, s:i, s:i, s:o, s:f, s:o, s:b, s:f, s:o, s:o, s:o, s:s, s:f, s:o}",
		"channels", (int)info->channels, "layers", layers, "experts", (int)info->experts,
		"top_k", (int)info->top_k, "steps", json_u64(info->steps), "rows", rows, "epoch",
		json_u64(info->epoch), "epochs_differ", info->epoch != info->epoch_oldest, "age_ms",
		(double)info->age_ns / NS_PER_MS, "cells_counted", json_u64(info->accounts.counted),
		"lost", load_json_losses(&info->accounts), "gaps", json_u64(info->accounts.gaps),
		"code", code, "unit", unit, "counts", text);
}

json_t *frame_of_gpus(const struct gpus *gpus)
{
	json_t *load = gpus ? json_array() : NULL;

	for (uint32_t gpu = 0; gpus && gpu < gpus->count; gpu++)
		json_array_append_new(load, json_real(gpus->load[gpu]));
	return gpus ? json_pack("{s:o, s:f, s:f, s:b, s:f, s:i, s:i, s:o}", "epoch",
				json_u64(gpus->epoch), "worst", gpus->worst, "by_chance",
				gpus->chance, "uneven", gpus_uneven(gpus), "average", gpus->average,
				"worst_layer", (int)gpus->worst_layer, "worst_gpu",
				(int)gpus->worst_gpu, "load", load)
		    : json_null();
}

/* ---- the past ------------------------------------------------------------- */

static json_t *summary_of(const struct history_entry *entry)
{
	return json_pack("{s:o, s:I, s:f, s:f, s:i, s:o, s:o}", "id", json_u64(entry->id),
			 "time_ms", (json_int_t)entry->time_ms, "rows", entry->rows, "balance",
			 entry->balance, "worst", (int)entry->worst, "lost", json_u64(entry->lost),
			 "counted", json_u64(entry->counted));
}

json_t *frame_list(struct history *history, uint64_t *after)
{
	struct history_entry *entries = calloc(HISTORY_FRAMES_MAX, sizeof(*entries));
	uint32_t count = entries ? history_list(history, *after, entries, HISTORY_FRAMES_MAX) : 0;
	json_t *frames = entries ? json_array() : NULL;

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(frames, summary_of(&entries[i]));
	if (count)
		*after = entries[count - 1].id;
	free(entries);
	return frames ? json_pack("{s:i, s:i, s:o}", "interval_ms", (int)PAST_INTERVAL_MS, "most",
				  (int)HISTORY_FRAMES_MAX, "frames", frames)
		      : NULL;
}

json_t *frame_of_past(const struct history_picture *picture)
{
	size_t cells = (size_t)picture->layers * picture->experts;
	json_t *frame = summary_of(&picture->entry);

	json_object_set_new(frame, "layers", json_numbers(picture->layer, picture->layers));
	json_object_set_new(frame, "experts", json_integer(picture->experts));
	json_object_set_new(frame, "code", json_string("m8"));
	json_object_set_new(frame, "unit", json_real(picture->unit));
	json_object_set_new(frame, "counts", text_of(picture->codes, cells));
	json_object_set_new(frame, "gpus", frame_of_gpus(picture->gpus));
	return frame;
}
