/* SPDX-License-Identifier: Apache-2.0 */
/* Letters of ASCII as dots. */
#ifndef REPORT_FONT_H
#define REPORT_FONT_H

#include <stdint.h>

#define FONT_WIDTH 5u
#define FONT_HEIGHT 7u

/* [FONT_HEIGHT] rows from the top, bit 4 is the left dot. What has none is given as '?'. */
const uint8_t *font_glyph(char letter);

#endif
