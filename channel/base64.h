/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: RFC 4648, section 4. */
#ifndef CHANNEL_BASE64_H
#define CHANNEL_BASE64_H

#include <stddef.h>

/* The characters of @count bytes, without the NUL that ends them. */
#define BASE64_LENGTH(count) (((count) + 2) / 3 * 4)

/* @text: receives BASE64_LENGTH(@count) + 1 characters. */
void base64_encode(const void *bytes, size_t count, char *text);

#endif
