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

/* Source: Unicode Standard Annex 9; Unicode Character Database, DerivedCoreProperties.txt:
 * Default_Ignorable_Code_Point. The page has the same (serve/page/dom.js). */
static const struct {
	uint32_t first, last;
} steering[] = {
	{0x00, 0x1F},       {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},
	{0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
	{0x200B, 0x200B},   {0x200E, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},
	{0x3164, 0x3164},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
	{0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool utf8_steers(const uint8_t *text, size_t bytes)
{
	const uint32_t code = code_point(text, bytes);

	for (size_t i = 0; i < sizeof(steering) / sizeof(*steering); i++) {
		if (code >= steering[i].first && code <= steering[i].last)
			return true;
	}
	return false;
}
