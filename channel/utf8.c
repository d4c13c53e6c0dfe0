/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/utf8.h"

/* Source: RFC 3629, section 4. */
size_t utf8_bytes(const uint8_t *text)
{
	size_t more = text[0] < 0x80   ? 0
		      : text[0] < 0xC2 ? 4
		      : text[0] < 0xE0 ? 1
		      : text[0] < 0xF0 ? 2
		      : text[0] < 0xF5 ? 3
				       : 4;

	if (more == 4)
		return 0;
	for (size_t i = 1; i <= more; i++)
		if ((text[i] & 0xC0) != 0x80)
			return 0;
	/* Too long for its value, a surrogate, beyond U+10FFFF. */
	if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
	    (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
		return 0;
	return more + 1;
}

static uint32_t code_point(const uint8_t *text, size_t bytes)
{
	static const uint8_t mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	uint32_t code = text[0] & mask[bytes];

	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (text[i] & 0x3F);
	return code;
}

/* Source: Unicode Standard Annex 9. */
bool utf8_steers(const uint8_t *text, size_t bytes)
{
	const uint32_t code = code_point(text, bytes);

	return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C ||
	       (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}
