/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "channel/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t count, char *text)
{
	const uint8_t *in = bytes;

	for (size_t i = 0; i < count; i += 3) {
		size_t left = count - i;
		uint32_t three = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				 (left > 2 ? in[i + 2] : 0);

		*text++ = digits[three >> 18];
		*text++ = digits[three >> 12 & 63];
		*text++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*text++ = left > 2 ? digits[three & 63] : '=';
	}
	*text = '\0';
}
