/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the demo prints.
 */
#ifndef TESTS_DEMO_REPORT_H
#define TESTS_DEMO_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/demo/check.h"
#include "tests/demo/expected.h"

/* One model's way through the demo. */
struct demo_run {
	const char *title;
	struct demo_plan plan;
	struct expected expected;
	struct received received;
	struct findings findings;
	uint64_t run_ns, compare_ns;
};

/* Says what is about to be shown. */
void report_introduction(const char *text_path);

/* Says what is going on, while it goes on; @text replaces the line before on a
 * terminal. NULL takes it away. */
void report_progress(const char *text);

/* The table, a picture for each run, and the verdict. */
void report_print(const struct demo_run *runs, size_t count);

#endif
