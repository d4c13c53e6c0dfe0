/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of HTML. Text comes from strangers and is never believed to be anything else. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

#include "report/picture.h"

/* Text: escaped for content and quoted attributes; what is not UTF-8, and what would steer a
 * terminal or the direction of writing, becomes U+FFFD. */
void html_text(FILE *out, const char *text);

/* 1234567 as 1,234,567. */
void html_number(FILE *out, uint64_t number);

/* A point in time, CLOCK_REALTIME, in UTC; an element <time>. */
void html_time(FILE *out, uint64_t ns);

/* "850 ms", "12.3 s", "5.2 min", "3.1 h". */
void html_duration(FILE *out, uint64_t ns);

/* An <img> that has the picture in itself. Returns 0, -ENOMEM or -EIO. */
int html_picture(FILE *out, const struct picture *picture, const char *alt,
		 struct r3ring_error *err);

#endif
