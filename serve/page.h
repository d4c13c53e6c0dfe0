/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that people look at: one file, made of serve/page by its join.sh, that fetches all
 * it shows from the server it came from and may do nothing else.
 */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

struct MHD_Response;

/* The answer with the page; NULL without memory. */
struct MHD_Response *page_response(void);

/*
 * The value of its Content-Security-Policy: its style and script are named by their hashes,
 * so that nothing else is one.
 *
 * Source: W3C, Content Security Policy Level 3.
 *
 * Returns the length of what it writes to @policy, or would: as snprintf().
 */
int page_policy(const char *page, char *policy, unsigned long size);

#endif
