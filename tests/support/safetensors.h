/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a safetensors file as its format's description says, by nothing of what writes
 * it. Ends the process when the file is not as it should be.
 */
#ifndef TESTS_SUPPORT_SAFETENSORS_H
#define TESTS_SUPPORT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct safetensors {
	uint8_t *file;
	size_t bytes;
	size_t begin; /* of the tensors in the file */
	json_t *header;
};

struct safetensors_tensor {
	const char *dtype;
	uint64_t shape[4];
	unsigned int rank;
	const void *data;
	size_t bytes;
	size_t offset; /* in the file */
};

/* Checks that tensors lie one behind the other, without gaps, up to the file's end. */
void safetensors_read(struct safetensors *safetensors, const char *path);
void safetensors_free(struct safetensors *safetensors);

struct safetensors_tensor safetensors_tensor(const struct safetensors *safetensors,
					     const char *name);

/* A text of __metadata__. */
const char *safetensors_metadata(const struct safetensors *safetensors, const char *key);

#endif
