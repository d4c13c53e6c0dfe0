/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring produce: what is shown of a run.
 */
#ifndef TOOLS_PRODUCE_H
#define TOOLS_PRODUCE_H

#include <stdint.h>
#include <stdio.h>

#include "producer/reference/run.h"

/* Keeps a line on a terminal up to date, a few times a second. */
struct produce_progress {
	FILE *terminal;
	double shown; /* seconds into the run */
	int drawn;    /* 1 while the line is there */
};

/* A progress function of struct run_options; @ctx is a struct produce_progress. */
void produce_show_progress(void *ctx, const struct run_report *report);

/* Takes the line away again. */
void produce_clear_progress(struct produce_progress *progress);

/* The summary, as two lines for people or one JSON object. */
void produce_print_text(FILE *out, const struct run_options *options,
			const struct run_report *report);
int produce_print_json(FILE *out, const struct run_options *options,
		       const struct run_report *report);

#endif
