/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of several channels as one table. */
#ifndef CONSUMER_LAYERS_H
#define CONSUMER_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/record.h>

/* For qsort() of struct r3ring_layer_entry: by kind, multi-token prediction last, and model
 * layer number. 0: the same layer. */
int layers_compare(const void *a, const void *b);

/*
 * Adds those of @layer[@count], of which no two are the same, that are not in the table yet,
 * at its end.
 *
 * @table, @layers: reallocated; as before on failure.
 *
 * Returns 0 or -ENOMEM.
 */
int layers_add(struct r3ring_layer_entry **table, uint32_t *layers,
	       const struct r3ring_layer_entry *layer, uint32_t count);

/* Whether a layer is among the model's own [first, end); of end 0 all are. Multi-token
 * prediction layers, which have numbers of their own, are not. */
bool layers_among(const struct r3ring_layer_entry *layer, uint32_t first, uint32_t end);

/* Puts the table in order. */
void layers_sort(struct r3ring_layer_entry *table, uint32_t layers);

/* Index of a layer in the table; @layers when it is not there. @guess: looked at first. */
uint32_t layers_find(const struct r3ring_layer_entry *table, uint32_t layers,
		     const struct r3ring_layer_entry *layer, uint32_t guess);

#endif
