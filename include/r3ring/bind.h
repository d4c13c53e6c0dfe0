/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding a model's MoE layers to a producer: fails closed, before serving.
 *
 * The whole contract between a model and capture is struct
 * r3ring_capture_source: the MoE layer owns one, and its forward does
 *
 *	if (source->fn)
 *		source->fn(source, topk, stream);
 *
 * after it has the logical ids and before it maps them to replicas. Unbound,
 * that is one null check.
 */
#ifndef R3RING_BIND_H
#define R3RING_BIND_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/producer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_capture_source;

/*
 * Called by the forward with the layer's logical ids. @source is the layer's
 * own source; source->ctx is what the binder stored.
 */
typedef void (*r3ring_capture_fn)(const struct r3ring_capture_source *source,
				  const struct r3ring_topk *topk, r3ring_stream stream);

struct r3ring_capture_source {
	int layer_id;
	r3ring_capture_fn fn; /* NULL while unbound */
	void *ctx;
};

enum r3ring_module_kind {
	/* Owns a capture source (DeepGEMM MegaMoE: DeepSeek-V4, Kimi-K3). */
	R3RING_MODULE_CAPTURE_SOURCE = 1,
	/* An MoE runner whose router calls a hook with the ids it selected. */
	R3RING_MODULE_ROUTER_HOOK = 2,
	/* An MoE runner with a monolithic kernel (routing inside the kernel); only
	 * with a kernel that can write out what it routed. */
	R3RING_MODULE_MONOLITHIC = 3,
	/* MoE, but none of these: binding refuses it and names it. */
	R3RING_MODULE_UNSUPPORTED = 4,
	/* Not MoE: passed over. */
	R3RING_MODULE_OTHER = 5,
};

/*
 * One module of the model, as a walk finds it. `source` is where the module's
 * capture source, router hook or replay output calls; for a monolithic kernel
 * `replay_enabled` points to its switch, NULL when the kernel has none.
 */
struct r3ring_module {
	const char *prefix;     /* e.g. "model.layers.3.ffn.experts" */
	const char *class_name; /* for messages */
	enum r3ring_module_kind kind;
	uint8_t layer_kind; /* enum r3ring_layer_kind */
	struct r3ring_capture_source *source;
	uint32_t *replay_enabled; /* set to 1 by binding, given back by unbinding */
};

/*
 * Binds every MoE module of a model to the producer. All or nothing: on failure
 * no source has been changed. A function that a source already has is chained:
 * it is called first, with its own ctx.
 *
 * @modules: [count], read during the call; the sources they name must outlive
 *           the binding.
 *
 * Returns the number of layers bound, or
 *   -ENOTSUP  a module is unsupported, has no source, or its monolithic kernel
 *             cannot write out its routes (the message names the module),
 *   -EEXIST   two sources have one layer identity, or two modules one source,
 *   -ERANGE   a layer id is not in the schema,
 *   -ENODATA  a layer of the schema was bound by nobody (all are named), or the
 *             model has no MoE module at all,
 *   -EINVAL   a prefix without exactly one layer number, or one that differs from
 *             its source's layer_id; or @modules is NULL and @count is not 0,
 *   -EBUSY    this producer is bound already,
 *   -ENOMEM, -ESTALE.
 *
 * One thread, while no forward runs. Pairs with r3ring_unbind() (or close). @producer
 * must not be NULL; @err may be.
 */
R3RING_API int r3ring_bind(struct r3ring_producer *producer, const struct r3ring_module *modules,
			   size_t count, struct r3ring_error *err);

/*
 * Gives every source back what it had before. A source on which somebody else
 * has bound since keeps that function; behind it nothing is captured any more.
 * One thread, while no forward runs.
 */
R3RING_API void r3ring_unbind(struct r3ring_producer *producer);

/*
 * The layer number in a module prefix such as "model.layers.3.ffn.experts": the
 * one dot-separated component that is a number and follows "layers".
 *
 * Returns the number (0 to 65535), or -EINVAL: no such component, more than one
 * numeric component, a sign, leading zeros, or a number beyond the range.
 */
R3RING_API int r3ring_layer_from_prefix(const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
