/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of ids by a rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/step_source.h"

#define POISON 0x7A7A /* no expert in any of the tests, in every id type */

uint16_t step_source_id(uint64_t step, uint32_t layer, uint32_t row, uint32_t k, uint32_t experts)
{
	return (uint16_t)((step * 131 + (uint64_t)layer * 57 + (uint64_t)row * 13 +
			   (uint64_t)k * 29) %
			  experts);
}

static uint32_t columns_of(const struct step_source *source)
{
	return source->columns ? source->columns : source->top_k;
}

static uint64_t stride_of(const struct step_source *source)
{
	return source->row_stride ? source->row_stride : columns_of(source);
}

static size_t id_bytes(uint32_t type)
{
	switch (type) {
	case R3RING_INT64:
		return 8;
	case R3RING_INT32:
	case R3RING_UINT32:
		return 4;
	default:
		return 2;
	}
}

static void write_id(const struct step_source *source, size_t element, int64_t id)
{
	const uint16_t narrow = (uint16_t)id;
	const uint32_t middle = (uint32_t)id;
	uint8_t *to = (uint8_t *)source->memory + element * id_bytes(source->type);

	if (id_bytes(source->type) == sizeof(narrow))
		memcpy(to, &narrow, sizeof(narrow));
	else if (id_bytes(source->type) == sizeof(middle))
		memcpy(to, &middle, sizeof(middle));
	else
		memcpy(to, &id, sizeof(id));
}

void step_source_put(struct step_source *source, uint32_t row, uint32_t k, int64_t id)
{
	write_id(source, row * stride_of(source) + k, id);
}

void step_source_fill(struct step_source *source, uint64_t step, uint32_t layer)
{
	size_t elements = source->rows * stride_of(source);

	free(source->memory);
	source->memory = malloc((elements ? elements : 1) * id_bytes(source->type));
	if (!source->memory) {
		fprintf(stderr, "step source: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < elements; i++)
		write_id(source, i, POISON);
	for (uint32_t row = 0; row < source->rows; row++) {
		for (uint32_t k = 0; k < source->top_k; k++)
			step_source_put(source, row, k,
					step_source_id(step, layer, source->first_row + row, k,
						       source->experts));
	}
}

struct r3ring_topk step_source_topk(const struct step_source *source)
{
	return (struct r3ring_topk){
		.ids = source->memory,
		.type = source->type,
		.rows = source->rows,
		.columns = columns_of(source),
		.row_offset = source->row_offset,
		.row_stride = stride_of(source),
	};
}

void step_source_free(struct step_source *source)
{
	free(source->memory);
	source->memory = NULL;
}
