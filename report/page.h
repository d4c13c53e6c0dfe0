/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as one HTML page that has everything in itself: no script, nothing from
 * elsewhere, which its Content-Security-Policy says too.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stdio.h>

#include "report/report.h"

struct page_source {
	const char *archive; /* as it was called */
	const char *title;
	const struct report_options *options;
};

/* Returns 0, -ENOMEM or -EIO (a picture could not be made). */
int page_write(FILE *out, const struct report *report, const struct page_source *source,
	       struct r3ring_error *err);

/* ---- parts ------------------------------------------------------------------------ */

int page_balance(FILE *out, const struct report *report);
int page_time(FILE *out, const struct report *report, struct r3ring_error *err);
void page_coverage(FILE *out, const struct report *report);
void page_channels(FILE *out, const struct report *report);
void page_requests(FILE *out, const struct report *report);

/* Cells of all requests that were lost, and those that were to be had. */
uint64_t page_lost_cells(const struct report_coverage *coverage);
uint64_t page_run_cells(const struct report_coverage *coverage);

#endif
