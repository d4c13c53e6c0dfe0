/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/base64_read.h"

/* -1: none. */
static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = memchr(digits, c, 64);

	return found ? (int)(found - digits) : -1;
}

uint8_t *base64_read(const char *text, size_t *count)
{
	size_t length = strlen(text), letters = strcspn(text, "=");
	uint8_t *bytes = malloc(length / 4 * 3 + 1);

	*count = 0;
	if (!bytes || length % 4 || length - letters > 2) {
		free(bytes);
		return NULL;
	}
	for (size_t i = 0; i < letters; i++) {
		int six = digit(text[i]);

		if (six < 0) {
			free(bytes);
			return NULL;
		}
		/* Each letter ends a byte but the first of four. */
		if (i % 4) {
			bytes[*count - 1] |= (uint8_t)(six >> (6 - i % 4 * 2));
			if (i + 1 == letters && i % 4 != 3)
				break;
		}
		if (i % 4 != 3)
			bytes[(*count)++] = (uint8_t)(six << (2 + i % 4 * 2));
	}
	return bytes;
}
