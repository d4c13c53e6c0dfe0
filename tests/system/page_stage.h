/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of r3ring serve in a real browser, of an engine that really runs (serve_stage.h), for
 * tests of what it shows.
 */
#ifndef TESTS_SYSTEM_PAGE_STAGE_H
#define TESTS_SYSTEM_PAGE_STAGE_H

#include "tests/support/browser.h"
#include "tests/system/serve_stage.h"

extern struct browser browser;

/* For .init and .fini; skips the test where there is no browser. */
void page_stage_start(void);
void page_stage_stop(void);

/* Serves "prod", and page_nobody(), with these options, NULL-terminated; on the same port again
 * where it was served before. */
void page_serve(const char *const *more);

/* An instance that never runs. */
const char *page_nobody(void);

/* Goes to the page. */
void page_look(void);

/* The page, of an engine that has run five steps of four rows. */
void page_five_steps(void);

/* Runs steps of four rows. */
void page_run(unsigned int steps);

/* Loses steps, which have more rows than the engine's schema allows. */
void page_lose(unsigned int steps);

/* Opens a second rank, of one layer, which is such a pipeline stage; the caller's to close. */
struct r3ring_producer *page_open_rank(const char *model, struct r3ring_coordinate stage_of);

/* What an expression gives behind a file of serve/page, which needs no other: a number, or whether
 * it is true. */
double page_computes(const char *file, const char *expression);

/* What it says of a request, and its console; for messages. */
const char *page_says(void);

#define expect_becomes(expression)                                                                 \
	cr_assert(browser_becomes(&browser, expression), "%s: never; %s", expression, page_says())

#define WORD(verdict) "document.querySelector('#verdict-" verdict " .word').textContent"

#endif
