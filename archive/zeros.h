/* SPDX-License-Identifier: Apache-2.0 */
/* What means nothing yet is zero in an archive, and is checked to be. */
#ifndef ARCHIVE_ZEROS_H
#define ARCHIVE_ZEROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool archive_all_zero(const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < count; i++) {
		if (at[i])
			return false;
	}
	return true;
}

#endif
