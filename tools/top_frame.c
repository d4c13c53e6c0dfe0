/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a frame, and who of them gets how many rows. */
#include "tools/top_frame.h"

#define LINES_ABOVE 3u /* title, losses, balance */
#define HEATMAP_LEAST 4u

/* Lines below the heatmap. */
struct below {
	bool hottest, gpus, keys;
};

static bool has_load(const struct top_frame *frame)
{
	return frame->load && frame->load->code == 0 && frame->load->info.layers;
}

static uint32_t count(const struct below *below)
{
	return (uint32_t)below->hottest + below->gpus + below->keys;
}

static struct below below_of(const struct top_frame *frame)
{
	bool load = has_load(frame);

	return (struct below){
		.hottest = load,
		.gpus = load && frame->load->gpus.gpus,
		.keys = frame->keys,
	};
}

/* What a small terminal has no room for. */
static void leave_out(struct below *below, uint32_t rows)
{
	if (rows < LINES_ABOVE + HEATMAP_LEAST + count(below))
		below->gpus = false;
	if (rows < LINES_ABOVE + HEATMAP_LEAST + count(below))
		below->hottest = false;
	if (rows < LINES_ABOVE + 1 + count(below))
		below->keys = false;
}

static void draw_below(const struct top_frame *frame, struct grid *grid, const struct below *below)
{
	uint32_t row = grid->rows - count(below);

	if (below->hottest)
		top_draw_hottest(frame, grid, row++);
	if (below->gpus)
		top_draw_gpus(frame, grid, row++);
	if (below->keys)
		top_draw_keys(frame, grid, row);
}

/* The table has what it needs up to a third of the rest, or what layers do not need. */
static uint32_t table_rows(const struct top_frame *frame, uint32_t room)
{
	uint32_t wanted = top_channels_rows(frame);
	uint32_t heatmap = has_load(frame) ? frame->load->info.layers + 1 : HEATMAP_LEAST;
	uint32_t most = room > heatmap ? room - heatmap : 0;

	if (most < room / 3)
		most = room / 3;
	return wanted < most ? wanted : most;
}

static void draw_main(const struct top_frame *frame, struct grid *grid)
{
	struct below below = below_of(frame);
	struct top_space space = {.grid = grid, .row = LINES_ABOVE};
	uint32_t end;

	leave_out(&below, grid->rows);
	end = grid->rows - count(&below);
	if (end < LINES_ABOVE)
		return;
	space.end = LINES_ABOVE + table_rows(frame, end - LINES_ABOVE);
	top_draw_channels(frame, &space);
	space.end = end;
	top_draw_heatmap(frame, &space);
	draw_below(frame, grid, &below);
}

static void draw_table(const struct top_frame *frame, struct grid *grid)
{
	struct top_space space = {grid, LINES_ABOVE, grid->rows - 1};

	if (grid->rows <= LINES_ABOVE)
		return;
	top_draw_channels(frame, &space);
	top_draw_keys(frame, grid, grid->rows - 1);
}

void top_frame_draw(const struct top_frame *frame, struct grid *grid)
{
	top_draw_title(frame, grid, 0);
	if (frame->page == TOP_HELP) {
		top_draw_help(grid, 1);
		return;
	}
	top_draw_losses(frame, grid, 1);
	top_draw_balance(frame, grid, 2);
	if (frame->page == TOP_TABLE)
		draw_table(frame, grid);
	else
		draw_main(frame, grid);
}

uint32_t top_frame_rows(const struct top_frame *frame)
{
	struct below below = below_of(frame);
	uint32_t heatmap = has_load(frame) ? frame->load->info.layers + 1 : 1;

	return LINES_ABOVE + top_channels_rows(frame) + heatmap + count(&below);
}
