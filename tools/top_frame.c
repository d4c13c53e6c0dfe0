/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a frame, and who of them gets how many rows. */
#include <inttypes.h>

#include "tools/top_frame.h"

#define HEATMAP_LEAST 4u
#define BRIEF_PART 6u /* of all rows, that what was lost may take */
#define KEYS_LEAST 4u /* rows that there are keys from */

/* Lines below the heatmap. */
struct below {
	bool hottest, gpus, keys, left_out;
};

static bool has_load(const struct top_frame *frame)
{
	return frame->load && frame->load->code == 0 && frame->load->info.layers;
}

static uint32_t count(const struct below *below)
{
	return (uint32_t)below->hottest + below->gpus + below->keys + below->left_out;
}

/* ---- above ----------------------------------------------------------------- */

/* A remedy has all the room there is. */
static uint32_t brief_most(const struct top_frame *frame, uint32_t rows, uint32_t row)
{
	uint32_t left = rows > row + 1 ? rows - row - 1 : 0;
	uint32_t most = rows / BRIEF_PART ? rows / BRIEF_PART : 1;

	return top_is_gone(frame) || most > left ? left : most;
}

static void draw_above(const struct top_frame *frame, struct top_space *space)
{
	uint32_t rows = space->grid->rows;
	struct flow flow = {0};

	top_verdict(frame, &flow);
	flow_draw(&flow, space);
	space->end = rows;
	if (space->row < rows)
		top_draw_title(frame, space->grid, space->row++);
	if (frame->page == TOP_HELP || frame->page == TOP_LOSSES)
		return;
	flow = (struct flow){0};
	top_ranks(frame, &flow);
	flow_draw(&flow, space);
	flow = (struct flow){0};
	top_losses_brief(frame, &flow);
	space->end = space->row + brief_most(frame, rows, space->row);
	flow_draw(&flow, space);
	flow = (struct flow){0};
	top_uneven(frame, &flow);
	space->end = space->row + (rows > space->row + HEATMAP_LEAST);
	if (flow.pieces > 1)
		flow_draw(&flow, space);
}

/* ---- load and channels ------------------------------------------------------ */

static struct below below_of(const struct top_frame *frame)
{
	bool load = has_load(frame);

	return (struct below){
		.hottest = load,
		.gpus = load && frame->load->gpus,
		.keys = frame->keys,
	};
}

/* What a small terminal has no room for, which a line says. */
static void leave_out(struct below *below, uint32_t rows)
{
	struct below all = *below;

	if (rows < HEATMAP_LEAST + count(below))
		below->gpus = false;
	if (rows < HEATMAP_LEAST + count(below))
		below->hottest = false;
	if (rows < KEYS_LEAST)
		below->keys = false;
	below->left_out = rows > 1 && count(below) != count(&all);
}

static void draw_left_out(const struct top_frame *frame, struct grid *grid, uint32_t row,
			  const struct below *below)
{
	struct below all = below_of(frame);
	uint32_t column = grid_text(grid, row, 0, GRID_WARN, "too small for:");

	if (all.hottest && !below->hottest)
		column = grid_text(grid, row, column, GRID_WARN, " hottest");
	if (all.gpus && !below->gpus)
		column = grid_text(grid, row, column, GRID_WARN, " GPUs");
	if (all.keys && !below->keys)
		grid_text(grid, row, column, GRID_WARN, " keys");
}

static void draw_below(const struct top_frame *frame, struct grid *grid, const struct below *below)
{
	uint32_t row = grid->rows - count(below);

	if (below->hottest)
		top_draw_hottest(frame, grid, row++);
	if (below->gpus)
		top_draw_gpus(frame, grid, row++);
	if (below->left_out)
		draw_left_out(frame, grid, row++, below);
	if (below->keys)
		top_draw_keys(frame, grid, row, 0);
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

static void draw_main(const struct top_frame *frame, struct top_space *space)
{
	struct below below = below_of(frame);
	uint32_t end;

	leave_out(&below, space->grid->rows - space->row);
	end = space->grid->rows - count(&below);
	if (end < space->row)
		return;
	space->end = space->row + table_rows(frame, end - space->row);
	top_draw_channels(frame, space);
	space->end = end;
	top_draw_heatmap(frame, space);
	draw_below(frame, space->grid, &below);
}

/* ---- pages ------------------------------------------------------------------ */

static void fill(const struct top_frame *frame, struct page *page)
{
	struct top_space table;

	switch (frame->page) {
	case TOP_HELP:
		top_help_page(page);
		break;
	case TOP_LOSSES:
		top_losses_page(frame, page);
		break;
	default:
		table = page_rows(page, top_channels_rows(frame));
		top_draw_channels(frame, &table);
		page->head = !page->cut_short;
	}
}

/* How much of the page has no room, and how to see it. */
static uint32_t say_part(const struct top_frame *frame, const struct page_part *part,
			 struct grid *grid, uint32_t row)
{
	if (!frame->part)
		return grid_print(grid, row, 0, GRID_WARN,
				  "+%" PRIu32 " rows: enlarge the terminal",
				  part->all - part->shown);
	return grid_print(grid, row, 0, GRID_WARN,
			  "rows %" PRIu32 "-%" PRIu32 " of %" PRIu32 ": arrows, PgUp, PgDn  ",
			  part->first + 1, part->first + part->shown, part->all);
}

/* The last row has the keys, or what has no room. */
static void draw_page(const struct top_frame *frame, struct top_space *space)
{
	struct page_part beginning = {0}, *part = frame->part ? frame->part : &beginning;
	struct page page;
	uint32_t row = space->grid->rows - 1, column = 0;

	space->end = space->grid->rows;
	page_make(&page, space->grid);
	fill(frame, &page);
	space->end -= frame->keys || page.cut_short || page.grid.rows > space->end - space->row;
	page_show(&page, part, space);
	if (page.cut_short)
		column = grid_text(space->grid, row, 0, GRID_BAD, "no memory for all of it  ");
	else if (part->shown < part->all)
		column = say_part(frame, part, space->grid, row);
	if (frame->keys)
		top_draw_keys(frame, space->grid, row, column);
	page_free(&page);
}

void top_frame_draw(const struct top_frame *frame, struct grid *grid)
{
	struct top_space space = {grid, 0, grid->rows};

	draw_above(frame, &space);
	if (space.row >= grid->rows)
		return;
	if (frame->page == TOP_MAIN)
		draw_main(frame, &space);
	else
		draw_page(frame, &space);
}

/* ---- how much it takes ------------------------------------------------------ */

uint32_t top_frame_rows(const struct top_frame *frame, uint32_t columns)
{
	struct grid wide = {.columns = columns};
	struct below below = below_of(frame);
	struct flow verdict = {0}, ranks = {0}, brief = {0}, uneven = {0};
	uint32_t heatmap = has_load(frame) ? frame->load->info.layers + 1 : HEATMAP_LEAST;
	uint32_t losses, rows;

	top_verdict(frame, &verdict);
	top_ranks(frame, &ranks);
	top_losses_brief(frame, &brief);
	top_uneven(frame, &uneven);
	losses = flow_rows(&brief, &wide);
	rows = flow_rows(&verdict, &wide) + 1 + flow_rows(&ranks, &wide) + losses +
	       (uneven.pieces > 1) + top_channels_rows(frame) + heatmap + count(&below);
	return rows > losses * BRIEF_PART ? rows : losses * BRIEF_PART;
}
