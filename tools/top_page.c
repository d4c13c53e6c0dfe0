/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tools/top_page.h"

void page_make(struct page *page, const struct grid *like)
{
	*page = (struct page){0};
	page->cut_short = grid_make(&page->grid, 0, like->columns) != 0;
}

void page_free(struct page *page)
{
	grid_free(&page->grid);
}

struct top_space page_rows(struct page *page, uint32_t rows)
{
	uint32_t row = page->grid.rows;

	if (page->cut_short || grid_grow(&page->grid, rows))
		page->cut_short = true;
	return (struct top_space){&page->grid, row, page->grid.rows};
}

void page_add(struct page *page, const struct flow *flow)
{
	struct top_space space = page_rows(page, flow_rows(flow, &page->grid));

	flow_draw(flow, &space);
}

static void show_row(const struct page *page, uint32_t row, struct top_space *space)
{
	memcpy(grid_at(space->grid, space->row++, 0), grid_at(&page->grid, row, 0),
	       page->grid.columns * sizeof(struct grid_cell));
}

void page_show(const struct page *page, struct page_part *part, struct top_space *space)
{
	uint32_t head = page->head, room = space->end - space->row;

	for (uint32_t row = 0; row < head && space->row < space->end; row++)
		show_row(page, row, space);
	room = room > head ? room - head : 0;
	part->all = page->grid.rows - head;
	part->shown = part->all < room ? part->all : room;
	if (part->first > part->all - part->shown)
		part->first = part->all - part->shown;
	for (uint32_t i = 0; i < part->shown; i++)
		show_row(page, head + part->first + i, space);
}
