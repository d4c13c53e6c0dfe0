/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model's layers hand to capture in tests of single steps: matrices of ids
 * by a rule, of any id type and shape, with poison wherever capture must not look.
 */
#ifndef TESTS_SUPPORT_STEP_SOURCE_H
#define TESTS_SUPPORT_STEP_SOURCE_H

#include <stdint.h>

#include <r3ring/producer.h>

/* The id that a layer (place in the schema's table) of a step has for a row,
 * numbered over the whole step. Ids of a row differ for k below @experts / 29. */
uint16_t step_source_id(uint64_t step, uint32_t layer, uint32_t row, uint32_t k, uint32_t experts);

/* A matrix of one layer's ids; all but `memory` is the test's to set. */
struct step_source {
	uint32_t type; /* enum r3ring_id_type */
	uint32_t experts, top_k;
	uint32_t rows;
	uint32_t columns;    /* 0: top_k */
	uint64_t row_stride; /* 0: columns */
	uint32_t row_offset; /* as in struct r3ring_topk */
	uint32_t first_row;  /* row 0 of the matrix is this row of the step */
	void *memory;
};

/* Fills it by the rule; what lies beyond the top_k columns is no expert. */
void step_source_fill(struct step_source *source, uint64_t step, uint32_t layer);

/* Writes one id over. */
void step_source_put(struct step_source *source, uint32_t row, uint32_t k, int64_t id);

/* As an argument of r3ring_capture(); valid while the source is not filled anew. */
struct r3ring_topk step_source_topk(const struct step_source *source);

void step_source_free(struct step_source *source);

#endif
