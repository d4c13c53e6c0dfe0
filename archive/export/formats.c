/* SPDX-License-Identifier: Apache-2.0 */
/* The formats by name, and the names of everything that an option may say. */
#include <string.h>

#include "archive/export/format.h"

static const struct export_format *const formats[] = {
	&export_safetensors, &export_npy,      &export_jsonl, &export_verl,  &export_nemo_rl,
	&export_skyrl,       &export_prime_rl, &export_slime, &export_miles,
};

#define FORMATS (sizeof(formats) / sizeof(*formats))

const struct export_format *export_format_find(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

const char *export_format_name(uint32_t index, const char **summary)
{
	if (index >= FORMATS)
		return NULL;
	if (summary)
		*summary = formats[index]->summary;
	return formats[index]->name;
}

/* ---- dtypes ------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t bytes;
	bool has_sign;
	uint64_t most;
} dtypes[EXPORT_DTYPES] = {
	[EXPORT_DTYPE_DEFAULT] = {"", 0, false, 0}, [EXPORT_U8] = {"u8", 1, false, UINT8_MAX},
	[EXPORT_I8] = {"i8", 1, true, INT8_MAX},    [EXPORT_U16] = {"u16", 2, false, UINT16_MAX},
	[EXPORT_I16] = {"i16", 2, true, INT16_MAX}, [EXPORT_I32] = {"i32", 4, true, INT32_MAX},
	[EXPORT_I64] = {"i64", 8, true, INT64_MAX},
};

const char *export_dtype_name(enum export_dtype dtype)
{
	return dtypes[dtype].name;
}

size_t export_dtype_bytes(enum export_dtype dtype)
{
	return dtypes[dtype].bytes;
}

uint64_t export_dtype_most(enum export_dtype dtype)
{
	return dtypes[dtype].most;
}

bool export_dtype_signed(enum export_dtype dtype)
{
	return dtypes[dtype].has_sign;
}

/* ---- other names -------------------------------------------------------- */

const char *export_fill_name(enum export_fill fill)
{
	static const char *const names[EXPORT_FILLS] = {
		[EXPORT_FILL_DEFAULT] = "",      [EXPORT_FILL_ERROR] = "error",
		[EXPORT_FILL_MINUS_ONE] = "-1",  [EXPORT_FILL_ZEROS] = "zeros",
		[EXPORT_FILL_ARANGE] = "arange",
	};

	return names[fill];
}

const char *export_rows_name(enum export_rows rows)
{
	static const char *const names[EXPORT_ROWS] = {
		[EXPORT_ROWS_DEFAULT] = "",
		[EXPORT_ROWS_MINUS_ONE] = "minus-one",
		[EXPORT_ROWS_FULL] = "full",
	};

	return names[rows];
}

const char *export_layers_name(enum export_layers layers)
{
	static const char *const names[EXPORT_LAYERS] = {
		[EXPORT_LAYERS_DEFAULT] = "",
		[EXPORT_LAYERS_MOE] = "moe",
		[EXPORT_LAYERS_ALL] = "all",
	};

	return names[layers];
}
