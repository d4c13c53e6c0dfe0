/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them on command lines. */
#ifndef CHANNEL_SIZE_TEXT_H
#define CHANNEL_SIZE_TEXT_H

#include <stdint.h>

/*
 * Bytes, or with K, M, G or T behind it KiB, MiB, GiB or TiB.
 * Returns 0, -EINVAL (no number, another unit, 0), -ERANGE. @bytes is untouched on failure.
 */
int size_text_parse(const char *text, uint64_t *bytes);

#endif
