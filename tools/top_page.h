/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that may have more rows than a screen, of which a part is shown. */
#ifndef TOOLS_TOP_PAGE_H
#define TOOLS_TOP_PAGE_H

#include "tools/top_flow.h"

/* Of @all rows that may be scrolled, those that are shown: kept in bounds by page_show(). */
struct page_part {
	uint32_t first, shown, all;
};

/* All rows of a page, as many as it takes. */
struct page {
	struct grid grid;
	uint32_t head;  /* of its rows, that stay when others are scrolled */
	bool cut_short; /* there was no memory for more */
};

/* As wide as @like. Pairs with page_free(). */
void page_make(struct page *page, const struct grid *like);
void page_free(struct page *page);

/* Rows for something, below all others. Without memory they are none. */
struct top_space page_rows(struct page *page, uint32_t rows);

/* A text below all others. */
void page_add(struct page *page, const struct flow *flow);

/* Shows a part of it. @space receives the rows that are left. */
void page_show(const struct page *page, struct page_part *part, struct top_space *space);

#endif
