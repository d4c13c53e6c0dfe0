/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binding of a model's modules to something that captures: checked as a
 * whole before the first source is changed.
 */
#ifndef PRODUCER_BINDING_H
#define PRODUCER_BINDING_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/bind.h>

/* What takes the captured ids; must outlive the binding. */
struct binding_target {
	const struct r3ring_layer_entry *layers; /* the schema's table */
	uint32_t layer_count;
	/* @layer: place in the table. A failure is the target's to note. */
	void (*capture)(void *ctx, uint32_t layer, const struct r3ring_topk *topk,
			r3ring_stream stream);
	void *ctx;
};

struct binding;

/*
 * Binds all modules or none; see r3ring_bind() for rules and errors.
 * @binding: receives the handle; untouched on failure.
 * Returns the number of layers bound. Pairs with binding_release().
 */
int binding_create(struct binding **binding, const struct binding_target *target,
		   const struct r3ring_module *modules, size_t count, struct r3ring_error *err);

/*
 * Gives every source back what it had before. A source on which somebody else
 * has bound since keeps its chain; what is left of this binding in it only calls
 * on. NULL is fine.
 */
void binding_release(struct binding *binding);

#endif
