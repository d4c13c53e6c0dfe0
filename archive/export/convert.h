/* SPDX-License-Identifier: Apache-2.0 */
/* Ids as an output has them: of its dtype, with a fill where one is missing. */
#ifndef ARCHIVE_EXPORT_CONVERT_H
#define ARCHIVE_EXPORT_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "archive/export/export.h"

/* Converts @count ids; those that are missing become anything. @to: as large as it needs. */
void export_convert(void *to, enum export_dtype dtype, const uint16_t *ids, size_t count);

/* Fills a cell of @top_k ids at element @place. @fill: minus one, zeros or arange. */
void export_fill(void *to, enum export_dtype dtype, size_t place, uint32_t top_k,
		 enum export_fill fill);

#endif
