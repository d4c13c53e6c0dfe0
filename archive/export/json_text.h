/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings into a stream; what is not UTF-8 becomes U+FFFD, byte by byte. */
#ifndef ARCHIVE_EXPORT_JSON_TEXT_H
#define ARCHIVE_EXPORT_JSON_TEXT_H

#include <stdio.h>

/* "text", quoted and escaped. */
void export_json_string(FILE *out, const char *text);

/* The same, to stand within a string of JSON: escaped once more, without outer quotes. */
void export_json_nested(FILE *out, const char *text);

#endif
