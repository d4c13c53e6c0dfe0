/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <utlist.h>

#include "consumer/assembler/row_pages.h"

/* A step fills a few pages a layer at a time: large ones of the kernel's where it has them. */
#define SLAB_BYTES (2u << 20)
/* Pages that are looked at for a run of the very length. */
#define LOOKS 4u
/* Of all rows, so many may lie free in partial pages before shorter runs are taken. */
#define SCATTERED_SHARE 4u

struct row_slab {
	struct row_slab *next;
	void *memory;
	struct row_page page[];
};

void row_pages_open(struct row_pages *pages, size_t row_bytes)
{
	*pages = (struct row_pages){.row_bytes = row_bytes};
}

void row_pages_close(struct row_pages *pages)
{
	struct row_slab *slab;

	while ((slab = pages->slabs)) {
		pages->slabs = slab->next;
		free(slab->memory);
		free(slab);
	}
}

/* Cuts another slab into empty pages; without memory there are none. */
static void grow(struct row_pages *pages)
{
	const size_t page_bytes = PAGE_ROWS * pages->row_bytes;
	const size_t bytes = (page_bytes + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
	const size_t count = bytes / page_bytes;
	struct row_slab *slab = malloc(sizeof(*slab) + count * sizeof(*slab->page));

	if (!slab)
		return;
	slab->memory = aligned_alloc(SLAB_BYTES, bytes);
	if (!slab->memory) {
		free(slab);
		return;
	}
	madvise(slab->memory, bytes, MADV_HUGEPAGE); /* or not: only faster */
	slab->next = pages->slabs;
	pages->slabs = slab;
	pages->pages += count;
	for (size_t i = 0; i < count; i++) {
		slab->page[i].memory = (uint8_t *)slab->memory + i * page_bytes;
		slab->page[i].used = 0;
		DL_APPEND(pages->empty, &slab->page[i]);
	}
}

/* The first of @rows free rows side by side; PAGE_ROWS when there are not as many. */
static uint32_t run_in(const struct row_page *page, uint32_t rows)
{
	uint64_t starts = ~page->used;

	/* What starts a run of a length starts longer ones, where another one lies behind. */
	for (uint32_t length = 1, more; length < rows; length += more) {
		more = rows - length < length ? rows - length : length;
		starts &= starts >> more;
	}
	return starts ? (uint32_t)__builtin_ctzll(starts) : PAGE_ROWS;
}

static int take_from(struct row_pages *pages, struct row_page *page, uint32_t rows,
		     struct row_run *run)
{
	const uint32_t first = run_in(page, rows);
	const uint64_t used = page->used;

	if (first == PAGE_ROWS)
		return -ENOMEM;
	page->used |= row_bits(first, rows);
	pages->scattered -= rows;
	if (!used) {
		DL_DELETE(pages->empty, page);
		if (~page->used)
			DL_PREPEND(pages->partial, page);
		pages->scattered += PAGE_ROWS;
	} else if (!~page->used) {
		DL_DELETE(pages->partial, page);
	}
	*run = (struct row_run){page, first, rows};
	return 0;
}

static int take_whole(struct row_pages *pages, uint32_t rows, struct row_run *run)
{
	struct row_page *page = rows < PAGE_ROWS ? pages->partial : NULL;

	for (uint32_t i = 0; page && i < LOOKS; i++, page = page->next)
		if (take_from(pages, page, rows, run) == 0)
			return 0;
	if (!pages->empty)
		grow(pages);
	return pages->empty ? take_from(pages, pages->empty, rows, run) : -ENOMEM;
}

/* Halves of what is wanted, until there is one. */
static int take_scattered(struct row_pages *pages, uint32_t least, uint32_t most,
			  struct row_run *run)
{
	for (uint32_t rows = most; pages->partial && rows >= least && rows; rows /= 2)
		if (take_from(pages, pages->partial, rows, run) == 0)
			return 0;
	return -ENOMEM;
}

int row_pages_take(struct row_pages *pages, uint32_t least, uint32_t most, struct row_run *run)
{
	const bool scattered = pages->scattered * SCATTERED_SHARE > pages->pages * PAGE_ROWS;

	if (scattered && take_scattered(pages, least, most, run) == 0)
		return 0;
	if (take_whole(pages, most, run) == 0)
		return 0;
	return take_scattered(pages, least, most, run);
}

void row_pages_give(struct row_pages *pages, struct row_page *page, uint64_t rows)
{
	const uint64_t used = page->used;

	page->used &= ~rows;
	pages->scattered += (uint32_t)__builtin_popcountll(rows);
	if (~used)
		DL_DELETE(pages->partial, page);
	if (page->used) {
		DL_PREPEND(pages->partial, page);
		return;
	}
	pages->scattered -= PAGE_ROWS;
	DL_PREPEND(pages->empty, page);
}
