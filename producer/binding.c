/* SPDX-License-Identifier: Apache-2.0 */
/* Binding modules to a target: check all, then change all. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/binding.h"

/* One layer of the schema and the module that is bound to it. */
struct bound_layer {
	const struct binding_target *target; /* NULL once released */
	uint32_t layer;
	const struct r3ring_module *module;   /* only while binding */
	struct r3ring_capture_source *source; /* NULL: bound by nobody */
	struct r3ring_capture_source before;  /* what the source had */
	uint32_t *replay_enabled;
	uint32_t replay_before;
};

struct binding {
	struct binding_target target;
	struct bound_layer layers[]; /* [target.layer_count] */
};

/* ---- in the forward --------------------------------------------------- */

static void capture_hook(const struct r3ring_capture_source *source, const struct r3ring_topk *topk,
			 r3ring_stream stream)
{
	const struct bound_layer *bound = source->ctx;

	if (bound->before.fn)
		bound->before.fn(&bound->before, topk, stream);
	if (bound->target)
		bound->target->capture(bound->target->ctx, bound->layer, topk, stream);
}

/* ---- checks ----------------------------------------------------------- */

#define MODULE_FORMAT "module \"%s\" (%s)"
#define MODULE_ARGS(module)                                                                        \
	(module)->prefix ? (module)->prefix : "?", (module)->class_name ? (module)->class_name : "?"

static int check_supported(const struct r3ring_module *module, struct r3ring_error *err)
{
	switch (module->kind) {
	case R3RING_MODULE_MONOLITHIC:
		if (!module->replay_enabled)
			return r3ring_error_set(err, -ENOTSUP,
						MODULE_FORMAT
						": its monolithic kernel cannot write "
						"out the experts it chose; choose a "
						"kernel with routing replay",
						MODULE_ARGS(module));
		break;
	case R3RING_MODULE_CAPTURE_SOURCE:
	case R3RING_MODULE_ROUTER_HOOK:
		break;
	default:
		return r3ring_error_set(err, -ENOTSUP,
					MODULE_FORMAT ": MoE of a kind that cannot be captured "
						      "(%d); give it a capture source, a router "
						      "hook or routing replay",
					MODULE_ARGS(module), (int)module->kind);
	}
	if (!module->source)
		return r3ring_error_set(err, -ENOTSUP,
					MODULE_FORMAT ": it has no capture source to bind to",
					MODULE_ARGS(module));
	return 0;
}

static int check_prefix(const struct r3ring_module *module, struct r3ring_error *err)
{
	int number = r3ring_layer_from_prefix(module->prefix);

	if (number < 0)
		return r3ring_error_set(err, -EINVAL,
					MODULE_FORMAT ": its prefix must hold exactly one number, "
						      "right after \"layers\"",
					MODULE_ARGS(module));
	if (number != module->source->layer_id)
		return r3ring_error_set(err, -EINVAL,
					MODULE_FORMAT ": its prefix says layer %d, its capture "
						      "source layer %d",
					MODULE_ARGS(module), number, module->source->layer_id);
	return 0;
}

/* The layer's place in the schema, or -ERANGE. */
static int find_layer(const struct binding_target *target, const struct r3ring_module *module,
		      struct r3ring_error *err)
{
	for (uint32_t i = 0; i < target->layer_count; i++)
		if (target->layers[i].layer_id == module->source->layer_id &&
		    target->layers[i].kind == module->layer_kind)
			return (int)i;
	return r3ring_error_set(err, -ERANGE,
				MODULE_FORMAT ": the schema has no layer %d of kind %s",
				MODULE_ARGS(module), module->source->layer_id,
				r3ring_layer_kind_name(module->layer_kind));
}

static int check_unique(const struct binding *binding, uint32_t layer,
			const struct r3ring_module *module, struct r3ring_error *err)
{
	for (uint32_t i = 0; i < binding->target.layer_count; i++) {
		const struct bound_layer *other = &binding->layers[i];

		if (!other->module || (i != layer && other->source != module->source))
			continue;
		return r3ring_error_set(
			err, -EEXIST,
			MODULE_FORMAT " and " MODULE_FORMAT " are both layer %d or have one source",
			MODULE_ARGS(other->module), MODULE_ARGS(module), module->source->layer_id);
	}
	return 0;
}

static int note_module(struct binding *binding, const struct r3ring_module *module,
		       struct r3ring_error *err)
{
	struct bound_layer *bound;
	int rc, layer;

	rc = check_supported(module, err);
	if (!rc)
		rc = check_prefix(module, err);
	if (rc)
		return rc;
	layer = find_layer(&binding->target, module, err);
	if (layer < 0)
		return layer;
	rc = check_unique(binding, (uint32_t)layer, module, err);
	if (rc)
		return rc;
	bound = &binding->layers[layer];
	bound->target = &binding->target;
	bound->layer = (uint32_t)layer;
	bound->module = module;
	bound->source = module->source;
	if (module->kind == R3RING_MODULE_MONOLITHIC)
		bound->replay_enabled = module->replay_enabled;
	return 0;
}

/* ---- layers that nobody bound ----------------------------------------- */

/* How far a run of layers with one state, one kind and numbers in a row goes. */
static uint32_t unbound_run(const struct binding *binding, uint32_t first)
{
	const struct r3ring_layer_entry *layers = binding->target.layers;
	uint32_t last = first;

	while (last + 1 < binding->target.layer_count && !binding->layers[last + 1].source &&
	       layers[last + 1].kind == layers[first].kind &&
	       layers[last + 1].layer_id == layers[last].layer_id + 1)
		last++;
	return last;
}

/* Adds "moe 3" or "moe 7-60" to a list; false when it does not fit. */
static bool append_run(char *list, size_t capacity, const struct r3ring_layer_entry *first,
		       const struct r3ring_layer_entry *last)
{
	const char *kind = r3ring_layer_kind_name(first->kind);
	const char *comma = list[0] ? ", " : "";
	size_t len = strlen(list), room = capacity - len;
	int bytes;

	if (first == last)
		bytes = snprintf(list + len, room, "%s%s %d", comma, kind, first->layer_id);
	else
		bytes = snprintf(list + len, room, "%s%s %d-%d", comma, kind, first->layer_id,
				 last->layer_id);
	if (bytes >= 0 && (size_t)bytes < room)
		return true;
	list[len] = '\0';
	return false;
}

static int check_complete(const struct binding *binding, struct r3ring_error *err)
{
	const struct binding_target *target = &binding->target;
	char list[320] = "";
	uint32_t unbound = 0, last;
	bool whole = true;

	for (uint32_t first = 0; first < target->layer_count; first = last + 1) {
		last = first;
		if (binding->layers[first].source)
			continue;
		last = unbound_run(binding, first);
		unbound += last - first + 1;
		whole = whole && append_run(list, sizeof(list), &target->layers[first],
					    &target->layers[last]);
	}
	if (!unbound)
		return 0;
	if (unbound == target->layer_count)
		return r3ring_error_set(err, -ENODATA,
					"the model has no MoE module, but the schema has %u "
					"layers: %s",
					unbound, list);
	return r3ring_error_set(err, -ENODATA,
				"%u of the schema's %u layers were bound by no module: %s%s",
				unbound, target->layer_count, list, whole ? "" : " and others");
}

/* ---- life ------------------------------------------------------------- */

static void apply(struct bound_layer *bound)
{
	bound->before = *bound->source;
	bound->source->ctx = bound;
	bound->source->fn = capture_hook;
	bound->module = NULL;
	if (bound->replay_enabled) {
		bound->replay_before = *bound->replay_enabled;
		*bound->replay_enabled = 1;
	}
}

int binding_create(struct binding **binding, const struct binding_target *target,
		   const struct r3ring_module *modules, size_t count, struct r3ring_error *err)
{
	struct binding *made =
		calloc(1, sizeof(*made) + target->layer_count * sizeof(made->layers[0]));
	int rc = 0;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "binding %u layers: out of memory",
					target->layer_count);
	made->target = *target;
	for (size_t i = 0; i < count && !rc; i++)
		if (modules[i].kind != R3RING_MODULE_OTHER)
			rc = note_module(made, &modules[i], err);
	if (!rc)
		rc = check_complete(made, err);
	if (rc) {
		free(made);
		return rc;
	}
	for (uint32_t i = 0; i < target->layer_count; i++)
		apply(&made->layers[i]);
	*binding = made;
	return (int)target->layer_count;
}

/* Returns whether somebody who has bound since still calls this layer. */
static bool release_layer(struct bound_layer *bound)
{
	if (bound->replay_enabled)
		*bound->replay_enabled = bound->replay_before;
	if (bound->source->fn == capture_hook && bound->source->ctx == bound) {
		bound->source->fn = bound->before.fn;
		bound->source->ctx = bound->before.ctx;
		return false;
	}
	bound->target = NULL;
	return true;
}

void binding_release(struct binding *binding)
{
	bool is_called = false;

	if (!binding)
		return;
	for (uint32_t i = 0; i < binding->target.layer_count; i++)
		is_called |= release_layer(&binding->layers[i]);
	if (!is_called)
		free(binding);
}
