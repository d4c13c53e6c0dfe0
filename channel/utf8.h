/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in records come from strangers: whether they are UTF-8. */
#ifndef CHANNEL_UTF8_H
#define CHANNEL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 sequence at @text, which ends with a NUL; 0 when there is none. */
size_t utf8_bytes(const uint8_t *text);

#endif
