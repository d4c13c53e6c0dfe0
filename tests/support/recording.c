/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded routing, read by a reader of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/recording.h"

#define RECORDING_IDS "../shared/data/gptoss20b/gptoss20b_many.u16"
#define RECORDING_COUNTS "../shared/data/gptoss20b/gptoss20b_many.hist.json"

static void die(const char *path, const char *what)
{
	fprintf(stderr, "recording %s: %s\n", path, what);
	exit(1);
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		die(RECORDING_HEADER, "out of memory");
	return memory;
}

static json_t *load(const char *path)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);

	if (!root)
		die(path, error.text);
	return root;
}

static uint32_t number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_integer(value))
		die(name, "is no number");
	return (uint32_t)json_integer_value(value);
}

static void read_requests(struct recording *recording, const json_t *array)
{
	recording->request_count = (uint32_t)json_array_size(array);
	recording->requests = allocate(recording->request_count, sizeof(*recording->requests));
	for (uint32_t i = 0; i < recording->request_count; i++) {
		const json_t *from = json_array_get(array, i);
		struct recording_request *to = &recording->requests[i];

		snprintf(to->id, sizeof(to->id), "%s",
			 json_string_value(json_object_get(from, "request_id")));
		to->first_row = number(from, "first_row");
		to->rows = number(from, "rows");
		to->prompt_tokens = number(from, "prompt_tokens");
	}
}

static void read_ids(struct recording *recording)
{
	size_t count = (size_t)recording->rows * recording->layers * recording->top_k;
	FILE *file = fopen(RECORDING_IDS, "re");

	recording->ids = allocate(count, sizeof(*recording->ids));
	if (!file || fread(recording->ids, sizeof(*recording->ids), count, file) != count)
		die(RECORDING_IDS, "is shorter than its header says");
	fclose(file);
}

static void read_counts(struct recording *recording)
{
	json_t *root = load(RECORDING_COUNTS);
	const json_t *layers = json_object_get(root, "counts");

	recording->counts = allocate((size_t)recording->layers * recording->experts,
				     sizeof(*recording->counts));
	for (uint32_t layer = 0; layer < recording->layers; layer++) {
		for (uint32_t expert = 0; expert < recording->experts; expert++)
			recording->counts[layer * recording->experts + expert] =
				(uint64_t)json_integer_value(
					json_array_get(json_array_get(layers, layer), expert));
	}
	json_decref(root);
}

bool recording_is_there(void)
{
	return access(RECORDING_HEADER, R_OK) == 0 && access(RECORDING_IDS, R_OK) == 0 &&
	       access(RECORDING_COUNTS, R_OK) == 0;
}

void recording_read(struct recording *recording)
{
	json_t *root = load(RECORDING_HEADER);
	const json_t *shape = json_object_get(root, "shape");

	*recording = (struct recording){
		.rows = (uint32_t)json_integer_value(json_array_get(shape, 0)),
		.layers = (uint32_t)json_integer_value(json_array_get(shape, 1)),
		.top_k = (uint32_t)json_integer_value(json_array_get(shape, 2)),
		.experts = number(root, "num_experts"),
	};
	read_requests(recording, json_object_get(root, "requests"));
	json_decref(root);
	read_ids(recording);
	read_counts(recording);
}

void recording_free(struct recording *recording)
{
	free(recording->ids);
	free(recording->counts);
	free(recording->requests);
	*recording = (struct recording){0};
}

const struct recording_request *recording_find(const struct recording *recording, const char *id)
{
	for (uint32_t i = 0; i < recording->request_count; i++) {
		if (strcmp(recording->requests[i].id, id) == 0)
			return &recording->requests[i];
	}
	return NULL;
}

const uint16_t *recording_ids(const struct recording *recording, uint32_t row, uint32_t layer)
{
	return recording->ids + ((size_t)row * recording->layers + layer) * recording->top_k;
}
