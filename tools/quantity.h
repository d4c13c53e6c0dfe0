/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and durations as people read them.
 */
#ifndef TOOLS_QUANTITY_H
#define TOOLS_QUANTITY_H

#include <stdint.h>

#define QUANTITY_TEXT 16

/* "512 B", "32.0 MiB"; returns @text. */
const char *quantity_bytes(char text[QUANTITY_TEXT], uint64_t bytes);

/* "850 ns", "12.3 us", "4.5 ms", "12 s", "3 min", "5 h", "12 d"; returns @text. */
const char *quantity_duration(char text[QUANTITY_TEXT], uint64_t ns);

#endif
