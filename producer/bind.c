/* SPDX-License-Identifier: Apache-2.0 */
/* Binding modules to a producer. */
#include <errno.h>
#include <string.h>

#include "producer/binding.h"
#include "producer/producer.h"

/* A capture that fails is noted by the producer, and its layer is missing. */
static void capture(void *ctx, uint32_t layer, const struct r3ring_topk *topk, r3ring_stream stream)
{
	r3ring_capture_layer(ctx, layer, topk, stream);
}

/* Closing calls it: nothing is announced, so the ended channel goes on saying what
 * was bound while it lived. */
static void give_back(struct r3ring_producer *producer)
{
	binding_release(producer->binding);
	producer->binding = NULL;
	producer->unbind = NULL;
}

int r3ring_bind(struct r3ring_producer *producer, const struct r3ring_module *modules, size_t count,
		struct r3ring_error *err)
{
	const struct binding_target target = {
		.layers = producer->layers,
		.layer_count = producer->geometry.layers,
		.capture = capture,
		.ctx = producer,
	};
	uint8_t bound[R3RING_LAYERS_MAX];
	struct binding *binding;
	int layers;

	if (!producer_is_own(producer))
		return r3ring_error_set(
			err, -ESTALE,
			"bind: the producer was opened by another process; open one "
			"in this process");
	if (count && !modules)
		return r3ring_error_set(err, -EINVAL, "bind: modules is NULL, but count is %zu",
					count);
	if (producer->binding)
		return r3ring_error_set(err, -EBUSY,
					"bind: the producer is bound already; unbind it first");
	layers = binding_create(&binding, &target, modules, count, err);
	if (layers < 0)
		return layers;
	producer->binding = binding;
	producer->unbind = give_back;
	memset(bound, 1, sizeof(bound));
	producer_note_bound(producer, bound);
	return layers;
}

void r3ring_unbind(struct r3ring_producer *producer)
{
	if (!producer->binding)
		return;
	give_back(producer);
	if (producer_is_own(producer))
		producer_note_bound(producer, NULL);
}
