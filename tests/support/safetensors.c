/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/safetensors.h"

static void demand(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "no safetensors file: %s\n", what);
	exit(1);
}

static void load(struct safetensors *safetensors, const char *path)
{
	FILE *file = fopen(path, "rb");

	demand(file != NULL, path);
	fseek(file, 0, SEEK_END);
	safetensors->bytes = (size_t)ftell(file);
	rewind(file);
	safetensors->file = malloc(safetensors->bytes + 1);
	demand(safetensors->file &&
		       fread(safetensors->file, 1, safetensors->bytes, file) == safetensors->bytes,
	       "unreadable");
	fclose(file);
}

static size_t bytes_of(const struct safetensors_tensor *tensor)
{
	static const struct {
		const char *name;
		size_t bytes;
	} dtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"U16", 2},
		      {"I16", 2},  {"I32", 4}, {"I64", 8}, {"U64", 8}};
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++)
		if (!strcmp(dtypes[i].name, tensor->dtype))
			bytes = dtypes[i].bytes;
	demand(bytes > 0, "dtype");
	for (unsigned int i = 0; i < tensor->rank; i++)
		bytes *= tensor->shape[i];
	return bytes;
}

static struct safetensors_tensor describe(const struct safetensors *safetensors, json_t *entry)
{
	struct safetensors_tensor tensor = {
		.dtype = json_string_value(json_object_get(entry, "dtype"))};
	json_t *shape = json_object_get(entry, "shape");
	json_t *offsets = json_object_get(entry, "data_offsets");
	size_t begin, end;

	tensor.rank = (unsigned int)json_array_size(shape);
	demand(tensor.dtype && tensor.rank > 0 && tensor.rank <= 4, "shape");
	for (unsigned int i = 0; i < tensor.rank; i++)
		tensor.shape[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
	begin = (size_t)json_integer_value(json_array_get(offsets, 0));
	end = (size_t)json_integer_value(json_array_get(offsets, 1));
	demand(begin <= end && end <= safetensors->bytes - safetensors->begin, "offsets");
	tensor.offset = safetensors->begin + begin;
	tensor.data = safetensors->file + tensor.offset;
	tensor.bytes = end - begin;
	demand(tensor.bytes == bytes_of(&tensor), "as many bytes as the shape says");
	return tensor;
}

/* Each tensor's end is another's beginning, or the file's end. */
static void demand_no_gaps(const struct safetensors *safetensors)
{
	size_t sum = 0;
	const char *name;
	json_t *entry;

	json_object_foreach (safetensors->header, name, entry) {
		struct safetensors_tensor tensor;
		size_t end, found = 0;
		const char *other;
		json_t *next;

		if (!strcmp(name, "__metadata__"))
			continue;
		tensor = describe(safetensors, entry);
		end = tensor.offset + tensor.bytes;
		sum += tensor.bytes;
		found = end == safetensors->bytes;
		json_object_foreach (safetensors->header, other, next)
			found += strcmp(other, "__metadata__") != 0 && next != entry &&
				 describe(safetensors, next).offset == end;
		demand(found > 0, "a gap");
	}
	demand(sum == safetensors->bytes - safetensors->begin, "as many bytes as the tensors have");
}

void safetensors_read(struct safetensors *safetensors, const char *path)
{
	uint64_t length;

	load(safetensors, path);
	demand(safetensors->bytes >= sizeof(length), "too short");
	memcpy(&length, safetensors->file, sizeof(length));
	demand(length <= safetensors->bytes - sizeof(length), "length of the header");
	safetensors->begin = sizeof(length) + (size_t)length;
	safetensors->header = json_loadb((char *)safetensors->file + sizeof(length), (size_t)length,
					 JSON_REJECT_DUPLICATES, NULL);
	demand(safetensors->header != NULL, "header");
	demand_no_gaps(safetensors);
}

void safetensors_free(struct safetensors *safetensors)
{
	json_decref(safetensors->header);
	free(safetensors->file);
	*safetensors = (struct safetensors){0};
}

struct safetensors_tensor safetensors_tensor(const struct safetensors *safetensors,
					     const char *name)
{
	json_t *entry = json_object_get(safetensors->header, name);

	demand(entry != NULL, name);
	return describe(safetensors, entry);
}

const char *safetensors_metadata(const struct safetensors *safetensors, const char *key)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(safetensors->header, "__metadata__"), key));

	demand(text != NULL, key);
	return text;
}
