/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load_json.h"
#include "tools/json_values.h"

#define NS_PER_MS 1000000.0
#define HOTTEST 8u

static json_t *figures_of(const double *counts, uint32_t experts)
{
	struct r3ring_load_figures figures = {0};

	r3ring_load_measure(counts, experts, experts < HOTTEST ? experts : HOTTEST, &figures);
	return json_pack("{s:f, s:f, s:f, s:f, s:i, s:i}", "max_to_mean", figures.max_to_mean,
			 "gini", figures.gini, "jain", figures.jain, "hottest_8", figures.hottest,
			 "dead", (int)figures.dead, "most", (int)figures.most);
}

static json_t *layer_of(const struct r3ring_load_info *info, uint32_t layer, bool counts)
{
	const double *values = info->counts + (size_t)layer * info->experts;
	json_t *object = json_pack("{s:i, s:f, s:o}", "layer", (int)info->layer[layer].layer_id,
				   "rows", info->rows[layer], "figures",
				   figures_of(values, info->experts));
	json_t *list;

	if (!counts)
		return object;
	list = json_array();
	for (uint32_t expert = 0; expert < info->experts; expert++)
		json_array_append_new(list, json_real(values[expert]));
	json_object_set_new(object, "counts", list);
	return object;
}

json_t *load_json_losses(const struct r3ring_load_accounts *accounts)
{
	json_t *lost = json_object();

	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++) {
		if (accounts->lost[cause])
			json_object_set_new(lost, r3ring_missing_cause_name(cause),
					    json_u64(accounts->lost[cause]));
	}
	return lost;
}

const char *load_left_out_name(uint32_t reason)
{
	static const char *const names[R3RING_LOAD_REASONS] = {
		[R3RING_LOAD_WARMUP] = "warmup",
		[R3RING_LOAD_PADDING] = "padding",
		[R3RING_LOAD_REJECTED] = "rejected",
		[R3RING_LOAD_RECOMPUTED] = "recomputed",
	};

	return names[reason];
}

json_t *load_json_left_out(const struct r3ring_load_accounts *accounts)
{
	json_t *left_out = json_object();

	for (uint32_t reason = 0; reason < R3RING_LOAD_REASONS; reason++) {
		if (accounts->left_out[reason])
			json_object_set_new(left_out, load_left_out_name(reason),
					    json_u64(accounts->left_out[reason]));
	}
	return left_out;
}

/* Of merged channels the one that is furthest behind may end before another begins. */
static double window_ms(const struct r3ring_load_info *info)
{
	return info->to_ns > info->from_ns ? (double)(info->to_ns - info->from_ns) / NS_PER_MS : 0;
}

json_t *load_json(const struct r3ring_load_info *info, bool counts)
{
	json_t *layers = json_array();

	for (uint32_t layer = 0; layer < info->layers; layer++)
		json_array_append_new(layers, layer_of(info, layer, counts));
	return json_pack("{s:i, s:i, s:i, s:o, s:b, s:f, s:o, s:b, s:f, s:o, s:o, s:o, s:o, s:o}",
			 "channels", (int)info->channels, "experts", (int)info->experts, "top_k",
			 (int)info->top_k, "steps", json_u64(info->steps), "window_cut",
			 info->window_cut, "window_ms", window_ms(info), "epoch",
			 json_u64(info->epoch), "epochs_differ", info->epoch != info->epoch_oldest,
			 "age_ms", (double)info->age_ns / NS_PER_MS, "cells_counted",
			 json_u64(info->accounts.counted), "cells_left_out",
			 load_json_left_out(&info->accounts), "cells_lost",
			 load_json_losses(&info->accounts), "gaps", json_u64(info->accounts.gaps),
			 "layers", layers);
}
