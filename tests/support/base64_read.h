/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4) back to bytes. */
#ifndef TESTS_SUPPORT_BASE64_READ_H
#define TESTS_SUPPORT_BASE64_READ_H

#include <stddef.h>
#include <stdint.h>

/* The bytes, the caller's to free, and how many; NULL where the text is none. */
uint8_t *base64_read(const char *text, size_t *count);

#endif
