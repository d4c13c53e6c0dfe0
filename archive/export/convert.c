/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "archive/export/convert.h"

#define CONVERT(type)                                                                              \
	for (size_t i = 0; i < count; i++)                                                         \
	((type *)to)[i] = (type)ids[i]

void export_convert(void *to, enum export_dtype dtype, const uint16_t *ids, size_t count)
{
	switch (dtype) {
	case EXPORT_U8:
	case EXPORT_I8:
		CONVERT(uint8_t);
		break;
	case EXPORT_I32:
		CONVERT(int32_t);
		break;
	case EXPORT_I64:
		CONVERT(int64_t);
		break;
	default:
		if (to != ids)
			memcpy(to, ids, count * sizeof(*ids));
		break;
	}
}

#define FILL(type)                                                                                 \
	for (uint32_t k = 0; k < top_k; k++)                                                       \
	((type *)to)[place + k] = (type)(fill == EXPORT_FILL_ARANGE ? (int64_t)k : value)

void export_fill(void *to, enum export_dtype dtype, size_t place, uint32_t top_k,
		 enum export_fill fill)
{
	const int64_t value = fill == EXPORT_FILL_MINUS_ONE ? -1 : 0;

	switch (dtype) {
	case EXPORT_U8:
	case EXPORT_I8:
		FILL(uint8_t);
		break;
	case EXPORT_I32:
		FILL(int32_t);
		break;
	case EXPORT_I64:
		FILL(int64_t);
		break;
	default:
		FILL(uint16_t);
		break;
	}
}
