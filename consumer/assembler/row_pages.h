/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for rows of one size: pages of 64 rows, cut from slabs. Taken in runs of rows
 * that lie side by side, given back in any pieces.
 */
#ifndef CONSUMER_ASSEMBLER_ROW_PAGES_H
#define CONSUMER_ASSEMBLER_ROW_PAGES_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_ROWS 64u

struct row_slab;

struct row_page {
	struct row_page *prev, *next;
	uint8_t *memory;
	uint64_t used; /* a bit each row */
};

struct row_run {
	struct row_page *page;
	uint32_t first, rows; /* in the page */
};

struct row_pages {
	size_t row_bytes;
	struct row_slab *slabs;
	struct row_page *empty, *partial;
	uint64_t pages;
	uint64_t scattered; /* free rows of partial pages */
};

void row_pages_open(struct row_pages *pages, size_t row_bytes);
void row_pages_close(struct row_pages *pages);

/*
 * Takes @least to @most rows, at most PAGE_ROWS: as many as there are side by side in pages
 * that are in use already, where much is free in those, else @most.
 * Returns 0 or -ENOMEM.
 */
int row_pages_take(struct row_pages *pages, uint32_t least, uint32_t most, struct row_run *run);

/* Gives the rows of @page back whose bits are set. */
void row_pages_give(struct row_pages *pages, struct row_page *page, uint64_t rows);

/* @rows bits from bit @first on. */
static inline uint64_t row_bits(uint32_t first, uint32_t rows)
{
	return rows ? UINT64_MAX >> (PAGE_ROWS - rows) << first : 0;
}

static inline uint8_t *row_run_memory(const struct row_pages *pages, const struct row_run *run)
{
	return run->page->memory + run->first * pages->row_bytes;
}

#endif
