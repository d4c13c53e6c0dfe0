/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in records come from strangers: whether they are UTF-8. */
#ifndef CHANNEL_UTF8_H
#define CHANNEL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 sequence at @text, which ends with a NUL; 0 when there is none. */
size_t utf8_bytes(const uint8_t *text);

/* Whether the character in these @bytes (1 to 4) steers who shows it instead of being seen:
 * controls, marks and overrides of direction, line separators, and what is not seen at all. Not
 * so joiners and variation selectors up to U+FE0F, which some scripts and pictures need. */
bool utf8_steers(const uint8_t *text, size_t bytes);

#endif
