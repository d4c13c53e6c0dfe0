/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a model, all of whose rows count, as records. */
#ifndef TESTS_BENCH_LOAD_RECORDS_H
#define TESTS_BENCH_LOAD_RECORDS_H

#include <r3ring/record.h>

#include "tests/bench/bench.h"

struct made_shape {
	const char *model;
	uint32_t rows, layers, experts;
	uint16_t top_k;
};

/* By row->size: the model's layers. */
const struct made_shape *made_shape_of(const struct bench_row *row);
size_t made_layer_bytes(const struct made_shape *shape);

/* @layers: [shape->layers], which the record refers to. */
struct r3ring_record made_schema(const struct made_shape *shape, struct r3ring_layer_entry *layers);
struct r3ring_record made_step(const struct made_shape *shape, uint64_t step);
struct r3ring_record made_layer(const struct made_shape *shape, uint64_t step, uint32_t layer,
				const uint16_t *ids);
struct r3ring_record made_step_end(uint64_t step);

/* Skewed as routing is: of each row's experts half are among an eighth of all. */
void made_ids_fill(const struct made_shape *shape, uint16_t *ids);

#endif
