/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/heat.h"
#include "tools/top_load.h"

void top_load_free(struct top_load *load)
{
	if (!load)
		return;
	free(load->layer);
	free(load->counts);
	free(load->ratios);
	free(load->rows);
	free(load->balance);
	free(load->rank);
	free(load->gpus);
	free(load);
}

/* ---- copying --------------------------------------------------------------- */

static void *copy_of(const void *from, size_t count, size_t size)
{
	void *copy = calloc(count ? count : 1, size);

	if (copy && count)
		memcpy(copy, from, count * size);
	return copy;
}

static bool copy_info(struct top_load *load, const struct r3ring_load_info *info)
{
	size_t cells = (size_t)info->layers * info->experts;

	load->info = *info;
	load->layer = copy_of(info->layer, info->layers, sizeof(*load->layer));
	load->counts = copy_of(info->counts, cells, sizeof(*load->counts));
	load->rows = copy_of(info->rows, info->layers, sizeof(*load->rows));
	load->ratios = calloc(cells ? cells : 1, sizeof(*load->ratios));
	load->balance = calloc(info->layers + 1, sizeof(*load->balance));
	load->rank = calloc(info->layers + 1, sizeof(*load->rank));
	load->info.layer = load->layer;
	load->info.counts = load->counts;
	load->info.rows = load->rows;
	load->info.no_expert = NULL;
	return load->layer && load->counts && load->rows && load->ratios && load->balance &&
	       load->rank;
}

/* ---- figures --------------------------------------------------------------- */

static int measure(struct top_load *load, const struct r3ring_eplb_map *map)
{
	const struct r3ring_load_info *info = &load->info;
	int r = balance_layers(info, load->balance);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < info->layers; i++)
		load->rank[load->balance[i].index] = i;
	heat_ratios(load->counts, info->layers, info->experts, load->ratios);
	load->hottest_count = balance_hottest(info, load->hottest, TOP_HOTTEST);
	if (info->to_ns > info->from_ns)
		load->seconds = (double)(info->to_ns - info->from_ns) / 1e9;
	load->gpus = gpus_measure(map, info);
	return 0;
}

/* ---- reading --------------------------------------------------------------- */

struct top_load *top_load_of(const struct r3ring_load_info *info, enum top_window window,
			     const struct r3ring_eplb_map *map)
{
	struct top_load *load = calloc(1, sizeof(*load));
	bool made = load && copy_info(load, info);

	if (made) {
		load->window = window;
		made = measure(load, map) == 0;
	}
	if (made)
		return load;
	top_load_free(load);
	return NULL;
}

static struct top_load *nothing(enum top_window window, int code)
{
	struct top_load *load = calloc(1, sizeof(*load));

	if (load) {
		load->window = window;
		load->code = code;
	}
	return load;
}

static struct top_load *finish(const struct r3ring_load *load, uint32_t channel,
			       enum top_window window, const struct r3ring_load_info *info)
{
	struct r3ring_eplb_map *map = NULL;
	struct top_load *made;

	r3ring_load_map_in_force(load, channel, info->epoch, &map);
	made = top_load_of(info, window, map);
	r3ring_eplb_map_free(map);
	return made;
}

struct top_load *top_load_read(const struct r3ring_load *load, uint32_t channel,
			       enum top_window window, struct since *since)
{
	static const enum r3ring_load_over over[TOP_WINDOWS] = {
		[TOP_TIME] = R3RING_LOAD_TIME,
		[TOP_STEPS] = R3RING_LOAD_STEPS,
		[TOP_AVERAGE] = R3RING_LOAD_AVERAGE,
		[TOP_SINCE] = R3RING_LOAD_EVER,
	};
	const struct r3ring_load_info *info;
	struct r3ring_load_snapshot *snapshot;
	struct top_load *read;
	int r = r3ring_load_snapshot_create(&snapshot);

	if (r < 0)
		return NULL;
	info = r3ring_load_snapshot_info(snapshot);
	if (window == TOP_SINCE && since)
		r = since_read(since, false, &info);
	else
		r = r3ring_load_read(load, channel, over[window], R3RING_LOAD_ANY_EPOCH, snapshot);
	read = r == 0 ? finish(load, channel, window, info) : nothing(window, r);
	r3ring_load_snapshot_free(snapshot);
	return read;
}

const char *top_window_name(enum top_window window)
{
	static const char *const names[TOP_WINDOWS] = {
		[TOP_TIME] = "time",
		[TOP_STEPS] = "steps",
		[TOP_AVERAGE] = "average",
		[TOP_SINCE] = "since",
	};

	return names[window];
}
