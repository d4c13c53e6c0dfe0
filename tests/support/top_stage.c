/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/top_stage.h"

#define NOW_NS 100000000000ull

void top_stage_make(struct top_stage *stage, const char *json)
{
	json_t *status = json_loads(json, 0, NULL);

	if (!status || !setlocale(LC_CTYPE, "C.UTF-8"))
		abort();
	*stage = (struct top_stage){.picture = daemon_picture_of(status)};
	json_decref(status);
	stage->rates = calloc(stage->picture->channel_count + 1, sizeof(*stage->rates));
	stage->picture->taken_ns = NOW_NS;
	top_losses_add(&stage->losses, NULL, stage->picture);
	stage->frame = (struct top_frame){
		.now_ns = NOW_NS,
		.clock = "12:34:56",
		.picture = stage->picture,
		.lived = stage->picture,
		.rates = stage->rates,
		.losses = &stage->losses,
		.instance = "a",
		.window_ns = 5000000000ull,
		.window_steps = 256,
		.load_ns = NOW_NS,
	};
}

void top_stage_load(struct top_stage *stage, int32_t first, uint32_t layers, uint32_t experts,
		    const double *counts)
{
	struct r3ring_layer_entry *table = calloc(layers, sizeof(*table));
	double *rows = calloc(layers, sizeof(*rows));
	struct r3ring_load_info info = {
		.channels = 1,
		.layers = layers,
		.experts = experts,
		.top_k = 4,
		.layer = table,
		.counts = counts,
		.rows = rows,
		.steps = 1,
	};

	for (uint32_t i = 0; i < layers; i++) {
		table[i].layer_id = first + (int32_t)i;
		rows[i] = 1000;
	}
	top_load_free(stage->load);
	stage->load = top_load_of(&info, TOP_TIME, NULL);
	stage->frame.load = stage->load;
	free(table);
	free(rows);
}

void top_stage_gpus(struct top_stage *stage, uint32_t gpus)
{
	const struct r3ring_load_info *info = &stage->load->info;
	struct r3ring_eplb_map *map;

	if (r3ring_eplb_map_plain(&map, info->layers, info->experts, gpus, NULL))
		abort();
	free(stage->load->gpus);
	stage->load->gpus = gpus_measure(map, info);
	r3ring_eplb_map_free(map);
}

void top_stage_draw(struct top_stage *stage, uint32_t rows, uint32_t columns)
{
	size_t length;
	FILE *out;

	free(stage->text);
	grid_free(&stage->grid);
	out = open_memstream(&stage->text, &length);
	if (!out || grid_make(&stage->grid, rows, columns))
		abort();
	top_frame_draw(&stage->frame, &stage->grid);
	grid_dump(&stage->grid, out);
	fclose(out);
}

const char *top_stage_row(const struct top_stage *stage, uint32_t row)
{
	static char line[4096];
	const char *begin = stage->text;

	for (; row && begin; row--) {
		begin = strchr(begin, '\n');
		begin = begin ? begin + 1 : NULL;
	}
	snprintf(line, sizeof(line), "%.*s", begin ? (int)strcspn(begin, "\n") : 0,
		 begin ? begin : "");
	return line;
}

void top_stage_free(struct top_stage *stage)
{
	daemon_picture_put(stage->picture);
	top_load_free(stage->load);
	grid_free(&stage->grid);
	free(stage->rates);
	free(stage->text);
}
